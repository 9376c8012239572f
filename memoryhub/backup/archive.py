"""The backup file: an uncompressed ZIP (the dump inside is compressed). Writing, reading and verifying it.

    database.dump       pg_dump's custom format
    forgotten.dump      only the tables that record what was deleted for good; read when an older backup is restored
    assets/…, documents/…   the stored files
    keys.sealed         the installation's keys, encrypted with the passphrase; only with a passphrase
    manifest.json       written last: versions, row counts of each table, size and SHA-256 of all other members

A file without a manifest is incomplete.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import json
import secrets
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import IO, Any

import psycopg
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from django.conf import settings
from django.db import DatabaseError
from django.utils.module_loading import import_string

from memoryhub.backup import dump
from memoryhub.backup.dump import rows_of
from memoryhub.backup.storage import BackupError, Place
from memoryhub.stored_files import StoredFiles, key_of

FORMAT = 1
DUMP, FORGOTTEN, KEYS, MANIFEST = "database.dump", "forgotten.dump", "keys.sealed", "manifest.json"
FOLDERS = {"assets", "documents"}  # names of ``StoredFiles``
CHUNK = 1 << 20
SHORTEST_PASSPHRASE = 12
DAMAGED = "Damaged: %s is not what was written. Take another backup."
Show = Callable[[str], object]  # shows progress, replacing the previous text


@dataclass
class Manifest:
    made_at: str  # ISO 8601, UTC; the time of the database's snapshot
    postgres: int  # the server's major version
    migrations: dict[str, str]  # the last one of each app
    rows: dict[str, int]  # of each table
    installation: str  # an opaque id, equal for all backups of an installation
    members: dict[str, tuple[int, str]] = field(default_factory=dict)  # name: bytes and SHA-256
    format: int = FORMAT

    @property
    def when(self) -> datetime:
        return datetime.fromisoformat(self.made_at).astimezone(UTC)


class Writer:
    """A new archive, written sequentially. ``show`` receives the progress."""

    def __init__(self, archive: zipfile.ZipFile, show: Show) -> None:
        self._zip, self._show = archive, show
        self.members: dict[str, tuple[int, str]] = {}

    def add(self, name: str, source: IO[bytes]) -> int:
        """Copy ``source`` into the archive under ``name`` and return its size in bytes."""
        size, digest = 0, hashlib.sha256()
        with self._zip.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
            while chunk := source.read(CHUNK):
                member.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                self._show(f"{name}: {size:,} bytes")
        self.members[name] = (size, digest.hexdigest())
        return size


class Reader:
    """An existing archive. Raises BackupError if it is incomplete or its format is unknown."""

    def __init__(self, place: Place, show: Show = lambda text: None) -> None:
        self.place, self._show, self._file = place, show, place.reading()
        try:
            self._open(place)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def _open(self, place: Place) -> None:
        try:
            self._zip = zipfile.ZipFile(self._file)
            fields: dict[str, Any] = json.loads(self._zip.read(MANIFEST))
            if fields["format"] != FORMAT:
                raise BackupError(
                    f"{place} was written by a newer MemoryHub: its format is {fields['format']}."
                )
            self.manifest = manifest = Manifest(**fields)
            parts = (manifest.migrations, manifest.rows, manifest.members)
            if not all(isinstance(part, dict) for part in parts):
                raise TypeError
            _ = manifest.when  # raises if it is no date
        except BackupError:
            raise
        except OSError as error:
            raise BackupError(f"{place} cannot be read: {error.strerror or error}.") from error
        except Exception as error:  # for other kinds of ZIP the library's decoders may raise any error
            raise BackupError(f"{place} is no whole backup of MemoryHub.") from error

    def verify(self) -> None:
        """Read all members and compare them with the manifest. Raises BackupError if one differs."""
        there = {info.filename for info in self._zip.infolist()} - {MANIFEST}
        if there != self.manifest.members.keys():
            raise BackupError("Damaged: what is in the file is not what its manifest lists.")
        for name, (size, expected) in self.manifest.members.items():
            digest, read = hashlib.sha256(), 0
            for chunk in self.chunks(name, "checking"):
                digest.update(chunk)
                read += len(chunk)
            if (read, digest.hexdigest()) != (size, expected):
                raise BackupError(DAMAGED % name)

    def open(self, name: str) -> IO[bytes]:
        return self._zip.open(name)

    def chunks(self, name: str, doing: str) -> Iterator[bytes]:
        """Yield a member's content and show progress with the verb ``doing``. Raises BackupError if it is damaged."""
        size, read = self.manifest.members[name][0], 0
        try:
            with self.open(name) as member:
                while chunk := member.read(CHUNK):
                    yield chunk
                    read += len(chunk)
                    self._show(f"{doing} {name}: {read:,} of {size:,} bytes")
        except (zipfile.BadZipFile, KeyError, ValueError) as error:
            raise BackupError(DAMAGED % name) from error

    def files(self) -> Iterator[str]:
        """Yield the names of the stored files, each below one of ``FOLDERS``. Raises BackupError for an unsafe name."""
        for name in self.manifest.members:
            folder, *rest = name.split("/")
            if folder in FOLDERS:
                if not rest or any(part in {"", ".", ".."} for part in rest):
                    raise BackupError(f"Damaged: {name!r} is no name of a stored file.")
                yield name

    def keys(self, passphrase: str) -> dict[str, Any] | None:
        """Return the decrypted keys, or None if the archive has none. Raises BackupError if the passphrase is wrong."""
        if KEYS not in self.manifest.members:
            return None
        salt, sealed = self._zip.read(KEYS).split(b"\n", 1)
        try:
            secret_keys: dict[str, Any] = json.loads(_box(passphrase, base64.b64decode(salt)).decrypt(sealed))
        except InvalidToken:
            raise BackupError("That is not the passphrase of this backup.") from None
        return secret_keys


def sealed_keys(keys: dict[str, Any], passphrase: str) -> bytes:
    """Encrypt the keys with one derived from the passphrase (scrypt with a salt of 16 bytes, some 64 MB of memory)."""
    salt = secrets.token_bytes(16)
    return base64.b64encode(salt) + b"\n" + _box(passphrase, salt).encrypt(json.dumps(keys).encode())


def _box(passphrase: str, salt: bytes) -> Fernet:
    derived = Scrypt(salt=salt, length=32, n=2**16, r=8, p=1).derive(passphrase.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


Say = Callable[[str], None]


def make_backup(place: Place, passphrase: str, say: Say, show: Show = lambda text: None) -> Manifest:
    """Write a snapshot of the database, the stored files and the keys to a new file.

    The files are copied after the snapshot, so every file that the snapshot refers to is included unless it was deleted
    since. Without a passphrase the keys are omitted. ``say`` receives messages, and ``show`` the progress. Raises
    BackupError if the backup fails; no file remains then.
    """
    if place.exists():
        raise BackupError(f"{place} is there already, and no backup is written over.")
    if passphrase and len(passphrase) < SHORTEST_PASSPHRASE:
        raise BackupError(f"MEMORYHUB_BACKUP_PASSPHRASE must have at least {SHORTEST_PASSPHRASE} characters.")
    with place.writing() as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        writer = Writer(archive, show)
        manifest = _dump_into(writer, say)
        number = _add_files(writer)
        say(f"{number} stored files")
        if passphrase:
            writer.add(KEYS, io.BytesIO(sealed_keys(present_keys(), passphrase)))
        manifest.members = writer.members
        archive.writestr(MANIFEST, json.dumps(asdict(manifest), indent=1, sort_keys=True))
    try:
        for path in settings.AFTER_BACKUP:
            import_string(path)(place.size(), installation())
    except DatabaseError as error:  # does not lose the backup
        say(f"That it was made could not be noted: {error}")
    return manifest


def older_than_newest(folder: Place, pattern: str, keep: int) -> list[Place]:
    """Return this installation's readable backups in a folder, except the ``keep`` newest."""
    own: list[Place] = []
    for place in folder.named_like(pattern):
        with suppress(BackupError), Reader(place) as archive:
            if archive.manifest.installation == installation():
                own.append(place)
    return own[:-keep]


def forgotten_in() -> list[str]:
    """Return the names of the tables that record what was deleted for good or revoked, which a restore must repeat."""
    return sorted({table for tables in settings.AFTER_RESTORE.values() for table in tables})


def present_keys() -> dict[str, Any]:
    """Return this installation's keys, which are needed to read its secrets, sessions and tombstones."""
    return {name: getattr(settings, name) for name in ("SECRET_KEY", "FORGET_KEY", "ENCRYPTION_KEYS")}


def installation() -> str:
    """Return an id of this installation, derived from the key that never changes."""
    return hmac.new(settings.FORGET_KEY.encode(), b"memoryhub.backup", hashlib.sha256).hexdigest()[:16]


def _dump_into(writer: Writer, say: Say) -> Manifest:
    """Write the dumps, and return a manifest with row counts of the same snapshot."""
    with dump.connect() as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        last_migrations = connection.execute("SELECT app, max(name) FROM django_migrations GROUP BY app")
        manifest = Manifest(
            made_at=now(),
            postgres=connection.info.server_version // 10_000,
            migrations=dict(last_migrations.fetchall()),
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
    """Add the stored files, from the folder or the object store. Return their number."""
    number = 0
    for files in StoredFiles.every.values():
        with _answering():
            names = list(files.names())
        for name in names:
            try:
                with _answering():
                    source = files.opened(name)
            except FileNotFoundError:  # deleted after it was listed
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
        kind = type(error).__name__
        raise BackupError(f"The store of files does not answer ({kind}), so there is no backup.") from error
