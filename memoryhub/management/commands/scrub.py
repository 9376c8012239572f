"""`manage.py scrub`: remove forgotten data from the database's files too."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from memoryhub.backup.dump import kept_of_before
from memoryhub.database.startup import psycopg_settings, running_database
from memoryhub.local.scrubbing import ScrubError, scrub

ELSEWHERE = """DATABASE_URL names a server of your own, and only who runs it can reach its files. There: VACUUM
(FULL, FREEZE) every table and pg_statistic, ANALYZE; then set wal_recycle = off for the server, SELECT pg_switch_wal()
and CHECKPOINT until every old segment is gone; and see to replicas, archived WAL and backups. Nothing was done."""
DONE = """Done in {seconds:.0f} s: what was deleted before is in no file of the database any more ({folder}).
Backups and copies made earlier keep what they hold."""


class Command(BaseCommand):
    help = (
        "Remove what was deleted from the embedded database's files as well: pages, statistics and log. Works while "
        "MemoryHub runs; a table is locked while it is written anew."
    )
    requires_system_checks = []  # the database may not be running yet

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EMBEDDED_DATABASE:
            raise CommandError(ELSEWHERE)
        began = time.monotonic()
        with running_database():
            try:
                scrub(psycopg_settings(), self.stdout.write)
                with psycopg.connect(**psycopg_settings()) as connection:
                    kept = kept_of_before(connection)
            except ScrubError as error:
                raise CommandError(str(error)) from error
        seconds = time.monotonic() - began
        if kept:
            raise CommandError(f"Done in {seconds:.0f} s, but for one database: {kept}. Then run this again.")
        self.stdout.write(DONE.format(seconds=seconds, folder=settings.DATA_DIR))
