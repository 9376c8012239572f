"""What two-factor sign-in rests on: allauth's secrets of authenticator apps and seeds of recovery codes, sealed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import generate_totp_secret
from django.db import transaction

from memoryhub import sealing

logger = logging.getLogger(__name__)


class MfaAdapter(DefaultMFAAdapter):
    def encrypt(self, text: str) -> str:
        return sealing.seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        """What no present key opens proves nobody: a secret that nobody knows stands in, and no code fits it."""
        try:
            return sealing.unseal(encrypted_text)
        except sealing.Unsealable:
            logger.error(
                "A two-factor secret was sealed with a key that is gone; its person cannot use it any more."
            )
            return generate_totp_secret()


def rewrite_secrets(rows: Any, change: Callable[[str], str]) -> int:
    """Put every secret of these rows (of authenticators, or of their table in a migration) through ``change``."""
    number = 0
    with transaction.atomic():
        for row in rows.select_for_update().order_by("pk").iterator():
            data = dict(row.data)
            for name in data.keys() & {"secret", "seed"}:
                data[name] = change(data[name])
            if "migrated_codes" in data:
                data["migrated_codes"] = [change(code) for code in data["migrated_codes"]]
            if data != row.data:
                row.data, number = data, number + 1
                row.save(update_fields=["data"])
    return number


def reseal() -> int:
    """Every secret under the first of the present keys; how many rows. One that none opens is left as it is."""

    def anew(sealed: str) -> str:
        try:
            return sealing.reseal(sealed)
        except sealing.Unsealable:
            return sealed

    return rewrite_secrets(Authenticator.objects.all(), anew)
