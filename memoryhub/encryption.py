"""Encryption of stored secrets, with key rotation.

Uses Fernet (AES-128-CBC with HMAC-SHA-256) with keys derived from ``ENCRYPTION_KEYS`` or, if that is empty, from the
secret key. The first key encrypts, and all keys decrypt. To rotate, put a new key first, run ``manage.py reseal`` and
remove the old key. The database alone does not reveal secrets, because the keys are in the environment or data folder.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unsealable(Exception):
    """Raised for text that none of the current keys can decrypt."""


def seal(text: str) -> str:
    """Encrypt a text. The result is ASCII, about 4/3 of the text's bytes plus 100, and differs each time."""
    return _box().encrypt(text.encode()).decode("ascii")


def unseal(sealed: str) -> str:
    """Decrypt a text. Raises Unsealable if no current key fits or the text was altered."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unsealable("Not sealed with a key of this installation.") from None


def reseal(sealed: str) -> str:
    """Encrypt a secret again with the first key. Raises Unsealable if no current key decrypts it."""
    return seal(unseal(sealed))


def _box() -> MultiFernet:
    return _made_of(tuple(settings.ENCRYPTION_KEYS) or (settings.SECRET_KEY,))


@lru_cache(maxsize=4)
def _made_of(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(key: str) -> bytes:
    """Derive a Fernet key that is used only here, so that other uses of the configured key do not reveal it."""
    derived_key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"memoryhub.encryption").derive(
        key.encode()
    )
    return base64.urlsafe_b64encode(derived_key)
