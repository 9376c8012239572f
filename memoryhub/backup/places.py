"""Where a backup lies: a file of this machine, or an object of an S3-compatible store (``s3://bucket/folder/one.zip``).

What lies there under its name is whole: a file is written beside its place and moved, an object is there once all of
its parts are.
"""

from __future__ import annotations

import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import IO

SCHEME = "s3://"
LEFT = ".*.zip.????????.unfinished"
LEFT_AFTER = 86_400  # seconds in which nothing was written to it: whoever did is gone


class BackupError(Exception):
    """The backup could not be made, read or restored; the text says why and what to do. Nothing was changed."""


class Place(ABC):
    """A backup's, or a folder's of backups. Everything raises BackupError."""

    @property
    @abstractmethod
    def is_folder(self) -> bool: ...

    @property
    @abstractmethod
    def folder(self) -> Place:
        """In which it lies."""

    @abstractmethod
    def inside(self, name: str) -> Place: ...

    @abstractmethod
    def named_like(self, pattern: str) -> list[Place]:
        """What lies in this folder under such names, in their order."""

    @abstractmethod
    def exists(self) -> bool: ...

    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def remove(self) -> None: ...

    @abstractmethod
    def writing(self) -> AbstractContextManager[IO[bytes]]:
        """Where to write it to; it is there under its name when the block is left, and not at all after an error."""

    @abstractmethod
    def reading(self) -> IO[bytes]:
        """It can be read from any position."""


class FilePlace(Place):
    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    @property
    def folder(self) -> FilePlace:
        return FilePlace(self.path.absolute().parent)

    def inside(self, name: str) -> FilePlace:
        return FilePlace(self.path / name)

    def named_like(self, pattern: str) -> list[Place]:
        return [FilePlace(each) for each in sorted(self.path.iterdir()) if fnmatch(each.name, pattern)]

    def exists(self) -> bool:
        return self.path.exists()

    def size(self) -> int:
        return self.path.stat().st_size

    def remove(self) -> None:
        self.path.unlink()

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        self._remove_left()
        unfinished = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.unfinished")
        try:  # a file of its own: what others laid there would be theirs to read
            descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self.path)
        except OSError as error:
            raise BackupError(f"{self} could not be written: {error.strerror or error}.") from error
        finally:
            unfinished.unlink(missing_ok=True)

    def _remove_left(self) -> None:
        """What was killed leaves a file beside, which may be as large as a backup and has a name that nobody sees."""
        for left in self.path.absolute().parent.glob(LEFT):
            with suppress(OSError):
                if left.stat().st_mtime < time.time() - LEFT_AFTER:
                    left.unlink()

    def reading(self) -> IO[bytes]:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise BackupError(f"{self} cannot be read: {error.strerror or error}.") from error
