"""Restore of a backup: all data is loaded into a second database, checked, and then swapped in at once."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.utils.module_loading import import_string
from psycopg import sql

from memoryhub.backup import dump
from memoryhub.backup.archive import DUMP, FORGOTTEN, Reader, forgotten_in, installation, present_keys
from memoryhub.backup.dump import rows_of
from memoryhub.backup.storage import BackupError, Place
from memoryhub.database.startup import close_connections, is_from_before, newer_migrations
from memoryhub.stored_files import StoredFiles

KEY_FILES = {"SECRET_KEY": "secret-key", "FORGET_KEY": "forget-key"}
ENCRYPTION_KEYS = "encryption-keys"
Say = Callable[[str], None]
Undo = Callable[[], object]


def restore(archive: Reader, passphrase: str, *, replace: bool, say: Say) -> str | None:
    """Restore a backup: its database, the stored files that are missing here and, with a passphrase, its keys.

    Return the new name of the replaced database, or None if it had no user accounts and was dropped. The new database
    replaces it only when it is complete and migrated. What was deleted for good or revoked after the backup, by records
    of the replaced database or of newer backups in the same folder, is deleted or revoked in the new one again.
    ``say`` receives messages. Raises BackupError if the restore fails, if other clients use the database, or if there
    are user accounts and ``replace`` is False.
    """
    was_empty = is_empty()
    if not was_empty and not replace:
        raise BackupError(
            "The database has people in it. To put the backup in its place, say --replace: the present one is kept "
            "under another name until you drop it."
        )
    close_connections()
    if dump.others_connected():
        raise BackupError("MemoryHub, or another program, uses the database. Stop it, then restore.")
    keys = archive.keys(passphrase) if passphrase else None
    present = dump.own_name()
    scratch = present + dump.RESTORING
    put_back: list[Undo] = []
    try:
        _fill(scratch, archive, say)
        with dump.django_in(scratch):
            call_command("migrate", interactive=False, verbosity=0)
            _put_back_files(archive, put_back)  # before forgetting again, which deletes some of them
            forget_since(archive, present, keys, say)
        say(f"{len(put_back)} stored files put back")
        earlier = dump.swap(scratch)
    except BaseException:
        for undo in put_back:
            undo()
        dump.drop(scratch)
        raise
    if was_empty:
        dump.drop(earlier)
    if keys is None and archive.manifest.installation == installation():
        say("The keys stay as they are here.")
    else:
        _put_back_keys(keys, say)
    return None if was_empty else earlier


def drill(archive: Reader, say: Say) -> None:
    """Restore a backup into a temporary database, compare and drop it. Raises BackupError if anything is missing."""
    scratch = dump.own_name() + "_drill"
    try:
        _fill(scratch, archive, say)
        _compare_files(scratch, archive, say)
    finally:
        dump.drop(scratch)


def is_empty() -> bool:
    """Return whether the installation's database has no user accounts."""
    with dump.connect() as connection:
        try:
            return connection.execute("SELECT 1 FROM workspaces_user LIMIT 1").fetchone() is None
        except psycopg.errors.UndefinedTable:
            return True


def _fill(name: str, archive: Reader, say: Say) -> None:
    """Restore the archive into a new database ``name``. Raises BackupError unless its row counts match the manifest."""
    manifest = archive.manifest
    if is_from_before(manifest.migrations.items()):
        raise BackupError(
            "The backup is of an earlier MemoryHub whose tables this one cannot take over. Restore it with that "
            "version, export what it holds (Profile → Export), and import that here."
        )
    if newer := newer_migrations(manifest.migrations.items()):
        raise BackupError(
            f"The backup is of a newer MemoryHub than this one: it has {', '.join(newer)}. Use that version."
        )
    archive.verify()
    say(f"backup of {manifest.when:%Y-%m-%d %H:%M} UTC: whole, {len(manifest.members)} parts")
    dump.restore_into(name, archive.chunks(DUMP, "restoring"))
    with dump.connect(name) as connection:
        counts = rows_of(connection)
    tables = sorted(counts.keys() | manifest.rows)
    if wrong := [table for table in tables if counts.get(table) != manifest.rows.get(table)]:
        raise BackupError(f"Restored rows are not those that were counted, in {', '.join(wrong)}.")
    say(f"{sum(counts.values()):,} rows in {len(counts)} tables: as they were counted")


def _compare_files(name: str, archive: Reader, say: Say) -> None:
    """Raise BackupError unless the archive has each file that the database refers to, with the same SHA-256."""
    told = _files_referenced_by(name)
    stored = {file: archive.manifest.members[file][1] for file in archive.files()}
    if wrong := sorted(file for file in told.keys() & stored.keys() if told[file] != stored[file]):
        raise BackupError(
            f"Of the files that rows tell of {len(wrong)} are others in the backup, such as {wrong[0]}."
        )
    missing = told.keys() - stored.keys()
    if lost := sorted(missing & _files_referenced_by(dump.own_name()).keys()):
        raise BackupError(
            f"Of the files that rows tell of {len(lost)} are not in the backup, such as {lost[0]}. Look for them where "
            "files lie, or in an older backup."
        )
    gone = f"; {len(missing)} were deleted while it was made" if missing else ""
    say(f"{len(told) - len(missing)} stored files that rows tell of: all there{gone}")


def _files_referenced_by(name: str) -> dict[str, str]:
    """Return the SHA-256 of each file that the database ``name`` refers to, by the file's name in an archive."""
    hashes = dict[str, str]()
    with dump.connect(name) as connection:
        for table, folder in settings.FILES_OF.items():
            rows = sql.SQL("SELECT file_name, sha256 FROM {}").format(sql.Identifier(table))
            with suppress(psycopg.errors.UndefinedTable), connection.transaction():
                hashes |= {f"{folder}/{file[:2]}/{file}": sha for file, sha in connection.execute(rows)}
    return hashes


def _put_back_files(archive: Reader, put_back: list[Undo]) -> None:
    """Restore the stored files that are missing here, and append to ``put_back`` a function that removes each again."""
    for name in archive.files():
        folder, _, key = name.partition("/")
        with archive.open(name) as source:
            if undo := StoredFiles.every[folder].put_back(key.rpartition("/")[2], source):
                put_back.append(undo)


def _put_back_keys(keys: dict[str, object] | None, say: Say) -> None:
    """Restore the backup's keys that differ from the current ones, which are kept beside the new ones."""
    present = present_keys()
    if keys is None:
        say(
            "The keys were not restored: without those of the backup, stored keys of models have to be typed again."
        )
        return
    for name, file_name in KEY_FILES.items():
        if keys[name] != present[name]:
            _write_secret(settings.DATA_DIR / file_name, str(keys[name]))
            say(
                f"{file_name} is the backup's; the earlier one is {file_name}.before-restore. Where "
                f"MEMORYHUB_{name} is set, set it to the same."
            )
    theirs = keys["ENCRYPTION_KEYS"]
    if isinstance(theirs, list) and theirs and theirs != list(present["ENCRYPTION_KEYS"]):
        _write_secret(settings.DATA_DIR / ENCRYPTION_KEYS, ",".join(theirs))
        say(
            f"Set MEMORYHUB_ENCRYPTION_KEYS to what is in {settings.DATA_DIR / ENCRYPTION_KEYS}, then remove that file."
        )


def _write_secret(path: Path, text: str) -> None:
    if path.exists():
        path.replace(path.with_name(f"{path.name}.before-restore"))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


# Repeat the forgetting that happened after a backup was made, or after the time to which a database was recovered.
# It is recorded in newer databases of the installation: the replaced database, and those in newer backups.

READ = "_forgotten"  # suffix of the database's name
BEGAN = "SELECT min(applied) FROM django_migrations"  # in microseconds, so it is equal only in copies of one database
NO_KEY = (
    "Newer backups lie beside it. Their keys say what was forgotten until they were made: restore with "
    "MEMORYHUB_BACKUP_PASSPHRASE, or put the one file where no others are."
)


def forget_again(newer: psycopg.Connection[Any], say: Say) -> None:
    """Repeat in Django's database, an earlier state, what the ``newer`` one records as deleted for good or revoked."""
    for path in settings.AFTER_RESTORE:
        import_string(path)(newer, say)


def is_kin(newer: psycopg.Connection[Any]) -> bool:
    """Return whether the ``newer`` database and Django's are copies of the same installation's database."""
    if newer.execute("SELECT to_regclass('django_migrations') IS NOT NULL").fetchone() != (True,):
        return False
    with connection.cursor() as cursor:
        cursor.execute(BEGAN)
        return newer.execute(BEGAN).fetchone() == cursor.fetchone()


def forget_since(archive: Reader, present: str, keys: Mapping[str, Any] | None, say: Say) -> None:
    """Repeat in Django's database, restored from ``archive``, the deletions for good that newer databases record.

    The newer databases are the replaced database ``present`` and those in newer backups in the archive's folder. Raises
    BackupError if such a backup cannot be read.
    """
    if archive.manifest.installation == installation():
        with dump.connect(present) as replaced:
            if is_kin(replaced):
                forget_again(replaced, say)
    newer = _newer_beside(archive, say)
    present_key = settings.FORGET_KEY
    if keys:  # another machine may have made the backups
        settings.FORGET_KEY = keys["FORGET_KEY"]
    try:
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
    finally:
        settings.FORGET_KEY = present_key


@contextmanager
def tables_of(archive: Reader) -> Iterator[psycopg.Connection[Any]]:
    """Restore the tables that record deletions for good into a temporary database, and yield a connection to it."""
    name = dump.own_name() + READ
    member = FORGOTTEN if FORGOTTEN in archive.manifest.members else DUMP  # older backups have only one dump
    try:
        dump.restore_into(name, archive.chunks(member, "reading"), forgotten_in())
        with dump.connect(name) as opened:
            yield opened
    finally:
        dump.drop(name)


def _newer_beside(archive: Reader, say: Say) -> list[Place]:
    """Return the newer backups of the same installation in the same folder, oldest first."""
    backups, ours = [], archive.manifest
    try:
        beside = archive.place.folder.named_like("*.zip")
    except BackupError as error:
        say(f"Whether there are newer backups is not known: {error}")
        return []
    for place in beside:
        try:
            with Reader(place) as other:
                manifest = other.manifest
        except BackupError as error:
            say(f"Left out: {error}")
            continue
        if manifest.installation == ours.installation and manifest.when > ours.when:
            backups.append((manifest.when, place))
    return [place for _, place in sorted(backups, key=lambda each: each[0])]
