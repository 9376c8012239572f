"""Extraction without a model: lasting statements are kept whole, in any language; the rest is ignored."""

import pytest

from memories.judging.corrections import only_takes_back
from memories.judging.extraction.with_classifier import LEAST, extract_with_rules
from memories.judging.extraction.with_language_model import MAX_CANDIDATES, MAX_WORDS, Candidate
from memories.judging.sentences import sentences
from memoryhub.llm.e5 import MultilingualEncoder
from tests.bench.bench_extraction import DATA, Count, count, read
from tests.bench.bench_keeping import found_of
from tests.bench.judging_data import messages, takings_back

ENCODER = MultilingualEncoder()


def kept(*texts: str) -> list[Candidate]:
    return extract_with_rules([("user", text) for text in texts], ENCODER)


@pytest.mark.parametrize("english", [True, False])
def test_what_lasts_is_found_and_little_else(english: bool) -> None:
    """Measured on held-out messages (docs/figures.md)."""
    of = [each for each in messages() if each.split == "held back" and (each.language == "en") == english]
    counts = [found_of(each, ENCODER, LEAST)[:3] for each in of]
    facts, found, statements = (sum(column) for column in zip(*counts, strict=True))
    assert facts >= 30
    assert found / statements >= 0.88
    assert found / facts >= 0.7


def test_what_was_written_last_before_the_code_was_run_on_it() -> None:
    """Ordinary and hostile messages in thirteen languages; the bounds hold for all languages together."""
    counts = [found_of(each, ENCODER, LEAST)[:3] for each in messages() if each.split == "held back, last"]
    facts, found, statements = (sum(column) for column in zip(*counts, strict=True))
    assert (len(counts), facts) == (62, 38)
    assert found / statements >= 0.9
    assert found / facts >= 0.75


def test_messages_held_back_in_ten_languages_keep_their_promise() -> None:
    """The figures of docs/recall.md, with a margin for rounding on other machines."""
    total = Count()
    for said in read(DATA / "held_back.txt"):
        total.add(count(said, ENCODER))
    assert total.facts == 115
    assert total.found / total.kept >= 0.88
    assert total.found / total.facts >= 0.75


def test_a_clause_about_somebody_named_before_names_them() -> None:
    cases = [
        ("My sister Ann lives in Cork. She is a nurse.", "My sister Ann: She is a nurse"),
        ("Mi hermana Ana vive en Lugo. Es enfermera.", "Mi hermana Ana: Es enfermera"),
        ("我姐姐住在大连。她是护士。", "我姐姐：她是护士"),  # noqa: RUF001
    ]
    for message, expected in cases:
        assert expected in {found.text for found in kept(message)}, message


def test_a_short_reply_is_kept_with_its_question() -> None:
    cases = [
        ("Fine. Which database do you use?", "Postgres 16", "Which database do you use? Postgres 16"),
        ("Wo wohnen Sie?", "In Jena", "Wo wohnen Sie? In Jena"),
        ("Does that help?", "Yes, thanks", ""),
        ("Shall I go on?", "yes", ""),
        ("We use Postgres 16.", "ok", ""),
    ]
    for question, answer, expected in cases:
        found = extract_with_rules([("user", answer)], ENCODER, before=[("assistant", question)])
        assert [each.text for each in found] == ([expected] if expected else []), answer


def test_a_reply_to_nobodys_question_is_not_kept() -> None:
    asked = [("assistant", "Which database do you use?"), ("user", "Wait.")]
    assert extract_with_rules([("user", "Postgres 16")], ENCODER, before=asked) == []


def test_scratch_that_is_heard_in_sixteen_languages() -> None:
    """Measured on held-out messages, with all of Arabic, Hindi, Korean and Vietnamese; "remember that" does not take
    back.
    """
    held = [each for each in takings_back() if each.split == "held back"]
    heard = {each: only_takes_back(each.text, ENCODER) for each in held}
    is_right = [is_heard for each, is_heard in heard.items() if each.takes_back]
    mistaken = [is_heard for each, is_heard in heard.items() if not each.takes_back]
    assert len({each.language for each in held}) == 16
    assert sum(is_right) / len(is_right) >= 0.6
    assert sum(mistaken) / len(mistaken) <= 0.04


def test_short_statements_are_kept_and_short_remarks_are_not() -> None:
    """Half of them are statements, in four languages, all held out."""
    counts = [found_of(each, ENCODER, LEAST)[:3] for each in messages() if each.split == "held back, short"]
    facts, found, statements = (sum(column) for column in zip(*counts, strict=True))
    assert (len(counts), facts) == (52, 26)
    assert found / statements >= 0.9
    assert found / facts >= 0.8


def test_one_fact_is_one_candidate() -> None:
    cases = [
        ("I'm allergic to walnuts, so what can I bake for Sunday?", {"I'm allergic to walnuts"}),
        (
            "My project deadline is March 15 and I am vegetarian",
            {"My project deadline is March 15", "I am vegetarian"},
        ),
        (
            "I am vegetarian and my project deadline is March 15. What can I cook?",
            {"My project deadline is March 15", "I am vegetarian"},
        ),
        ("I live in Oslo and my wife teaches physics", {"I live in Oslo", "My wife teaches physics"}),
        ("I am vegetarian and I live in Bergen.", {"I am vegetarian", "I live in Bergen"}),
        (
            "Ich lebe in Oslo und meine Frau unterrichtet Physik.",
            {"Ich lebe in Oslo", "Meine Frau unterrichtet Physik"},
        ),
        ("Vivo en Oslo y soy vegetariano.", {"Vivo en Oslo", "Soy vegetariano"}),
        ("J'habite à Oslo et je suis végétarien.", {"J'habite à Oslo", "Je suis végétarien"}),
        ("Я живу в Осло и не ем мясо.", {"Я живу в Осло", "Не ем мясо"}),  # noqa: RUF001
        ("I live in Oslo.", {"I live in Oslo"}),
        ("I live in Oslo", {"I live in Oslo"}),
        ("I'm vegetarian.", {"I'm vegetarian"}),
        ("Deploy only before noon.", {"Deploy only before noon"}),
        ("Ich bin Vegetarierin, was kann ich kochen?", {"Ich bin Vegetarierin"}),
    ]
    for message, expected in cases:
        assert {found.text for found in kept(message)} == expected, message


def test_other_text_gives_no_candidate() -> None:
    texts = [
        "You're the innkeeper, I'm the wizard. I live in the tower above the lake.",
        "Translate into Spanish: I am allergic to penicillin and I live in Boston.",
        'My boss said: "I hate meetings and I love Excel." How do I reply?',
        "If I were vegetarian, what would I miss most?",
        "I'm so tired today.",
        "I never said that I live in Rome.",
        "My colleague says he never eats breakfast.",
        "My card is 4111 1111 1111 1111, it expires in May and I always pay with it.",
        "2026-03-01 12:03:11 INFO user=anna lives in Berlin",
        "> I am away until Monday.",
        "```\nI live in Rome\n```",
    ]
    for message in texts:
        assert kept(message) == [], message


def test_only_user_messages_are_read() -> None:
    for role in ("assistant", "system", "tool", "User"):
        assert extract_with_rules([(role, "I am vegetarian and I live in Berlin.")], ENCODER) == [], role


def test_a_statement_said_twice_is_one_candidate() -> None:
    assert len(kept("I am vegetarian.", "I am vegetarian!")) == 1


def test_what_was_taken_back_is_not_kept() -> None:
    assert not any(
        "Monday" in found.text for found in kept("My flight is on Monday. Scratch that, it's on Tuesday.")
    )


def test_at_most_eight_and_at_most_25_words() -> None:
    places = ("Rome", "Oslo", "Kiel", "Bonn", "Graz", "Linz", "Lyon", "Nice", "Cork")
    many = " ".join(f"I live in {place}." for place in places)
    assert len(kept(many)) <= MAX_CANDIDATES
    long = "I live in a house " + "with a garden and a tree and a lake " * 8
    assert all(len(found.text.split()) <= MAX_WORDS for found in kept(long))


def test_a_pasted_document_is_not_the_user() -> None:
    long_tail = "I am a baker.\n" + "Some text that was pasted here for you. " * 100 + "\nI am a pilot."
    assert "I am a pilot" not in {found.text for found in kept(long_tail)}


def test_sentences_are_split_at_their_ends() -> None:
    cases = [
        ("I met Dr. Lee at 5 p.m. today. It was fun.", ["I met Dr. Lee at 5 p.m. today.", "It was fun."]),
        ("See https://example.com/a.b?c=1. Thanks!", ["See https://example.com/a.b?c=1.", "Thanks!"]),
        ("I pay 3.50 a day. Cheap.", ["I pay 3.50 a day.", "Cheap."]),
        ("Am 12. Juni. Danke.", ["Am 12. Juni.", "Danke."]),
        ("我吃素。你呢？", ["我吃素。", "你呢？"]),  # noqa: RUF001
        ("One\nTwo", ["One", "Two"]),
        ("Really?! Yes.", ["Really?!", "Yes."]),
        ("", []),
    ]
    for text, expected in cases:
        assert [text[start:end] for start, end, _ in sentences(text)] == expected, text


def test_hostile_text_gives_no_long_statement() -> None:
    texts = [
        "my " * 800,
        "I am, " * 600,
        "and I " * 400,
        "((((" * 3000,
        "I like " + "x" * 10000,
        "\n" * 12000,
        "a. " * 800,
    ]
    for text in texts:
        assert all(len(found.text.split()) <= MAX_WORDS for found in kept(text)), text[:20]
