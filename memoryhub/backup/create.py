"""Making a backup while MemoryHub runs."""

from __future__ import annotations

import hashlib
import hmac
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from django.conf import settings
from django.db import DatabaseError
from django.utils.module_loading import import_string

from memoryhub.backup import dump
from memoryhub.backup.archive import (
    DUMP,
    FORGOTTEN,
    KEYS,
    SHORTEST_PASSPHRASE,
    Manifest,
    Reader,
    Show,
    Writer,
    nobody,
    now,
    sealed_keys,
)
from memoryhub.backup.dump import rows_of
from memoryhub.backup.storage import BackupError, Place
from memoryhub.files.stored_files import StoredFiles, key_of

NO_STORE = "The store of files does not answer (%s), so there is no backup."
Say = Callable[[str], None]


def make_backup(place: Place, passphrase: str, say: Say, show: Show = nobody) -> Manifest:
    """Write the database as it is at this moment, the stored files and the keys into one new file.

    The files are copied after the database's snapshot: none that it names is missing, unless it was deleted since.
    Without a passphrase the keys are left out. Raises BackupError; then no file is left.
    """
    if place.exists():
        raise BackupError(f"{place} is there already, and no backup is written over.")
    if passphrase and len(passphrase) < SHORTEST_PASSPHRASE:
        raise BackupError(f"MEMORYHUB_BACKUP_PASSPHRASE must have at least {SHORTEST_PASSPHRASE} characters.")
    writer = Writer(place, show)
    with writer.open():
        manifest = _dump_into(writer, say)
        number = _add_files(writer)
        say(f"{number} stored files")
        if passphrase:
            writer.add(KEYS, io.BytesIO(sealed_keys(present_keys(), passphrase)))
        writer.finish(manifest)
    _note(place.size(), say)
    return manifest


def _note(size: int, say: Say) -> None:
    """Record that a backup was made. An error here does not lose the backup."""
    try:
        for path in settings.AFTER_BACKUP:
            import_string(path)(size, installation())
    except DatabaseError as error:
        say(f"That it was made could not be noted: {error}")


def older_than_newest(folder: Place, pattern: str, keep: int) -> list[Place]:
    """This installation's own backups in a folder but for the newest so many; not what others put beside them, and not
    what cannot be read.
    """
    own = []
    for place in folder.named_like(pattern):
        with suppress(BackupError), Reader(place) as archive:
            if archive.manifest.installation == installation():
                own.append(place)
    return own[:-keep]


def forgotten_in() -> list[str]:
    """Tables that say what was forgotten."""
    return sorted({table for tables in settings.AFTER_RESTORE.values() for table in tables})


def present_keys() -> dict[str, Any]:
    """Return the keys that read the sealed secrets, sessions and tombstones of this installation."""
    return {name: getattr(settings, name) for name in ("SECRET_KEY", "FORGET_KEY", "ENCRYPTION_KEYS")}


def installation() -> str:
    """A name that is this installation's, from the key that is never changed."""
    return hmac.new(settings.FORGET_KEY.encode(), b"memoryhub.backup", hashlib.sha256).hexdigest()[:16]


def _dump_into(writer: Writer, say: Say) -> Manifest:
    """The dump, and rows counted in the same snapshot."""
    with dump.connect() as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        manifest = Manifest(
            made_at=now(),
            postgres=connection.info.server_version // 10_000,
            migrations=dict(
                connection.execute("SELECT app, max(name) FROM django_migrations GROUP BY app").fetchall()
            ),
            rows=rows_of(connection),
            installation=installation(),
        )
        say(f"{sum(manifest.rows.values()):,} rows in {len(manifest.rows)} tables")
        with dump.dump(row[0]) as source:
            size = writer.add(DUMP, source)
        say(f"database: {size:,} bytes")
        with dump.dump(row[0], forgotten_in()) as source:
            writer.add(FORGOTTEN, source)
    return manifest


def _add_files(writer: Writer) -> int:
    """Wherever they lie: a folder, or a store elsewhere."""
    number = 0
    for files in StoredFiles.every.values():
        with _answering():
            names = list(files.names())
        for name in names:
            try:
                with _answering():
                    source = files.opened(name)
            except FileNotFoundError:  # deleted since it was listed
                continue
            with source:
                writer.add(f"{files.name}/{key_of(name)}", source)
            number += 1
    return number


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:  # a storage's library may raise anything
        raise BackupError(NO_STORE % type(error).__name__) from error
