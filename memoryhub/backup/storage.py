"""Storage of backups: a local file, or an object of an S3-compatible store (``s3://bucket/folder/one.zip``).

A backup under its final name is complete: a local file is written under another name and renamed, and an object exists
only once all of its parts are uploaded.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

import boto3
from botocore.exceptions import BotoCoreError, ClientError, IncompleteReadError, NoCredentialsError
from django.conf import settings
from urllib3.exceptions import HTTPError

from memoryhub.stored_files import S3_BACKEND, client_config

SCHEME = "s3://"
LEFT = ".*.zip.????????.unfinished"
LEFT_AFTER = 86_400  # seconds without a write, after which the writing process is assumed dead


class BackupError(Exception):
    """Raised when a backup cannot be made, read or restored. Nothing was changed; the message says what to do."""


class Place(ABC):
    """The location of a backup or of a folder of backups. All methods raise BackupError if the storage fails."""

    @property
    @abstractmethod
    def is_folder(self) -> bool: ...

    @property
    @abstractmethod
    def folder(self) -> Place:
        """Return the folder that contains this backup."""

    @abstractmethod
    def inside(self, name: str) -> Place: ...

    @abstractmethod
    def named_like(self, pattern: str) -> list[Place]:
        """Return the backups in this folder whose names match the pattern, sorted by name."""

    @abstractmethod
    def exists(self) -> bool: ...

    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def remove(self) -> None: ...

    @abstractmethod
    def writing(self) -> AbstractContextManager[IO[bytes]]:
        """Open the file for writing. It appears under its name when the block ends, or not at all after an error."""

    @abstractmethod
    def reading(self) -> IO[bytes]:
        """Open the file for reading. The file is seekable."""


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
        try:  # created exclusively, because a file that another user placed there could be read by that user
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
        """Remove unfinished files of killed backups, which are hidden and may be large."""
        for left in self.path.absolute().parent.glob(LEFT):
            with suppress(OSError):
                if left.stat().st_mtime < time.time() - LEFT_AFTER:
                    left.unlink()

    def reading(self) -> IO[bytes]:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise BackupError(f"{self} cannot be read: {error.strerror or error}.") from error


# Backups in an S3-compatible store, which are uploaded and downloaded in parts.

PART = 32 * 1024 * 1024  # bytes; two parts are in memory while one is uploaded
LARGER_AFTER = 1000  # number of parts after which their size doubles (an object may have 10,000)
READ_AHEAD = 1024 * 1024
ATTEMPTS = 3  # attempts to continue a download after a lost connection
NOT_THERE = {"404", "NoSuchKey", "NotFound"}
REFUSED = {"403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "Forbidden"}


class BucketPlace(Place):
    """An object of a bucket. If its key is empty or ends in a slash, it is a folder of all objects with that prefix."""

    def __init__(self, bucket: str, key: str) -> None:
        self.bucket, self.key = bucket, key
        self._object = {"Bucket": bucket, "Key": key}

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.key}"

    @property
    def is_folder(self) -> bool:
        return not self.key or self.key.endswith("/")

    @property
    def folder(self) -> BucketPlace:
        return BucketPlace(self.bucket, self.key[: self.key.rfind("/") + 1])

    def inside(self, name: str) -> BucketPlace:
        return BucketPlace(self.bucket, self.key + name)

    def named_like(self, pattern: str) -> list[Place]:
        with self._asked("listed"):
            listed = (
                _client()
                .get_paginator("list_objects_v2")
                .paginate(Bucket=self.bucket, Prefix=self.key, Delimiter="/")
            )
            names = [
                each["Key"].removeprefix(self.key) for part in listed for each in part.get("Contents", [])
            ]
        return [self.inside(name) for name in sorted(names) if fnmatch(name, pattern)]

    def exists(self) -> bool:
        with self._asked("looked for"):
            try:
                _client().head_object(**self._object)
            except ClientError as error:
                if _code(error) in NOT_THERE:
                    return False
                raise
        return True

    def size(self) -> int:
        with self._asked("read"):
            return int(_client().head_object(**self._object)["ContentLength"])

    def remove(self) -> None:
        with self._asked("removed"):
            _client().delete_object(**self._object)

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        with self._asked("written"):
            upload = _Upload(self._object)
            try:
                yield cast("IO[bytes]", upload)
                upload.complete()
            except BaseException:
                upload.abort()
                raise

    def reading(self) -> IO[bytes]:
        with self._asked("read"):
            raw = _Download(self._object, str(self))
        return cast("IO[bytes]", io.BufferedReader(raw, READ_AHEAD))

    @contextmanager
    def _asked(self, to_be: str) -> Iterator[None]:
        """Convert errors of the store to BackupError."""
        try:
            yield
        except (ClientError, BotoCoreError, OSError) as error:
            raise BackupError(f"{self} could not be {to_be}: {_why(error, self.bucket)}") from error


class _Upload(io.RawIOBase):
    """A multipart upload, which uploads one part while the next is written. The store verifies each part's MD5."""

    def __init__(self, object_: dict[str, str]) -> None:
        super().__init__()
        id_ = _client().create_multipart_upload(**object_)["UploadId"]
        self._upload = {**object_, "UploadId": id_}
        self._waiting = bytearray()
        self._sent: list[Future[dict[str, Any]]] = []
        self._sender = ThreadPoolExecutor(max_workers=1, thread_name_prefix="backup-upload")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._waiting += data
        if len(self._waiting) >= PART << len(self._sent) // LARGER_AFTER:
            self._send()
        return len(data)

    def _send(self) -> None:
        if self._sent:
            self._sent[-1].result()  # raises the previous part's error
        number = len(self._sent) + 1
        self._sent.append(self._sender.submit(self._send_part, number, bytes(self._waiting)))
        self._waiting.clear()

    def _send_part(self, number: int, data: bytes) -> dict[str, Any]:
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        sent = _client().upload_part(**self._upload, PartNumber=number, Body=data, ContentMD5=digest)
        return {"PartNumber": number, "ETag": sent["ETag"]}

    def complete(self) -> None:
        self._send()
        parts = [each.result() for each in self._sent]
        _client().complete_multipart_upload(**self._upload, MultipartUpload={"Parts": parts})
        self._sender.shutdown()

    def abort(self) -> None:
        """Abort the upload, so that the store deletes the parts.

        If it does not answer, its own rules delete them later.
        """
        self._sender.shutdown(cancel_futures=True)
        with suppress(ClientError, BotoCoreError):
            _client().abort_multipart_upload(**self._upload)


class _Download(io.RawIOBase):
    """A seekable download of an object, which reconnects at the current position after a lost connection."""

    def __init__(self, object_: dict[str, str], name: str) -> None:
        super().__init__()
        found = _client().head_object(**object_)
        self._name, self._size = name, int(found["ContentLength"])
        self._object = {**object_, "IfMatch": found["ETag"]}  # fail if the object is replaced
        self._position = 0
        self._body: Any = None  # response body at the current position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if position < 0:
            raise OSError("before the beginning")
        if position != self._position:
            self._hang_up()
        self._position = position
        return position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._size - self._position)
        if wanted <= 0:
            return 0
        for attempt in range(1, ATTEMPTS + 1):
            try:
                read = self._read(wanted)
                break
            except (ClientError, BotoCoreError, HTTPError, OSError) as error:
                self._hang_up()
                if attempt == ATTEMPTS or isinstance(error, ClientError):
                    raise BackupError(f"{self._name} could not be read: {_why(error)}") from error
        buffer[: len(read)] = read
        self._position += len(read)
        return len(read)

    def _read(self, wanted: int) -> bytes:
        if self._body is None:
            self._body = _client().get_object(**self._object, Range=f"bytes={self._position}-")["Body"]
        read: bytes = self._body.read(wanted)
        if not read:
            raise IncompleteReadError(actual_bytes=self._position, expected_bytes=self._size)
        return read

    def _hang_up(self) -> None:
        if self._body is not None:
            self._body.close()
        self._body = None

    def close(self) -> None:
        self._hang_up()
        super().close()


def _client() -> Any:
    """Return a client with the settings of the documents' store, else with boto3's own environment variables."""
    store = settings.STORAGES["documents"]
    options = store["OPTIONS"] if store["BACKEND"] == S3_BACKEND else {}
    names = ("endpoint_url", "region_name", "access_key", "secret_key", "client_config")
    return _made(*(options.get(name) for name in names))


@cache
def _made(endpoint: str | None, region: str | None, key: str | None, secret: str | None, config: Any) -> Any:
    """Create a client, which takes a third of a second. Threads may share it."""
    own_address = any(os.environ.get(name) for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"))
    return boto3.Session().client(
        "s3",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=config or client_config(own_address=own_address, past_proxies=False),
    )


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _why(error: Exception, bucket: str = "") -> str:
    if isinstance(error, NoCredentialsError):
        return (
            "there are no keys for the store. They are those of MEMORYHUB_S3_… where documents lie in one, else "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    if isinstance(error, OSError):
        return f"{error.strerror or error}."
    if not isinstance(error, ClientError):
        return f"the store does not answer ({type(error).__name__})."
    code = _code(error)
    if code == "NoSuchBucket":
        return f"there is no bucket {bucket}."
    if code in REFUSED:
        return f"the store refuses the keys, or they may not do this ({code})."
    if code in NOT_THERE:
        return "there is no such file, or no such bucket."
    return f"the store says {code}."


# Parsing of a location from the command line.


def place_of(text: str | Path) -> Place:
    """Return the location that a text names: a path, or ``s3://bucket/folder/`` with or without a file name.

    Raises BackupError if the URL names no bucket.
    """
    if not str(text).startswith(SCHEME):
        return FilePlace(Path(text))
    bucket, _, key = str(text).removeprefix(SCHEME).partition("/")
    if not bucket:
        raise BackupError(f"{text} names no bucket: it must look like s3://bucket/folder/.")
    return BucketPlace(bucket, key)
