"""Detection of answers that repeat themselves, as opposed to lists."""

from chat.prompting.prompt_text import loop_length

SORRY = "I'm sorry for your loss. "


def test_repetition_is_found_at_the_end_of_a_text() -> None:
    for text, length in (
        (f"The deadline is near. {SORRY * 3}", 2 * len(SORRY)),
        (f"The deadline is near. {SORRY * 2}", 0),
        ("| --- | --- | --- | --- |\n" * 5, 0),
        ("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16", 0),
        ("- buy bread\n- buy butter\n- buy milk\n- buy eggs\n", 0),
        ("", 0),
    ):
        assert loop_length(text) == length, text[:40]
