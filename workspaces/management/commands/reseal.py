"""Encrypt stored secrets with the first of MEMORYHUB_ENCRYPTION_KEYS: ``manage.py reseal``."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand
from django.db import transaction
from django.db.models import QuerySet

from memoryhub import encryption
from memoryhub.backup.archive import installation
from memoryhub.database.startup import running_database
from workspaces.accounts import two_factor
from workspaces.audit import Verb
from workspaces.models import AuditEvent, Connection, WaitingMail, Webhook


def reseal(rows: QuerySet[Any], column: str, **changes: Any) -> tuple[int, int]:
    """Encrypt the secrets in ``column`` with the first encryption key, and set the fields in ``changes`` on the same
    rows.

    Return the number of rows done, and of rows that no key decrypts.
    """
    done = lost = 0
    for pk in list(rows.values_list("pk", flat=True)):
        with transaction.atomic():
            for sealed in rows.select_for_update(of=("self",)).filter(pk=pk).values_list(column, flat=True):
                try:
                    done += rows.filter(pk=pk).update(**{column: encryption.reseal(sealed)}, **changes)
                except encryption.Unsealable:
                    lost += 1
    return done, lost


class Command(BaseCommand):
    help = (
        "Encrypt stored secrets (keys of models, authenticators, secrets of webhooks, unsent mail) again with the "
        "first of MEMORYHUB_ENCRYPTION_KEYS. The other keys can be removed afterwards. MemoryHub may be running."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        with running_database():
            keys, lost = reseal(Connection.objects.exclude(sealed_key=""), "sealed_key")
            authenticators = two_factor.reseal()
            # The previous secret is removed.
            dropped: dict[str, Any] = {"sealed_before": "", "before_until": None}
            hooks, lost_hooks = reseal(Webhook.objects.all(), "sealed_secret", **dropped)
            mails, lost_mails = reseal(WaitingMail.objects.all(), "sealed")
        self.stdout.write(
            f"{keys} keys of models, {authenticators} authenticators, {hooks} secrets of webhooks and {mails} mails "
            "that wait are under the first key."
        )
        for number, what, then in (
            (lost, "keys of models", "type them again"),
            (lost_hooks, "secrets of webhooks", "change them"),
            (lost_mails, "mails", "they will not be sent"),
        ):
            if number:
                self.stdout.write(f"{number} {what} are sealed with a key that is not there: {then}.")


def in_short() -> Iterator[str]:
    """Yield a warning if this host's keys do not decrypt the database's secrets. For ``manage.py doctor``."""
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
    """Yield all encrypted values except unsent mail, which is stored for a day at most."""
    authenticators = Authenticator.objects.values_list("data__secret", "data__seed")
    return chain(
        Connection.objects.exclude(sealed_key="").values_list("sealed_key", flat=True),
        Webhook.objects.values_list("sealed_secret", flat=True),
        (sealed for both in authenticators for sealed in both if sealed),
    )


def _opens(sealed: str) -> bool:
    try:
        encryption.unseal(sealed)
    except encryption.Unsealable:
        return False
    return True
