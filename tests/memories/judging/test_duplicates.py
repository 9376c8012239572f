"""The guard beside the cosine: statements that differ in one fact stay apart, honest rewordings may merge."""

import pytest

from memories.judging.duplicates import may_merge, normalise
from tests.memories.duplicate_pairs import EDITS, edits, held_out, rewordings


@pytest.mark.parametrize("kind", EDITS)
def test_no_edit_is_taken_for_a_duplicate(kind: str) -> None:
    assert len(edits(kind)) >= 40
    assert [pair for pair in edits(kind) if may_merge(*pair)] == []


def test_no_held_out_edit_is_taken_for_a_duplicate() -> None:
    pairs, _ = held_out()
    assert [pair for pair in pairs if may_merge(*pair)] == []


@pytest.mark.parametrize("pairs", [rewordings(), held_out()[1]])
def test_most_honest_rewordings_may_merge(pairs: list[tuple[str, str]]) -> None:
    assert sum(may_merge(*pair) for pair in pairs) / len(pairs) >= 0.7


def test_the_guard_is_symmetric() -> None:
    pairs = [pair for kind in EDITS for pair in edits(kind)] + rewordings() + held_out()[0] + held_out()[1]
    assert [(a, b) for a, b in pairs if may_merge(a, b) != may_merge(b, a)] == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("I am vegetarian", "I'm a vegetarian."),
        ("We use PostgreSQL.", "we use postgres"),
        ("The launch is on March 15.", "The launch is on 15 March."),
        ("The launch is on 2025-03-15.", "The launch is on March 15, 2025."),
        ("I have 2 cats", "I have two cats"),
        ("I pay 5% interest", "I pay five percent interest"),
        ("The rent is $1,200", "The rent is 1200 dollars"),
        ("I get up at 6:30 am", "I get up at 06:30"),
        ("I have twenty-five books", "I have 25 books"),
        ("It seats two hundred people", "It seats 200 people"),
        ("I speak Turkish and Dutch", "I speak Dutch and Turkish"),
        ("Ann wrote the report", "The report was written by Ann"),
        ("Tom is my brother", "My brother is Tom"),
        ("In Paris I met Ann", "I met Ann in Paris"),
        ("I can't eat nuts", "I cannot eat nuts"),
        ("\uff29\uff21\uff2d vegan", "iam vegan"),
    ],
)
def test_the_same_said_otherwise_may_merge(a: str, b: str) -> None:
    assert may_merge(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("I have two cats and three dogs", "I have three cats and two dogs"),
        ("Tom lent me money", "I lent Tom money"),
        ("My brother taught me chess", "I taught my brother chess"),
        ("Ann was hired by Bob", "Ann hired Bob"),
        ("I like tea but not coffee", "I like coffee but not tea"),
        ("She is a nurse", "He is a nurse"),
        ("I lived in Rome", "I no longer live in Rome"),
        ("I live in Berlin", "I live in Berlin and work in Potsdam"),
        ("The meeting is at 3pm", "The meeting is at 3am"),
        ("We ship v2", "We ship v3"),
        ("The patient is able to walk", "The patient is unable to walk"),
        ("That was careful", "That was careless"),
        ("It is 5 km", "It is 5 miles"),
        ("Only Ann has the key", "Ann has the key"),
        ("Most guests are vegan", "Some guests are vegan"),
        ("I will be there in May", "I may be there"),
        ("Is the launch on Friday?", "The launch is on Monday"),
        ("", "I am vegan"),
    ],
)
def test_something_else_in_nearly_the_same_words_stays_apart(a: str, b: str) -> None:
    assert not may_merge(a, b)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  I am   Vegan. ", "i am vegan"),
        ("I am\n\tvegan!!!", "i am vegan"),
        ("Straße", "strasse"),
        ("\uff26\uff35\uff2c\uff2c width", "full width"),
        ("Is it?", "is it?"),
        ("e.g. tea;", "e.g. tea"),
        ("...", ""),
        ("", ""),
        ("Ǆ", "dž"),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize("text", ["I AM Vegan.", "ﬁne", "İstanbul", "Å", "x" * 5000, "\u1e9e", "½ cup"])
def test_normalise_is_stable(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "?!",
        "a",
        "the",
        "2",
        "$",
        "'s",
        "n't",
        "not",
        "5 5 5",
        "€",
        "二",
        "😀",
        "I like " * 300,
        "x" * 2000,
        "1 " * 900,
    ],
)
def test_odd_texts_are_compared_without_trouble(text: str) -> None:
    assert may_merge(text, text)
    assert isinstance(may_merge(text, "I am vegan"), bool)
