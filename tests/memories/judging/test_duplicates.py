"""The duplicate guard: statements that differ in one fact stay apart, rewordings may merge."""

import pytest

from memories.judging.duplicates import may_merge, normalise
from memoryhub.llm.e5 import MultilingualEncoder
from memoryhub.llm.registry import Reader
from tests.bench.judging_data import Pair, pairs, swaps

READER = Reader(MultilingualEncoder())


def same(a: str, b: str) -> bool:
    return may_merge(a, b, READER)


@pytest.fixture(scope="module")
def judged() -> dict[Pair, bool]:
    """Judge every held-out pair."""
    return {pair: same(pair.a, pair.b) for pair in pairs() if pair.split != "fit"}


@pytest.mark.parametrize(("english", "caught", "mistaken"), [(True, 0.65, 0.01), (False, 0.5, 0.02)])
def test_rewordings_are_caught_and_edits_are_not_merged(
    judged: dict[Pair, bool], english: bool, caught: float, mistaken: float
) -> None:
    """The bounds are those of docs/figures.md, on unfitted pairs."""
    of = {pair: is_same for pair, is_same in judged.items() if (pair.language == "en") == english}
    rewordings = [is_same for pair, is_same in of.items() if pair.same]
    edits = [is_same for pair, is_same in of.items() if pair.kind in "!r"]
    inside = [is_same for pair, is_same in of.items() if pair.kind == "-"]
    assert min(len(rewordings), len(edits), len(inside)) >= 50
    assert sum(rewordings) / len(rewordings) >= caught
    assert sum(edits) / len(edits) <= mistaken
    assert sum(inside) / len(inside) <= 0.12


@pytest.mark.parametrize("split", ["open", "counted"])
def test_people_who_change_places_and_what_is_over_stay_apart_in_sixteen_languages(split: str) -> None:
    """Rewordings with the same roles, such as passives and symmetric sentences, are still merged."""
    merged = {pair: same(pair.a, pair.b) for pair in swaps() if pair.split == split}
    assert len({pair.language for pair in merged}) == 16
    edits = [is_merged for pair, is_merged in merged.items() if not pair.same]
    rewordings = [is_merged for pair, is_merged in merged.items() if pair.same]
    assert sum(edits) / len(edits) <= 0.01
    assert sum(rewordings) / len(rewordings) >= (0.85 if split == "counted" else 0.8)


def test_the_guard_is_symmetric(judged: dict[Pair, bool]) -> None:
    """Every fifth pair is judged the other way round as well."""
    pairs_in_turn = list(judged.items())[::5]
    assert [pair for pair, is_same in pairs_in_turn if same(pair.b, pair.a) != is_same] == []


def test_two_sides_of_is_may_change_places_but_not_with_what_belongs_to_them() -> None:
    turned = (
        ["Green is my favourite colour", "My favourite colour is green."],
        ["Mein Chef ist Jens", "Jens ist mein Chef"],
    )
    apart = ["Anna is Ben's boss", "Ben is Anna's boss"], ["Anna met Ben's boss", "Ben met Anna's boss"]
    assert [same(a, b) for a, b in (*turned, *apart)] == [True, True, False, False]


def test_without_an_encoder_only_the_same_words_merge() -> None:
    assert may_merge("I am vegan.", "i am  Vegan", None)
    assert not may_merge("I am vegan", "I'm a vegan", None)


def test_the_subject_that_extraction_adds_is_ignored_in_each_language() -> None:
    cases = [
        ("User is vegan", "is vegan"),
        ("Der Nutzer ist Veganer", "Ist Veganer"),
        ("El usuario es vegano", "Es vegano"),
        ("L'utilisatrice est végane", "est végane"),
        ("用户是素食者", "是素食者"),
        ("ユーザーは東京に住んでいる", "東京に住んでいる"),
        ("Пользователь живёт в Казани", "живёт в Казани"),
    ]
    for named, plain in cases:
        assert may_merge(named, plain, None) and may_merge(plain, named, None), named
        assert not may_merge(named, f"{named[:-1]}x", None), named


def test_rewordings_may_merge() -> None:
    cases = [
        ("I am vegetarian", "I'm a vegetarian."),
        ("The launch is on March 15.", "The launch is on 15 March."),
        ("The launch is on 2025-03-15.", "The launch is on March 15, 2025."),
        ("I have 2 cats", "I have two cats"),
        ("I get up at 6:30 am", "I get up at 06:30"),
        ("Ann wrote the report", "The report was written by Ann"),
        ("In Paris I met Ann", "I met Ann in Paris"),
        ("Ben's work is admired by Anna", "Anna admires Ben's work"),
        ("Anna and Ben are married", "Ben and Anna are married"),
        ("Anna met Ben", "Ben met Anna"),
        ("\uff29\uff21\uff2d vegan", "iam vegan"),
    ]
    for a, b in cases:
        assert same(a, b), (a, b)


def test_different_facts_in_similar_words_stay_apart() -> None:
    cases = [
        ("I have two cats and three dogs", "I have three cats and two dogs"),
        ("Tom lent me money", "I lent Tom money"),
        ("My brother taught me chess", "I taught my brother chess"),
        ("Ann was hired by Bob", "Ann hired Bob"),
        ("Anna admires Ben's work", "Ben admires Anna's work"),
        ("Ben's work is admired by Anna", "Ben admires Anna's work"),
        ("Li Wei reviews Zhang Min's work", "Zhang Min reviews Li Wei's work"),
        ("My brother is my boss's manager", "My boss is my brother's manager"),
        ("Carla is an employee", "Carla is a former employee"),
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
    ]
    for a, b in cases:
        assert not same(a, b), (a, b)


def test_normalise() -> None:
    cases = [
        ("  I am   Vegan. ", "i am vegan"),
        ("I am\n\tvegan!!!", "i am vegan"),
        ("Straße", "strasse"),
        ("\uff26\uff35\uff2c\uff2c width", "full width"),
        ("Is it?", "is it?"),
        ("e.g. tea;", "e.g. tea"),
        ("...", ""),
        ("", ""),
        ("Ǆ", "dž"),
    ]
    for text, expected in cases:
        assert normalise(text) == expected, text
    for text in ("I AM Vegan.", "ﬁne", "İstanbul", "Å", "x" * 5000, "\u1e9e", "½ cup"):
        assert normalise(normalise(text)) == normalise(text), text[:20]


def test_odd_texts_can_be_compared() -> None:
    texts = [
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
    ]
    for text in texts:
        assert same(text, text), text[:20]
        assert isinstance(same(text, "I am vegan"), bool), text[:20]
