"""Secrets and signatures of Standard Webhooks: symmetric, ``v1``."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable
from datetime import datetime

PREFIX = "whsec_"
BYTES = 32  # the specification asks for 24 to 64


def new_secret() -> str:
    return PREFIX + b64encode(secrets.token_bytes(BYTES)).decode()


def headers_of(message_id: str, body: bytes, keys: Iterable[str], *, now: datetime) -> dict[str, str]:
    """Return the headers that a receiver verifies, with a signature under each secret, to change one at leisure."""
    stamp = str(int(now.timestamp()))
    signed = f"{message_id}.{stamp}.".encode() + body
    signatures = (
        hmac.new(b64decode(key.removeprefix(PREFIX)), signed, hashlib.sha256).digest() for key in keys
    )
    return {
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(f"v1,{b64encode(each).decode()}" for each in signatures),
    }
