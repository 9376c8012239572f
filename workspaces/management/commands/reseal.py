"""Move stored secrets under the first of the present keys: ``manage.py reseal``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from memoryhub.management.database import running_database
from workspaces.accounts import two_factor
from workspaces.connections.actions import reseal_keys
from workspaces.webhooks.hooks import reseal_secrets


class Command(BaseCommand):
    help = (
        "Encrypt stored secrets (keys of models, authenticators, secrets of webhooks) anew under the first of "
        "MEMORYHUB_ENCRYPTION_KEYS. After it the other keys may go. Can run beside a running MemoryHub, and twice."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        with running_database():
            keys, lost = reseal_keys()
            authenticators = two_factor.reseal()
            hooks, lost_hooks = reseal_secrets()
        self.stdout.write(
            f"{keys} keys of models, {authenticators} authenticators and {hooks} secrets of webhooks "
            "are under the first key."
        )
        if lost:
            self.stdout.write(
                f"{lost} keys of models are sealed with a key that is not there: type them again."
            )
        if lost_hooks:
            self.stdout.write(
                f"{lost_hooks} secrets of webhooks are sealed with a key that is not there: change them."
            )
