"""Restoring a backup: all beside what is there, looked over, then put in its place at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
from django.conf import settings
from django.core.management import call_command
from psycopg import sql

from memoryhub.backup import databases
from memoryhub.backup.archive import DUMP, Reader
from memoryhub.backup.forgetting import forget_since
from memoryhub.backup.making import installation, present_keys
from memoryhub.backup.places import BackupError
from memoryhub.files.stored_files import StoredFiles
from memoryhub.local.row_counts import rows_of, which_differ
from memoryhub.management.database import close_connections, is_from_before, newer_migrations

KEY_FILES = {"SECRET_KEY": "secret-key", "FORGET_KEY": "forget-key"}
ENCRYPTION_KEYS = "encryption-keys"
Say = Callable[[str], None]
Undo = Callable[[], object]


def restore(archive: Reader, passphrase: str, *, replace: bool, say: Say) -> str | None:
    """Put what the archive holds in the place of the present database; the name that the earlier one is kept under.

    None where it was empty. Nothing is changed before the new one is whole, up to date and has forgotten what the
    present one and newer backups beside it were told to, where they are of one installation. Raises BackupError.
    """
    was_empty = is_empty()
    if not was_empty and not replace:
        raise BackupError(
            "The database has people in it. To put the backup in its place, say --replace: the present one is kept "
            "under another name until you drop it."
        )
    close_connections()
    if databases.others_connected():
        raise BackupError("MemoryHub, or another program, uses the database. Stop it, then restore.")
    keys = archive.keys(passphrase) if passphrase else None
    present = databases.own_name()
    scratch = present + databases.RESTORING
    put_back: list[Undo] = []
    try:
        _fill(scratch, archive, say)
        with databases.django_in(scratch):
            call_command("migrate", interactive=False, verbosity=0)
            _put_back_files(archive, put_back)  # before those of what is forgotten again go
            forget_since(archive, present, keys, say)
        say(f"{len(put_back)} stored files put back")
        earlier = databases.swap(scratch)
    except BaseException:
        for undo in put_back:
            undo()
        databases.drop(scratch)
        raise
    if was_empty:
        databases.drop(earlier)
    if keys is None and archive.manifest.installation == installation():
        say("The keys stay as they are here.")
    else:
        _put_back_keys(keys, say)
    return None if was_empty else earlier


def drill(archive: Reader, say: Say) -> None:
    """Restore into a database of its own, compare, and drop it again. Raises BackupError where anything is missing."""
    scratch = databases.own_name() + "_drill"
    try:
        _fill(scratch, archive, say)
        _compare_files(scratch, archive, say)
    finally:
        databases.drop(scratch)


def is_empty() -> bool:
    """Whether nobody has an account in the installation's database."""
    with databases.connect() as connection:
        try:
            return connection.execute("SELECT 1 FROM workspaces_user LIMIT 1").fetchone() is None
        except psycopg.errors.UndefinedTable:
            return True


def _fill(name: str, archive: Reader, say: Say) -> None:
    """The archive's database under this name, its rows counted."""
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
    databases.restore_into(name, archive.chunks(DUMP, "restoring"))
    with databases.connect(name) as connection:
        found = rows_of(connection)
    if tables := which_differ(found, manifest.rows):
        raise BackupError(f"Restored rows are not those that were counted, in {', '.join(tables)}.")
    say(f"{sum(found.values()):,} rows in {len(found)} tables: as they were counted")


def _compare_files(name: str, archive: Reader, say: Say) -> None:
    """Whether what rows of the database tell of is in the archive, and is that."""
    told, stored = _files_told_of(name), {file: archive.manifest.members[file][1] for file in archive.files()}
    if wrong := sorted(file for file in told.keys() & stored.keys() if told[file] != stored[file]):
        raise BackupError(
            f"Of the files that rows tell of {len(wrong)} are others in the backup, such as {wrong[0]}."
        )
    missing = told.keys() - stored.keys()
    if lost := sorted(missing & _files_told_of(databases.own_name()).keys()):
        raise BackupError(
            f"Of the files that rows tell of {len(lost)} are not in the backup, such as {lost[0]}. Look for them where "
            "files lie, or in an older backup."
        )
    gone = f"; {len(missing)} were deleted while it was made" if missing else ""
    say(f"{len(told) - len(missing)} stored files that rows tell of: all there{gone}")


def _files_told_of(name: str) -> dict[str, str]:
    """By their names in an archive: the SHA-256 that rows of a database have of them."""
    found = dict[str, str]()
    with databases.connect(name) as connection:
        for table, folder in settings.FILES_OF.items():
            rows = sql.SQL("SELECT file_name, sha256 FROM {}").format(sql.Identifier(table))
            with suppress(psycopg.errors.UndefinedTable), connection.transaction():
                found |= {f"{folder}/{file[:2]}/{file}": sha for file, sha in connection.execute(rows)}
    return found


def _put_back_files(archive: Reader, put_back: list[Undo]) -> None:
    """Those that are not there, each noted in ``put_back``."""
    for name in archive.files():
        folder, _, key = name.partition("/")
        with archive.open(name) as source:
            if undo := StoredFiles.every[folder].put_back(key.rpartition("/")[2], source):
                put_back.append(undo)


def _put_back_keys(keys: dict[str, object] | None, say: Say) -> None:
    """Keys of the backup that are not the present ones; those they replace are kept beside them."""
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
    if (
        isinstance(theirs := keys["ENCRYPTION_KEYS"], list)
        and theirs
        and theirs != list(present["ENCRYPTION_KEYS"])
    ):
        _write_secret(settings.DATA_DIR / ENCRYPTION_KEYS, ",".join(theirs))
        say(
            f"Set MEMORYHUB_ENCRYPTION_KEYS to what is in {settings.DATA_DIR / ENCRYPTION_KEYS}, then remove that file."
        )


def _write_secret(path: Path, text: str) -> None:
    if path.exists():
        path.replace(path.with_name(f"{path.name}.before-restore"))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
