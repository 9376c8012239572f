"""Django's ``migrate``, with each migration and its record in one transaction."""

from contextlib import nullcontext
from typing import Any

from django.core.management.commands import migrate
from django.db import transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.migration import Migration
from django.db.migrations.state import ProjectState


class OneTransactionExecutor(MigrationExecutor):
    """Commits each migration with its record, so that a process killed in between does not apply it twice."""

    def apply_migration(
        self, state: ProjectState, migration: Migration, *args: Any, **kwargs: Any
    ) -> ProjectState:
        with transaction.atomic(self.connection.alias) if migration.atomic else nullcontext():
            return super().apply_migration(state, migration, *args, **kwargs)


migrate.MigrationExecutor = OneTransactionExecutor  # type: ignore[attr-defined]  # the name that its command uses


class Command(migrate.Command):
    """Django's command, which uses ``OneTransactionExecutor`` because of the assignment above."""
