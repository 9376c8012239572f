"""`manage.py up`: run all services of MemoryHub under one supervisor. `make run` calls it."""

import sys
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from memoryhub.database.startup import psycopg_settings
from memoryhub.local.stack import PARTS, TOGETHER, Stack, run
from memoryhub.monitoring.request_origin import serves_only_here

BESIDE_STREAMS = 1_000  # connections of each web process in addition to streams


class Command(BaseCommand):
    help = "Start the database, the model, the background worker and the web server, and keep them running."
    requires_system_checks = []  # the database is not running yet; `prepare` runs the checks

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST, help="address to listen on (MEMORYHUB_HOST)")
        parser.add_argument(
            "--port", type=int, default=settings.PORT, help="port to listen on (MEMORYHUB_PORT)"
        )
        parser.add_argument(
            "--only",
            type=_parts,
            default=frozenset(TOGETHER),
            help=f"parts that this host runs, the others run elsewhere: some of {', '.join(PARTS)}",
            metavar="PART[,PART]",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        parts = options["only"]
        if why := _what_is_missing(parts):
            raise CommandError(why)
        stack = Stack(
            base_dir=settings.BASE_DIR,
            data_dir=settings.DATA_DIR,
            host=options["host"],
            port=options["port"],
            database=psycopg_settings(),
            web_processes=settings.WEB_PROCESSES,
            connections=settings.STREAMS_AT_ONCE + BESIDE_STREAMS,
            embedded_database=settings.EMBEDDED_DATABASE and bool(parts & {"web", "worker"}),
            embedded_model=settings.EMBEDDED_MODEL,
            large_model=settings.BUILTIN_MODEL
            if settings.EMBEDDED_MODEL and settings.BUILTIN_MODEL in {"auto", "large"}
            else "",
            sign_up_open=settings.SIGNUP_OPEN,
            first_is_administrator=serves_only_here(options["host"]),
            has_administrator=has_administrator,
            parts=parts,
            model_key=settings.LLM_API_KEY if parts == {"model"} else "",
            embedder_key=settings.EMBEDDING_API_KEY,
        )
        sys.exit(run(stack))


def has_administrator() -> bool:
    try:
        users: Any = get_user_model()._default_manager
        return bool(users.filter(is_superuser=True, is_active=True).exists())
    except DatabaseError:
        return False
    finally:
        connection.close()


def _parts(text: str) -> frozenset[str]:
    parts = frozenset(word.strip() for word in text.split(","))
    if unknown := parts - set(PARTS):
        raise ArgumentTypeError(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return parts


def _what_is_missing(parts: frozenset[str]) -> str:
    """Return a sentence about shared settings that are missing on this host; empty if none is missing."""
    if parts == frozenset(TOGETHER):
        return ""
    if parts == {"embedder"}:
        same = "MEMORYHUB_EMBEDDING_BASE_URL, MEMORYHUB_EMBEDDING_API_KEY and MEMORYHUB_EMBEDDING_MODEL"
        missing = f"An embedder on its own is found by {same}: set them here as elsewhere."
        return "" if settings.EMBEDDING_API_KEY else missing
    if parts == {"model"}:
        same = "MEMORYHUB_LLM_BASE_URL, MEMORYHUB_LLM_API_KEY and MEMORYHUB_LLM_MODEL"
        return (
            ""
            if settings.LLM_API_KEY
            else f"A model on its own is found by {same}: set them here as elsewhere."
        )
    if "embedder" in parts:
        return (
            "Web and worker have the embedder in them, or ask the one that MEMORYHUB_EMBEDDING_BASE_URL names: "
            "start that by --only embedder, on a host or with a MEMORYHUB_DATA_DIR of its own."
        )
    if settings.EMBEDDED_DATABASE:
        return "Parts on their own share one database: set DATABASE_URL."
    if not settings.KEYS_ARE_GIVEN:
        return (
            "Parts on their own share their keys: set MEMORYHUB_SECRET_KEY and MEMORYHUB_FORGET_KEY to the same on "
            "every host (an installation's are in its data folder, in secret-key and forget-key)."
        )
    return ""
