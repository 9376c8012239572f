"""The share of a corpus that the filter catches, and talk that must pass. The corpus is older than the rules.

The rules were written with one half of the corpus in view. The other half was measured afterwards; its figures are
those to expect for unknown text, and must not get worse.
"""

import pytest

from memories.judging.secret_filter import find_personal, find_secret
from tests.memories import secret_corpus_ids as ids
from tests.memories import secret_corpus_outsider as outsider
from tests.memories.secret_corpus import HALVES, corpus

TUNED_ON, HELD_BACK = HALVES
# Least numbers of credentials and of personal numbers caught.
CAUGHT = {TUNED_ON: (65, 55), HELD_BACK: (58, 52)}


@pytest.mark.parametrize("which", HALVES)
def test_as_much_is_caught_as_when_the_rules_were_made(which: str) -> None:
    credentials, personal, _ = corpus(which)
    assert (len(credentials), len(personal)) == (66, 55)
    refused = [text for text in credentials if find_secret(text)]
    asked = [text for text in personal if find_secret(text) or find_personal(text)]
    least_refused, least_asked = CAUGHT[which]
    assert len(refused) >= least_refused and len(asked) >= least_asked


@pytest.mark.parametrize("which", HALVES)
def test_talk_about_secrets_and_numbers_passes_in_every_language(which: str) -> None:
    _, _, talk = corpus(which)
    assert len(talk) > 140
    assert [line for line in talk if find_secret(line) or find_personal(line)] == []
    together = "\n".join(talk)
    assert find_personal(together) is None


@pytest.mark.parametrize(("held_back", "least", "most"), [(False, 74, 0), (True, 55, 1)])
def test_a_labelled_number_of_identity_is_asked_about_valid_or_not(
    held_back: bool, least: int, most: int
) -> None:
    asked = [line for line in ids.half(ids.ASKED, held_back=held_back) if find_personal(line)]
    alarms = [line for line in ids.half(ids.TALK, held_back=held_back) if find_personal(line)]
    assert len(asked) >= least and len(alarms) <= most


def test_a_credential_an_outsider_brought_is_refused() -> None:
    for text in outsider.CREDENTIALS:
        assert find_secret(text) is not None, text


def test_a_number_an_outsider_brought_is_asked_about() -> None:
    for text in outsider.PERSONAL:
        assert find_personal(text) is not None, text


@pytest.mark.parametrize(("part", "least"), [(outsider.TUNED_ON, 15), (outsider.HELD_BACK, 15)])
def test_variants_of_an_outsiders_lines_are_told_too(part: list[tuple[str, str]], least: int) -> None:
    assert sum(_is_told(kind, text) for kind, text in part) >= least


def _is_told(kind: str, text: str) -> bool:
    """Return whether the text is classified right. A personal number may be refused as a credential as well."""
    if kind == "credential":
        return find_secret(text) is not None
    return (find_secret(text) is None and find_personal(text) is None) == (kind == "talk")


def test_talk_near_to_what_an_outsider_brought_passes() -> None:
    for text in [*outsider.TALK, *outsider.MORE_TALK]:
        assert find_secret(text) is None and find_personal(text) is None, text


@pytest.mark.parametrize("which", HALVES)
def test_a_finding_stands_where_the_number_is(which: str) -> None:
    for text in corpus(which)[1]:
        if finding := find_personal(f"Élan — {text} …"):
            assert 7 <= finding.start < finding.end <= len(text) + 9
            assert any(char.isalnum() for char in f"Élan — {text} …"[finding.start : finding.end])


def test_what_only_resembles_a_personal_number_passes() -> None:
    texts = [
        "4111 1111 1111 1112", "order 4111111111111112", "1234 5678 9012 3452", "timestamp 1700000000000",
        "GB82 WEST 1234 5698 7654 33", "DE89 3704 0044 0532 0130 01", "000-12-3456", "666-12-3456", "536-00-4399",
        "900-12-3456", "390.533.447-06", "971013-9019903", "RCCMNL83S18D969X", "360426199101010070",
        "the card with 16 digits", "my card 1234", "PIN 47", "the PIN is 4,711 miles long", "PIN: 4711-0815-22",
        "security code 123", "in week 482913 of the code", "recovery code below", "passport number", "CVV: ***",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 is the wallet app's checksum",
        "ISBN 978-3-16-148410-0", "+49 170 1234567", "1Z999AA10123456784", "550e8400-e29b-41d4-a716-446655440000",
        "2024-03-15 12:30:45", "4000 people and 1234 dogs", "IT department 12345678901", "RF18 5390 0754 7034",
    ]  # fmt: skip
    for text in texts:
        assert find_personal(text) is None, text


def test_a_dress_hides_no_personal_number() -> None:
    texts = [
        "4\u200b111 1111 1111 1111", "４１１１ １１１１ １１１１ １１１１", "card ٤١١١ ١١١١ ١١١١ ١١١١",
        "4111\u00a01111\u00a01111\u00a01111", "4111–1111–1111–1111",
        "iban:DE89370400440532013000", "PIN&#58; 4711", "my p\u0456n is 4711", "de89370400440532013000",
        "see (4111111111111111).", "**PIN**: 4711", "`4111111111111111`", "pin=4711", '{"pin": "4711"}', "PIN\n4711",
    ]  # fmt: skip
    for text in texts:
        assert find_personal(text) is not None, text


def test_more_candidates_than_talk_can_hold_are_one() -> None:
    walls = ["my pin is on {:04} ", "4{:015} ", "DE{:02} 3704 0044 0532 0130 0{} ", "pesel {:011} "]
    for wall in walls:
        text = "".join(wall.format(number, number % 10) for number in range(30_000) if number % 7)
        assert find_personal(text) is not None


def test_words_of_a_wallets_list_are_a_phrase_only_in_a_row_of_different_ones() -> None:
    phrase = "ozone drill grab fiber curtain grace pudding thank cruise elder eight picnic"
    for text in (
        phrase,
        phrase.upper(),
        phrase.replace(" ", ", "),
        phrase.replace(" ", "\n"),
        "x " * 50 + phrase,
    ):
        finding = find_secret(text)
        assert finding is not None and finding.kind == "seed_phrase"
    assert find_secret("word " * 1000) is None
    assert find_secret(phrase.replace(" grace", " of grace")) is None
    assert find_secret(" ".join(phrase.split()[:11])) is None
