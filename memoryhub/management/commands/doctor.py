"""`manage.py doctor`: what is wrong with this installation, and what to do about it."""

from __future__ import annotations

import shutil
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from memoryhub.llm.probe import embedder_trouble
from memoryhub.local.major_upgrade import kept_before
from memoryhub.management.database import psycopg_settings
from memoryhub.monitoring.health import look

LEAST_ROOM = 2 * 2**30  # bytes free on the data folder's disk: an index is built anew in less
AT_HOME = {"127.0.0.1", "localhost", "::1"}
FAILED = """
SELECT func, count(*) FROM django_q_task WHERE NOT success AND stopped > now() - interval '1 day'
GROUP BY func ORDER BY count(*) DESC LIMIT 5
"""
BEGUN = "SELECT to_regclass('workspaces_passagevector_next'), to_regclass('workspaces_passageword_next')"
WAITING = "SELECT count(*) FROM django_q_ormq"
MOST_WAITING = 1_000  # some minutes' work of two workers
OVERDUE = "SELECT count(*) FROM workspaces_datarequest WHERE state = 'open' AND due_at < now()"
WHAT_TO_DO = {
    "database": "Start MemoryHub with `make run`, or see that the server in DATABASE_URL answers.",
    "migrations": "Run `manage.py migrate` with the newest version that was started here.",
    "writes": "Make room on the database's disk, or name the primary in DATABASE_URL.",
    "queue": "See the failed jobs in the admin, and whether workers are busy (MEMORYHUB_WORKERS).",
    "worker": "Start MemoryHub, or `manage.py qcluster` where the parts run apart; its log is logs/worker.log.",
    "model": "Try it on the page Connections; for the model of the settings see MEMORYHUB_LLM_BASE_URL.",
    "replica": "See its log, and the primary's pg_stat_replication. It is read from again when it has caught up.",
    "embedder": "See MEMORYHUB_EMBEDDING_BASE_URL, or run `make install` for the bundled one. Recall goes by words.",
}


class Command(BaseCommand):
    help = "Say in sentences what is wrong with this installation and what to do. Changes nothing; 1 if anything is."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        troubles = 0
        if not settings.EMBEDDING_BASE_URL:
            embedder_trouble()  # loads this process's own, which takes a busy machine longer than anyone waits below
        for name, part in look().parts.items():
            if part.ok:
                self.stdout.write(f"{name}: well")
            else:
                troubles += 1
                self.stdout.write(f"{name}: {part.why}. {WHAT_TO_DO[name.split()[0]]}")
        for trouble in [*_disk(), *_of_before(), *_open_to_the_network(), *_in_the_database()]:
            troubles += 1
            self.stdout.write(trouble)
        if troubles:
            raise CommandError(f"{troubles} {'thing needs' if troubles == 1 else 'things need'} attention.")
        self.stdout.write("Nothing is wrong.")


def _disk() -> list[str]:
    free = shutil.disk_usage(settings.DATA_DIR).free
    if free >= LEAST_ROOM:
        return []
    return [
        f"disk: {free / 2**30:.1f} GB are free in {settings.DATA_DIR}. Make room: below 2 GB an upgrade may fail."
    ]


def _of_before() -> list[str]:
    return [
        f"upgrade: {folder} is the database of before it, with what was forgotten since. Remove it in time."
        for folder in kept_before(settings.DATA_DIR)
    ]


def _open_to_the_network() -> list[str]:
    found = []
    if settings.HOST not in AT_HOME and not settings.HTTPS:
        found.append(
            "https: pages and passwords cross the network readable. Put a TLS proxy in front, set MEMORYHUB_HTTPS."
        )
    if settings.HOST not in AT_HOME and settings.DEBUG:
        found.append("debug: MEMORYHUB_DEBUG shows strangers the program's insides. Unset it.")
    return found


def _in_the_database() -> list[str]:
    try:
        with psycopg.connect(**psycopg_settings()) as connection:
            failed = connection.execute(FAILED).fetchall()
            overdue = connection.execute(OVERDUE).fetchone()
            waiting = connection.execute(WAITING).fetchone()
            begun = connection.execute(BEGUN).fetchone()
    except psycopg.Error:
        return []  # said above, as the database's or the migrations' trouble
    found = [
        f"jobs: {number} of {func} failed in a day. Its reason is in the admin, under Failed tasks."
        for func, number in failed
    ]
    if waiting and waiting[0] > MOST_WAITING:
        found.append(
            f"jobs: {waiting[0]:,} are in the queue, which takes them without end. None is lost, all are late: "
            "more workers do more (MEMORYHUB_WORKERS, or `manage.py up --only worker` on another host)."
        )
    if begun and any(begun):
        found.append(
            "partition: it was begun and is not done. Unless it runs now, ask `manage.py partition` what to do."
        )
    if overdue and overdue[0]:
        found.append(
            f"requests: {overdue[0]} of people for their data are overdue. They are in the admin, under Data requests."
        )
    return found
