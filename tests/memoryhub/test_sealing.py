import pytest
from pytest_django.fixtures import Settings

from memoryhub.encryption import Unsealable, reseal, seal, unseal

OLD, NEW = "o" * 40, "n" * 40


def test_what_is_sealed_can_be_read_again_and_does_not_show() -> None:
    for text in ("sk-abc", "", "schlüssel 🔑", "x" * 10_000):
        sealed = seal(text)
        assert sealed.isascii(), text
        assert not text or text not in sealed
        assert unseal(sealed) == text


def test_the_same_text_is_sealed_differently_each_time() -> None:
    assert seal("sk-abc") != seal("sk-abc")


def test_what_was_never_sealed_is_refused() -> None:
    for wrong in ("", "sk-abc", "gAAAAABm", "schlüssel", "\x00"):
        with pytest.raises(Unsealable):
            unseal(wrong)


def test_a_changed_text_is_refused() -> None:
    sealed = seal("sk-abc")
    middle = len(sealed) // 2
    with pytest.raises(Unsealable):
        unseal(sealed[:middle] + ("A" if sealed[middle] != "A" else "B") + sealed[middle + 1 :])


def test_the_error_does_not_quote_what_it_could_not_read() -> None:
    with pytest.raises(Unsealable) as raised:
        unseal("sk-abc-in-the-clear")
    assert "sk-abc" not in str(raised.value)


def test_a_new_key_in_front_seals_and_the_old_one_still_unseals(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [OLD]
    old = seal("sk-abc")
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    assert unseal(old) == "sk-abc"
    moved = reseal(old)
    settings.ENCRYPTION_KEYS = [NEW]
    assert unseal(moved) == "sk-abc"
    with pytest.raises(Unsealable):
        unseal(old)


def test_without_keys_the_secret_key_seals_and_may_later_stand_among_them(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS, settings.SECRET_KEY = [], OLD
    sealed = seal("sk-abc")
    settings.ENCRYPTION_KEYS, settings.SECRET_KEY = [NEW, OLD], "another" * 6
    assert unseal(sealed) == "sk-abc"
