"""Move stored secrets under the first of the present keys: ``manage.py reseal``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from memoryhub.management.database import running_database
from workspaces.accounts import two_factor
from workspaces.connections.actions import reseal_keys


class Command(BaseCommand):
    help = (
        "Encrypt stored secrets (keys of models, authenticators) anew under the first of MEMORYHUB_ENCRYPTION_KEYS. "
        "After it the other keys may go. Can run beside a running MemoryHub, and twice."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        with running_database():
            keys, lost = reseal_keys()
            authenticators = two_factor.reseal()
        self.stdout.write(
            f"{keys} keys of models and {authenticators} authenticators are under the first key."
        )
        if lost:
            self.stdout.write(
                f"{lost} keys of models are sealed with a key that is not there: type them again."
            )
