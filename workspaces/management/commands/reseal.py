"""Move stored secrets under the first of the present keys: ``manage.py reseal``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from memoryhub.database.startup import running_database
from workspaces.accounts import mailing, two_factor
from workspaces.connections.actions import reseal_keys
from workspaces.webhooks.hooks import reseal_secrets


class Command(BaseCommand):
    help = (
        "Encrypt stored secrets (keys of models, authenticators, secrets of webhooks, mail that waits) anew under the "
        "first of MEMORYHUB_ENCRYPTION_KEYS. After it the other keys may go. Can run beside a running MemoryHub, and "
        "twice."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        with running_database():
            keys, lost = reseal_keys()
            authenticators = two_factor.reseal()
            hooks, lost_hooks = reseal_secrets()
            mails, lost_mails = mailing.reseal()
        self.stdout.write(
            f"{keys} keys of models, {authenticators} authenticators, {hooks} secrets of webhooks and {mails} mails "
            "that wait are under the first key."
        )
        if lost:
            self.stdout.write(
                f"{lost} keys of models are sealed with a key that is not there: type them again."
            )
        if lost_hooks:
            self.stdout.write(
                f"{lost_hooks} secrets of webhooks are sealed with a key that is not there: change them."
            )
        if lost_mails:
            self.stdout.write(
                f"{lost_mails} mails are sealed with a key that is not there: they will not be sent."
            )
