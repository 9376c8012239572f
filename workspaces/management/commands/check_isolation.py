"""`manage.py check_isolation`: whether the policies of this database keep people apart, tried on its own rows."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from memoryhub.management.database import running_database
from workspaces.isolation import policies, proof


class Command(BaseCommand):
    help = (
        "Ask every table with rows of somebody without any filter, as nobody and as some of the people here, and say "
        "what they see that is not theirs. Changes nothing; 1 if anything is wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--people", type=int, default=20, help="As how many people (20).")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.ROW_SECURITY:
            raise CommandError(
                "Set MEMORYHUB_ROW_SECURITY=on: without it, statements are not asked for anybody."
            )
        with running_database():
            said = [f"{each}: nobody has said whose its rows are." for each in policies.without_rule()]
            said = said or proof.troubles_with_role()
            said = said or proof.troubles_with_policies() + proof.troubles_with_rights()
            if not said:
                asked, said = proof.leaks(options["people"])
                self.stdout.write(
                    f"{asked.tables} tables were asked without a filter, as nobody and as {asked.people} people, "
                    f"who saw {asked.rows:,} rows."
                )
        for each in said:
            self.stdout.write(each)
        if said:
            raise CommandError(f"{len(said)} {'thing is' if len(said) == 1 else 'things are'} wrong.")
        self.stdout.write("None of them was another's.")
