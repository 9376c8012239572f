"""Encryption of stored secrets with keys that can be rotated.

Fernet (AES-128-CBC with HMAC-SHA-256) with keys derived from ``ENCRYPTION_KEYS``, or from the secret key where none are
set. The first key seals, every one unseals: a new key goes in front, and when ``manage.py reseal`` has run the old
one can go. Who reads the database alone has nothing in hand: the keys lie in the environment or the data folder.
"""

from __future__ import annotations

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unsealable(Exception):
    """Sealed with a key that is not among the present ones, or no sealed text at all."""


def seal(text: str) -> str:
    """Encrypt a text. The result is ASCII, about 4/3 of its bytes and 100 more, different each time."""
    return _box().encrypt(text.encode()).decode("ascii")


def unseal(sealed: str) -> str:
    """Decrypt a text. Raises Unsealable if no present key fits or it was altered."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unsealable("Not sealed with a key of this installation.") from None


def reseal(sealed: str) -> str:
    """Encrypt the secret again with the first of the present keys. Raises as ``unseal``."""
    return seal(unseal(sealed))


def _box() -> MultiFernet:
    return _made_of(tuple(settings.ENCRYPTION_KEYS) or (settings.SECRET_KEY,))


@lru_cache(maxsize=4)
def _made_of(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(key: str) -> bytes:
    """Derive 32 bytes from the key for this purpose alone, so that other uses of the key reveal nothing."""
    made = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"memoryhub.encryption").derive(key.encode())
    return base64.urlsafe_b64encode(made)
