"""Extraction by rules: what users say of themselves is found whole, everything else is left alone."""

import pytest

from memories.judging.extraction.candidates import MAX_CANDIDATES, MAX_WORDS
from memories.judging.extraction.rules import extract_with_rules
from memories.judging.extraction.sentences import sentences
from tests.memories.extraction_sentences import FOUND, NOTHING


@pytest.mark.parametrize(("message", "expected"), FOUND)
def test_statements_of_the_user_are_found(message: str, expected: dict[str, str]) -> None:
    assert {found.text: found.kind for found in extract_with_rules([("user", message)])} == expected


@pytest.mark.parametrize("message", NOTHING)
def test_nothing_is_made_of_anything_else(message: str) -> None:
    assert extract_with_rules([("user", message)]) == []


@pytest.mark.parametrize("role", ["assistant", "system", "tool", "User"])
def test_only_user_messages_are_read(role: str) -> None:
    assert extract_with_rules([(role, "I am vegetarian and I live in Berlin.")]) == []


def test_what_was_to_be_remembered_weighs_more() -> None:
    (plain,) = extract_with_rules([("user", "I live in Oslo.")])
    (asked,) = extract_with_rules([("user", "Remember that I live in Oslo.")])
    assert asked.importance > plain.importance


def test_a_statement_said_twice_is_one_candidate() -> None:
    messages = [
        ("user", "I am vegetarian."),
        ("assistant", "Noted."),
        ("user", "As I said, I am vegetarian!"),
    ]
    assert len(extract_with_rules(messages)) == 1


def test_a_joke_takes_back_what_was_just_said() -> None:
    assert extract_with_rules([("user", "I am a dentist. Just kidding!")]) == []


def test_at_most_eight_and_at_most_25_words() -> None:
    many = " ".join(f"I live in City{chr(65 + i)}." for i in range(20))
    assert len(extract_with_rules([("user", many)])) == MAX_CANDIDATES
    long = "I live in a house " + "with a garden and a tree and a lake " * 20
    assert all(len(found.text.split()) <= MAX_WORDS for found in extract_with_rules([("user", long)]))


def test_a_long_statement_is_cut_at_the_end_of_a_clause() -> None:
    message = (
        "I work as a nurse in the largest hospital of the city, which was built in 1950 by an architect whose "
        "name nobody remembers today although his houses are everywhere in this country."
    )
    (found,) = extract_with_rules([("user", message)])
    assert found.text == "I work as a nurse in the largest hospital of the city"


def test_a_pasted_document_is_not_the_user() -> None:
    pasted = "Please have a look at this.\n" + "I am the director of a company and I live in Rome.\n" * 100
    long_tail = "I am a baker.\n" + "Some text that was pasted here for you. " * 100 + "\nI am a pilot."
    assert [found.text for found in extract_with_rules([("user", long_tail)])] == ["I am a baker"]
    assert len(extract_with_rules([("user", pasted)])) <= 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Dr. Lee at 5 p.m. today. It was fun.", ["I met Dr. Lee at 5 p.m. today.", "It was fun."]),
        ("See https://example.com/a.b?c=1. Thanks!", ["See https://example.com/a.b?c=1.", "Thanks!"]),
        ("I pay 3.50 a day. Cheap.", ["I pay 3.50 a day.", "Cheap."]),
        ("One\nTwo", ["One", "Two"]),
        ("I live in the U.S. I like it.", ["I live in the U.S.", "I like it."]),
        ("Really?! Yes.", ["Really?!", "Yes."]),
        ("", []),
    ],
)
def test_sentences_end_where_they_end(text: str, expected: list[str]) -> None:
    assert list(sentences(text)) == expected


@pytest.mark.parametrize(
    "text",
    ["my " * 5000, "I am " * 3000, "and I " * 2000, "((((" * 3000, "I like " + "x" * 10000, "\n" * 12000],
)
def test_hostile_text_gives_no_long_statement(text: str) -> None:
    assert all(len(found.text.split()) <= MAX_WORDS for found in extract_with_rules([("user", text)]))
