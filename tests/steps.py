"""Single migrations taken back and done again, on the tables of today and with the models of their time.

Django goes there and back through every step between, and renders every model anew for each of them.
"""

from __future__ import annotations

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

Step = tuple[str, str]  # app and name


def take_back(*steps: Step) -> None:
    """One after the other, the newest first."""
    executor = MigrationExecutor(connection)
    for step in steps:
        state = executor.loader.project_state(step, at_end=False)
        executor.unapply_migration(state, executor.loader.get_migration(*step))


def do_again(*steps: Step) -> None:
    """Those of these that are not done, in this order: what a run that was killed had done is done."""
    executor = MigrationExecutor(connection)
    for step in steps:
        if step not in executor.loader.applied_migrations:
            state = executor.loader.project_state(step, at_end=False)
            executor.apply_migration(state, executor.loader.get_migration(*step))
