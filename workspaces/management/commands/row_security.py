"""`manage.py row_security --enable | --disable`: policies of Postgres for every table with rows of somebody."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from memoryhub.management.database import running_database
from workspaces.isolation import policies


class Command(BaseCommand):
    help = (
        "Make the role and the policies that keep people's rows apart in the database itself, or take them away. "
        "May be run again at any time, and must be after migrating; MEMORYHUB_ROW_SECURITY=on uses them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--enable", action="store_true", help="Make them, or bring them up to date.")
        what.add_argument("--disable", action="store_true", help="Take them away.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["disable"] and settings.ROW_SECURITY:
            raise CommandError("Unset MEMORYHUB_ROW_SECURITY first: with it, nobody would see anything.")
        with running_database():
            try:
                self.stdout.write(_enable() if options["enable"] else _disable())
            except DatabaseError as error:
                raise CommandError(f"Nothing was changed. {str(error).strip()}") from error


def _enable() -> str:
    if missing := policies.without_rule():
        raise CommandError(
            f"Nothing was changed. Of whose rows these have nobody has said: {', '.join(missing)}."
        )
    changed = policies.enable()
    done = len(changed.guarded) + len(changed.opened)
    return f"{done} tables were brought up to date." if done else "Everything stood as it should."


def _disable() -> str:
    return f"The policies of {policies.disable()} tables are gone."
