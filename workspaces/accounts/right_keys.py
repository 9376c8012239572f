"""Whether the keys of this host are those that the database was written with. Asked by `manage.py doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from allauth.mfa.models import Authenticator

from memoryhub import sealing
from memoryhub.backup.create import installation
from workspaces.audit import Verb
from workspaces.models import AuditEvent, Connection, Webhook


def in_short() -> Iterator[str]:
    if lost := sum(not _opens(sealed) for sealed in _secrets()):
        yield (
            f"keys: {lost} stored secrets (keys of models, authenticators, webhooks) open with no key of this host. "
            "Give it the MEMORYHUB_SECRET_KEY (the file secret-key) or MEMORYHUB_ENCRYPTION_KEYS of before."
        )
    last = AuditEvent.objects.filter(verb=Verb.BACKUP_MADE).order_by("-pk").first()
    if last and last.details.get("installation", installation()) != installation():
        yield (
            "keys: the last backup was made with another MEMORYHUB_FORGET_KEY (the file forget-key). With it what "
            "was forgotten for good is not known any more, and may be remembered again. Put the other one back."
        )


def _secrets() -> Iterator[str]:
    """Yield everything that is sealed, but mail: it waits for a day at most."""
    authenticators = Authenticator.objects.values_list("data__secret", "data__seed")
    return chain(
        Connection.objects.exclude(sealed_key="").values_list("sealed_key", flat=True),
        Webhook.objects.values_list("sealed_secret", flat=True),
        (sealed for both in authenticators for sealed in both if sealed),
    )


def _opens(sealed: str) -> bool:
    try:
        sealing.unseal(sealed)
    except sealing.Unsealable:
        return False
    return True
