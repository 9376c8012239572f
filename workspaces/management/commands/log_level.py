"""`manage.py log_level`: what is logged, changed everywhere without a restart, and back by itself."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from memoryhub.monitoring import log_levels
from workspaces import audit


class Command(BaseCommand):
    help = (
        "Change the level of one of MemoryHub's loggers in all processes on all hosts, for some minutes. "
        "Without a logger: say which are changed. Never shows what people wrote."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("logger", nargs="?", help="as modules are called, such as memories.recalling")
        parser.add_argument("level", nargs="?", default="DEBUG", help=", ".join(log_levels.LEVELS))
        parser.add_argument("--minutes", type=int, default=30, help="after which it is as before (30)")
        parser.add_argument("--back", action="store_true", help="everything as the settings have it, now")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        logger, level, minutes = options["logger"], options["level"].upper(), options["minutes"]
        with transaction.atomic():
            if options["back"]:
                log_levels.set_back(now=now)
                audit.record(audit.Verb.LOGGING_CHANGED, by=None, details={"level": "as_set"})
            elif logger:
                try:
                    log_levels.set_level(logger, level, minutes=minutes, now=now)
                except log_levels.NoSuchLevel as error:
                    raise CommandError(str(error)) from None
                details = {"logger": logger, "level": level, "minutes": minutes}
                audit.record(audit.Verb.LOGGING_CHANGED, by=None, details=details)
        found = log_levels.wanted(now)
        for name, (level, until) in sorted(found.items()):
            self.stdout.write(f"{name}: {level} until {until:%H:%M:%S} UTC")
        if not found:
            self.stdout.write("Everything is logged as the settings say.")
