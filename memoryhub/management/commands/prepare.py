"""`manage.py prepare`: all steps that precede the start of the web server, in one process."""

import hashlib
import io
import time
from operator import itemgetter
from pathlib import Path
from typing import Any

import polib
import psycopg
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from memoryhub.database.queries import alone
from memoryhub.database.startup import OtherVersion, psycopg_settings, refuse_other_version
from memoryhub.http import static_files
from memoryhub.management import Progress


class _Steps(io.StringIO):
    """An output stream for `migrate` that shows the number of applied migrations."""

    def __init__(self, progress: Progress, steps: int) -> None:
        super().__init__()
        self.progress, self.steps, self.done = progress, steps, 0

    def write(self, text: str) -> int:
        if "Applying" in text:
            self.done += 1
            self.progress.show(f"database: step {self.done} of {self.steps}")
        return len(text)


class Command(BaseCommand):
    help = (
        "Bring the database up to date, make the administrator of the environment, compile the translations, "
        "collect the static files."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        check_database()
        self._bring_up_to_date()
        compile_translations()
        self._collect_static_files()

    def _bring_up_to_date(self) -> None:
        """Run the migrations. If processes on several hosts call this at once, one migrates and the others wait."""
        announced = False
        while True:
            # Wait outside Postgres, because a waiting session would block CREATE INDEX CONCURRENTLY.
            with alone("prepare") as is_alone:
                if is_alone:
                    self._migrate()
                    call_command("ensure_admin")
                    return
            if not announced:
                self.stdout.write("Another host brings the database up to date; waiting for it …")
                announced = True
            time.sleep(0.5)

    def _migrate(self) -> None:
        executor = MigrationExecutor(connection)
        steps = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
        if steps:
            self.stdout.write(f"Bringing the database up to date, {steps} steps …")
        progress = Progress(self.stdout)
        try:
            call_command("migrate", interactive=False, verbosity=1, stdout=_Steps(progress, steps))
        finally:
            progress.clear()

    def _collect_static_files(self) -> None:
        """Collect static files only if one has changed, since hashing and compressing all takes seconds."""
        stamp = Path(settings.STATIC_ROOT) / ".collected"
        state = static_files_state()
        if stamp.exists() and stamp.read_text(encoding="utf-8") == state:
            return
        call_command("collectstatic", interactive=False, verbosity=0)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(state, encoding="utf-8")


def check_database() -> None:
    """Raise CommandError if the database is unreachable, of another version, without pgvector or not UTF-8."""
    whose = "the embedded database" if settings.EMBEDDED_DATABASE else "the database that DATABASE_URL names"
    try:
        with psycopg.connect(**psycopg_settings() | {"connect_timeout": 10}) as connection:
            row = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
            refuse_other_version(connection)
            encoding = connection.info.parameter_status("server_encoding")
    except OtherVersion as error:
        raise CommandError(str(error)) from None
    except psycopg.OperationalError as error:
        raise CommandError(f"Cannot reach {whose}: {error}") from error
    if row is None:
        raise CommandError(f"The server of {whose} does not have pgvector. Install it there and start again.")
    if encoding != "UTF8":
        raise CommandError(
            f"The encoding of {whose} is {encoding}, and MemoryHub needs UTF8. Make the database anew: "
            "CREATE DATABASE memoryhub TEMPLATE template0 ENCODING 'UTF8'"
        )


def static_files_state() -> str:
    """Return a digest of each static file's path, size and modification time, and the storage's settings and code."""
    digest = hashlib.sha256(repr(settings.STORAGES["staticfiles"]).encode())
    digest.update(Path(static_files.__file__).read_bytes())
    for finder in get_finders():  # sorted, because the order in a folder depends on the file system
        for path, storage in sorted(finder.list(ignore_patterns=[]), key=itemgetter(0)):
            status = Path(storage.path(path)).stat()
            digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


SOURCES = Path(__file__).resolve().parents[2] / "locale"


def compile_translations(into: Path | None = None) -> None:
    """Compile each changed ``.po`` file to a ``.mo`` file."""
    for source in sorted(SOURCES.glob("*/LC_MESSAGES/django.po")):
        target = (into or Path(settings.LOCALE_PATHS[0])) / source.relative_to(SOURCES).with_suffix(".mo")
        status = source.stat()
        state, stamp = f"{status.st_size} {status.st_mtime_ns}", target.with_suffix(".state")
        if target.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == state:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_suffix(".draft")
        polib.pofile(str(source)).save_as_mofile(str(draft))
        draft.replace(target)
        stamp.write_text(state, encoding="utf-8")
