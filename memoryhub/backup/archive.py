"""The file of a backup: a ZIP that any tool can open, not compressed (the dump inside is).

    database.dump       pg_dump's custom format
    forgotten.dump      the tables of it that say what was forgotten: a restore of an older backup reads them
    assets/…, documents/…   the stored files
    keys.sealed         the installation's keys, encrypted with the passphrase; only with one
    manifest.json       written last: versions, rows of each table, and size and SHA-256 of all of the above

A file without a manifest is one whose making was cut short.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import IO, Any

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from memoryhub.backup.storage import BackupError, Place

FORMAT = 1
DUMP, FORGOTTEN, KEYS, MANIFEST = "database.dump", "forgotten.dump", "keys.sealed", "manifest.json"
FOLDERS = {"assets", "documents"}  # of ``StoredFiles``
CHUNK = 1 << 20
SHORTEST_PASSPHRASE = 12
DAMAGED = "Damaged: %s is not what was written. Take another backup."
Show = Callable[[str], object]  # how far it is, over what was shown before


def nobody(text: str) -> None:
    """Shows nothing."""


@dataclass
class Manifest:
    made_at: str  # ISO 8601, UTC; the moment of the database's snapshot
    postgres: int  # the server's major version
    migrations: dict[str, str]  # the last one of each app
    rows: dict[str, int]  # of each table
    installation: str  # equal for backups of one installation, and telling nothing else of it
    members: dict[str, tuple[int, str]] = field(default_factory=dict)  # name: bytes and SHA-256
    format: int = FORMAT

    @property
    def when(self) -> datetime:
        return datetime.fromisoformat(self.made_at).astimezone(UTC)


class Writer:
    """A stream that is written once, from beginning to end. ``show`` gets the progress."""

    def __init__(self, place: Place, show: Show = nobody) -> None:
        self.place = place
        self._show = show
        self._members: dict[str, tuple[int, str]] = {}

    @contextmanager
    def open(self) -> Iterator[Writer]:
        with (
            self.place.writing() as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as self._zip,
        ):
            yield self

    def add(self, name: str, source: IO[bytes]) -> int:
        """Copy all of ``source`` in under this name; its bytes."""
        size, digest = 0, hashlib.sha256()
        with self._zip.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
            while chunk := source.read(CHUNK):
                member.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                self._show(f"{name}: {size:,} bytes")
        self._members[name] = (size, digest.hexdigest())
        return size

    def finish(self, manifest: Manifest) -> None:
        manifest.members = self._members
        self._zip.writestr(MANIFEST, json.dumps(asdict(manifest), indent=1, sort_keys=True))


class Reader:
    """An archive to restore from. Raises BackupError where it is no whole one of a format that is known."""

    def __init__(self, place: Place, show: Show = nobody) -> None:
        self.place, self._show, self._file = place, show, place.reading()
        try:
            self._open(place)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def _open(self, place: Place) -> None:
        try:
            self._zip = zipfile.ZipFile(self._file)
            found: dict[str, Any] = json.loads(self._zip.read(MANIFEST))
            if found["format"] != FORMAT:
                raise BackupError(
                    f"{place} was written by a newer MemoryHub: its format is {found['format']}."
                )
            self.manifest = made = Manifest(**found)
            if not all(isinstance(part, dict) for part in (made.migrations, made.rows, made.members)):
                raise TypeError
            _ = made.when  # is a moment
        except BackupError:
            raise
        except OSError as error:
            raise BackupError(f"{place} cannot be read: {error.strerror or error}.") from error
        except Exception as error:  # the library's decoders raise anything for another kind of ZIP
            raise BackupError(f"{place} is no whole backup of MemoryHub.") from error

    def verify(self) -> None:
        """Read everything once and compare it with the manifest."""
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
        """Read all of it, and show the progress of ``doing``."""
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
        """Names of the stored files, each below one of ``FOLDERS``; a name that leads elsewhere is refused."""
        for name in self.manifest.members:
            folder, *rest = name.split("/")
            if folder in FOLDERS:
                if not rest or any(part in {"", ".", ".."} for part in rest):
                    raise BackupError(f"Damaged: {name!r} is no name of a stored file.")
                yield name

    def keys(self, passphrase: str) -> dict[str, Any] | None:
        """Return the sealed keys, None if there are none. BackupError for another passphrase."""
        if KEYS not in self.manifest.members:
            return None
        salt, sealed = self._zip.read(KEYS).split(b"\n", 1)
        try:
            found: dict[str, Any] = json.loads(_box(passphrase, base64.b64decode(salt)).decrypt(sealed))
        except InvalidToken:
            raise BackupError("That is not the passphrase of this backup.") from None
        return found


def sealed_keys(keys: dict[str, Any], passphrase: str) -> bytes:
    """The keys under a key that is derived from the passphrase (scrypt, 16 bytes of salt, some 64 MB of memory)."""
    salt = secrets.token_bytes(16)
    return base64.b64encode(salt) + b"\n" + _box(passphrase, salt).encrypt(json.dumps(keys).encode())


def _box(passphrase: str, salt: bytes) -> Fernet:
    derived = Scrypt(salt=salt, length=32, n=2**16, r=8, p=1).derive(passphrase.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
