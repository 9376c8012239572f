"""What was forgotten since a backup was made, or after the moment that a database was recovered to, is forgotten again.

What knows of it is any newer database of the installation: the one that is replaced, and those in newer backups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from django.utils.module_loading import import_string

from memoryhub.backup import databases
from memoryhub.backup.archive import DUMP, FORGOTTEN, Reader
from memoryhub.backup.making import forgotten_in, installation
from memoryhub.backup.places import BackupError, Place

READ = "_forgotten"  # behind the database's name
HAS_TABLES = "SELECT to_regclass('django_migrations') IS NOT NULL"
BEGAN = "SELECT min(applied) FROM django_migrations"  # to the microsecond: the same in copies of one database alone
NO_KEY = (
    "Newer backups lie beside it. Their keys say what was forgotten until they were made: restore with "
    "MEMORYHUB_BACKUP_PASSPHRASE, or put the one file where no others are."
)
Say = Callable[[str], None]


def forget_again(newer: psycopg.Connection[Any], say: Say) -> None:
    """In Django's database, what the ``newer`` one of the same installation was told to forget."""
    for path in settings.AFTER_RESTORE:
        import_string(path)(newer, say)


def is_kin(newer: psycopg.Connection[Any]) -> bool:
    """Whether this database and Django's were one at some time. Another knows nothing of what is here."""
    if newer.execute(HAS_TABLES).fetchone() != (True,):
        return False
    with connection.cursor() as cursor:
        cursor.execute(BEGAN)
        return newer.execute(BEGAN).fetchone() == cursor.fetchone()


def forget_since(archive: Reader, present: str, keys: Mapping[str, Any] | None, say: Say) -> None:
    """In Django's database, which was restored from ``archive``, what the ``present`` one and newer backups tell."""
    if archive.manifest.installation == installation():
        with databases.connect(present) as replaced:
            if is_kin(replaced):
                forget_again(replaced, say)
    newer = _newer_beside(archive, say)
    with _key_of(keys):
        if newer and archive.manifest.installation != installation():
            raise BackupError(NO_KEY)
        for place in newer:
            say(f"{place} is newer:")
            try:
                with Reader(place) as other, tables_of(other) as known:
                    forget_again(known, say)
            except BackupError as error:
                raise BackupError(
                    f"{error} It is newer: move it away to restore without what it knows."
                ) from error


@contextmanager
def tables_of(archive: Reader) -> Iterator[psycopg.Connection[Any]]:
    """A database with what a backup knows of forgetting, and nothing else; dropped afterwards."""
    name = databases.own_name() + READ
    member = FORGOTTEN if FORGOTTEN in archive.manifest.members else DUMP  # those of before have all in one
    try:
        databases.restore_into(name, archive.chunks(member, "reading"), forgotten_in())
        with databases.connect(name) as opened:
            yield opened
    finally:
        databases.drop(name)


def _newer_beside(archive: Reader, say: Say) -> list[Place]:
    """Backups of the same installation that lie where this one does, and were made after it."""
    found, ours = [], archive.manifest
    try:
        beside = archive.place.folder.named_like("*.zip")
    except BackupError as error:
        say(f"Whether there are newer backups is not known: {error}")
        return []
    for place in beside:
        try:
            with Reader(place) as other:
                made = other.manifest
        except BackupError as error:
            say(f"Left out: {error}")
            continue
        if made.installation == ours.installation and made.when > ours.when:
            found.append((made.when, place))
    return [place for _, place in sorted(found, key=lambda each: each[0])]


@contextmanager
def _key_of(keys: Mapping[str, Any] | None) -> Iterator[None]:
    """What was forgotten is known by this key. A backup of another machine brings it along."""
    present = settings.FORGET_KEY
    settings.FORGET_KEY = keys["FORGET_KEY"] if keys else present
    try:
        yield
    finally:
        settings.FORGET_KEY = present
