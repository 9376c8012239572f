"""`manage.py up`: everything that MemoryHub needs, under one supervisor. `make run` calls it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memoryhub.local.stack import Stack, run
from memoryhub.management.database import psycopg_settings


class Command(BaseCommand):
    help = "Start the database, the model, the background worker and the web server, and keep them running."
    requires_system_checks = []  # they would ask for a database that is not up yet; `prepare` runs them

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST, help="address to listen on (MEMORYHUB_HOST)")
        parser.add_argument(
            "--port", type=int, default=settings.PORT, help="port to listen on (MEMORYHUB_PORT)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        stack = Stack(
            base_dir=settings.BASE_DIR,
            data_dir=settings.DATA_DIR,
            host=options["host"],
            port=options["port"],
            database=psycopg_settings(),
            web_processes=settings.WEB_PROCESSES,
            embedded_database=settings.EMBEDDED_DATABASE,
            embedded_model=settings.EMBEDDED_MODEL,
            sign_up_open=settings.SIGNUP_OPEN,
        )
        sys.exit(run(stack))
