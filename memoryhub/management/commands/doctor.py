"""`manage.py doctor`: report faults of this installation and how to fix them."""

import os
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, storages
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils.module_loading import import_string

from memoryhub import mail
from memoryhub.backup.dump import kept_of_before
from memoryhub.database.startup import psycopg_settings
from memoryhub.environment import database_from_url, libpq_settings
from memoryhub.http.health import LAST_BACKUP, UNKNOWN, check
from memoryhub.llm.model_check import embedder_trouble
from memoryhub.stored_files import PLACES, Folder, StoredFiles, files_folder

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
            embedder_trouble()  # loads the embedder here, since that may exceed the timeout of check()
        for name, part in check().items():
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


# Faults other than those of the parts. Each function yields sentences with a remedy.

LEAST_ROOM = 2 * 2**30  # free bytes on the data folder's disk, enough to rebuild an index
MOST_APART = 30.0  # seconds between two clocks
MOST_WAITING = 1_000  # jobs, a few minutes' work of two workers
AT_HOME = {"127.0.0.1", "localhost", "::1"}
FAILED: LiteralString = """
SELECT func, count(*) FROM django_q_task WHERE NOT success AND stopped > now() - interval '1 day'
GROUP BY func ORDER BY count(*) DESC LIMIT 5
"""
WAITING: LiteralString = "SELECT count(*) FROM django_q_ormq"
# Failed mails are retried after a minute.
MAIL: LiteralString = """
SELECT count(*), now() - min(created_at) FROM workspaces_waitingmail WHERE created_at < now() - interval '5 minutes'
"""
FIRST_PERSON: LiteralString = "SELECT min(date_joined) FROM workspaces_user"


def troubles() -> Iterator[str]:
    yield from _disk()
    yield from _of_before()
    yield from _open_to_the_network()
    yield from _files()
    yield from _pooler()
    try:
        with psycopg.connect(**psycopg_settings()) as connection:
            if notice := kept_of_before(connection):
                yield f"restore: {notice}"
            yield from _jobs(connection)
            yield from _mail(connection)
            yield from _clock(connection)
            yield from _backup(connection)
        yield from _left_in_folder()
        for path in settings.DOCTOR_ASKS:
            yield from import_string(path)()
    except (psycopg.Error, DatabaseError):
        return  # already reported as a fault of the database or the migrations


def _disk() -> Iterator[str]:
    free = shutil.disk_usage(settings.DATA_DIR).free
    if free < LEAST_ROOM:
        yield f"disk: {free / 2**30:.1f} GB are free in {settings.DATA_DIR}. Make room: below 2 GB an upgrade may fail."


def _of_before() -> Iterator[str]:
    for folder in sorted(settings.DATA_DIR.glob("postgres.before-*")):  # from an earlier version's upgrade
        yield f"upgrade: {folder} is the database of before it, with what was forgotten since. Remove it in time."


def _open_to_the_network() -> Iterator[str]:
    if settings.HOST not in AT_HOME and not settings.HTTPS:
        yield "https: pages and passwords cross the network readable. Put a TLS proxy in front, set MEMORYHUB_HTTPS."
    if settings.HOST not in AT_HOME and settings.DEBUG:
        yield "debug: MEMORYHUB_DEBUG shows strangers the program's insides. Unset it."


def _files() -> Iterator[str]:
    """Yield a message for each place of stored files that does not accept files: a folder, or an object store."""
    folders = [files_folder()]
    for name in PLACES:
        if isinstance(storage := storages[name], FileSystemStorage):
            folders.append(Path(storage.location))
            continue
        try:
            storage.delete(storage.save(f"doctor-{secrets.token_hex(8)}", ContentFile(b"")))
        except Exception as error:  # a storage's library may raise anything
            yield (
                f"files: the store of the {name} takes no file, or does not give it up ({type(error).__name__}). "
                "See MEMORYHUB_S3_…, and that its keys may put, get, list and delete."
            )
    for folder in folders:
        there = next(each for each in (folder, *folder.parents) if each.exists())
        if not os.access(there, os.W_OK | os.X_OK):
            yield f"files: {there} may not be written by this user. Files of people are kept in {folder}."


def _left_in_folder() -> Iterator[str]:
    for files in StoredFiles.every.values():
        if any(may_go for _, may_go in files.left()):
            yield (
                f"files: some lie in {Folder(files.name).location}, where only hosts that see it read them. Put them "
                "into the store by `manage.py move_files`."
            )


def _pooler() -> Iterator[str]:
    if not settings.POOLER_URL:
        return
    place = libpq_settings(database_from_url(settings.POOLER_URL, "MEMORYHUB_POOLER_URL"))
    try:
        psycopg.connect(**{**place, "connect_timeout": 3}).close()
    except psycopg.Error as error:
        yield (
            f"pooler: it does not let us to the database: {str(error).strip()}. Web processes go through it: see its "
            "log, or unset MEMORYHUB_POOLER_URL."
        )


def _jobs(connection: psycopg.Connection[Any]) -> Iterator[str]:
    for func, number in connection.execute(FAILED).fetchall():
        yield f"jobs: {number} of {func} failed in a day. Its reason is in the admin, under Failed tasks."
    if (number := _one(connection, WAITING)) > MOST_WAITING:
        yield (
            f"jobs: {number:,} are in the queue, which takes them without end. None is lost, all are late: "
            "more workers do more (MEMORYHUB_WORKERS, or `manage.py up --only worker` on another host)."
        )


def _mail(connection: psycopg.Connection[Any]) -> Iterator[str]:
    number, waited = connection.execute(MAIL).fetchone() or (0, None)
    if number and waited:
        why = "The server does not take it" if mail.is_set() else "No server is set any more"
        yield (
            f"mail: {number} {'has' if number == 1 else 'have'} waited for up to {_in_words(waited)}. {why}: see "
            "MEMORYHUB_SMTP_URL, and send a test mail in the admin. It is given up after a day."
        )


def _clock(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Yield a message if the database's clock and this machine's, which two-factor codes depend on, differ much."""
    apart = (datetime.now(UTC) - _one(connection, "SELECT clock_timestamp()")).total_seconds()
    if abs(apart) > MOST_APART:
        yield (
            f"clock: this machine is {abs(apart):.0f} seconds {'ahead of' if apart > 0 else 'behind'} the database's. "
            "Set both by NTP: codes of authenticators, links and sessions end by it."
        )


def _backup(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Yield a message if the last backup is too old, or there is none and the first account is as old."""
    if not settings.BACKUP_DAYS:
        return
    last = _one(connection, LAST_BACKUP)
    since = last or _one(connection, FIRST_PERSON)
    if since and (age := datetime.now(UTC) - since) > timedelta(days=settings.BACKUP_DAYS):
        status = f"the last one was made {_in_words(age)} ago" if last else "none was ever made"
        yield (
            f"backup: {status}. Run `manage.py backup`, better each night by itself (docs/operations.md). Where others "
            "make them, set MEMORYHUB_BACKUP_DAYS=0."
        )


def _one(connection: psycopg.Connection[Any], query: LiteralString) -> Any:
    row = connection.execute(query).fetchone()
    return row[0] if row else None


def _in_words(time: timedelta) -> str:
    hours = int(time.total_seconds() // 3600)
    if hours >= 48:
        return f"{hours // 24} days"
    return f"{hours} hours" if hours >= 2 else f"{int(time.total_seconds() // 60)} minutes"
