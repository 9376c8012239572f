"""`manage.py doctor`: what is wrong with this installation, and what to do about it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from memoryhub.llm.probe import embedder_trouble
from memoryhub.management.troubles import troubles
from memoryhub.monitoring.health import UNKNOWN, check

WHAT_TO_DO = {
    "database": "Start MemoryHub with `make run`, or see that the server in DATABASE_URL answers.",
    "migrations": "Run `manage.py migrate` with the newest version that was started here.",
    "writes": "Make room on the database's disk, or name the primary in DATABASE_URL.",
    "queue": "See the failed jobs in the admin, and whether workers are busy (MEMORYHUB_WORKERS).",
    "worker": "Start MemoryHub, or `manage.py up --only worker` where parts run apart; its log is logs/worker.log.",
    "documents": "See whether workers run and are busy (MEMORYHUB_WORKERS), and logs/worker.log.",
    "model": "Try it on the page Connections; for the model of the settings see MEMORYHUB_LLM_BASE_URL.",
    "replica": "See its log, and the primary's pg_stat_replication. It is read from again when it has caught up.",
    "embedder": "See MEMORYHUB_EMBEDDING_BASE_URL, or run `make install` for the bundled one. Recall goes by words.",
}


class Command(BaseCommand):
    help = "Say in sentences what is wrong with this installation and what to do. Changes nothing; 1 if anything is."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        number = 0
        if not settings.EMBEDDING_BASE_URL:
            embedder_trouble()  # loads this process's own, which takes a busy machine longer than anyone waits below
        for name, part in check().parts.items():
            if part.ok:
                self.stdout.write(f"{name}: well")
            elif part == UNKNOWN:
                self.stdout.write(f"{name}: {part.why}.")
            else:
                number += 1
                self.stdout.write(f"{name}: {part.why}. {WHAT_TO_DO[name.split()[0]]}")
        for trouble in troubles():
            number += 1
            self.stdout.write(trouble)
        if number:
            raise CommandError(f"{number} {'thing needs' if number == 1 else 'things need'} attention.")
        self.stdout.write("Nothing is wrong.")
