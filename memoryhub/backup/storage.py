"""Storage of backups: a local file, or an object of an S3-compatible store (``s3://bucket/folder/one.zip``).

A backup under its final name is complete: a local file is written under another name and renamed, and an object exists
only once all of its parts are uploaded.
"""

from __future__ import annotations

import io
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

import boto3
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
from django.conf import settings
from smart_open.s3 import MultipartWriter, Reader

from memoryhub.stored_files import S3_BACKEND, client_config

SCHEME = "s3://"
LEFT = ".*.zip.????????.unfinished"
LEFT_AFTER = 86_400  # seconds without a write, after which the writing process is assumed dead


class BackupError(Exception):
    """Raised when a backup cannot be made, read or restored. Nothing was changed; the message says what to do."""


class FilePlace:
    """A backup in a local file, or a folder of backups. Its methods raise BackupError if the disk fails."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_folder(self) -> bool:
        with self.backup_errors("looked for"):
            return self.path.is_dir()

    @property
    def folder(self) -> FilePlace:
        """Return the folder that contains this backup."""
        return FilePlace(self.path.absolute().parent)

    def inside(self, name: str) -> FilePlace:
        return FilePlace(self.path / name)

    def named_like(self, pattern: str) -> Sequence[FilePlace]:
        """Return the backups in this folder whose names match the pattern, sorted by name."""
        with self.backup_errors("listed"):
            paths = sorted(self.path.iterdir())
        return [FilePlace(each) for each in paths if fnmatch(each.name, pattern)]

    def exists(self) -> bool:
        with self.backup_errors("looked for"):
            return self.path.exists()

    def size(self) -> int:
        with self.backup_errors("read"):
            return self.path.stat().st_size

    def remove(self) -> None:
        with self.backup_errors("removed"):
            self.path.unlink()

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """Open the file for writing. It appears under its name when the block ends, or not at all after an error."""
        for left in self.path.absolute().parent.glob(LEFT):  # by killed backups, hidden and maybe large
            with suppress(OSError):
                if left.stat().st_mtime < time.time() - LEFT_AFTER:
                    left.unlink()
        unfinished = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.unfinished")
        try:  # created exclusively, because a file that another user placed there could be read by that user
            with self.backup_errors("written"):
                descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "w+b") as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                unfinished.replace(self.path)
        finally:
            with suppress(OSError):
                unfinished.unlink()

    def reading(self) -> IO[bytes]:
        """Open the file for reading. The file is seekable."""
        try:
            return self.path.open("rb")
        except OSError as error:
            raise BackupError(f"{self} cannot be read: {error.strerror or error}.") from error

    @contextmanager
    def backup_errors(self, to_be: str) -> Iterator[None]:
        """Convert errors of the disk to BackupError, whose message says that the backup could not be, say, "read"."""
        try:
            yield
        except OSError as error:
            raise BackupError(f"{self} could not be {to_be}: {error.strerror or error}.") from error


PART = 100 * 1024 * 1024  # bytes, in memory until they are uploaded; an object may have 10,000 parts, so 1 TB
NOT_THERE = {"404", "NoSuchKey", "NotFound"}
REFUSED = {"403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "Forbidden"}


class BucketPlace:
    """A backup in an object of a bucket, or a folder of backups if its key is empty or ends in a slash."""

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

    def named_like(self, pattern: str) -> Sequence[BucketPlace]:
        with self.backup_errors("listed"):
            pages = _client().get_paginator("list_objects_v2")
            listed = pages.paginate(Bucket=self.bucket, Prefix=self.key, Delimiter="/")
            keys = [each["Key"] for page in listed for each in page.get("Contents", [])]
        names = sorted(key.removeprefix(self.key) for key in keys)
        return [self.inside(name) for name in names if fnmatch(name, pattern)]

    def exists(self) -> bool:
        with self.backup_errors("looked for"):
            try:
                _client().head_object(**self._object)
            except ClientError as error:
                if _code(error) in NOT_THERE:
                    return False
                raise
        return True

    def size(self) -> int:
        with self.backup_errors("read"):
            return int(_client().head_object(**self._object)["ContentLength"])

    def remove(self) -> None:
        with self.backup_errors("removed"):
            _client().delete_object(**self._object)

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        with self.backup_errors("written"):
            upload = MultipartWriter(self.bucket, self.key, PART, client=_client())
            try:
                yield cast("IO[bytes]", upload)
                upload.close()
            except BaseException:
                upload.close = lambda: None  # type: ignore[method-assign]  # called when it is freed
                with suppress(ClientError, BotoCoreError):  # else the store's own rules delete the parts
                    upload.terminate()
                raise

    def reading(self) -> IO[bytes]:
        return cast("IO[bytes]", _Download(self))

    @contextmanager
    def backup_errors(self, to_be: str) -> Iterator[None]:
        """Convert errors of the store to BackupError, whose message says that the backup could not be, say, "read"."""
        try:
            yield
        except (ClientError, BotoCoreError, OSError, ValueError) as error:
            answer = error.__cause__ if isinstance(error.__cause__, ClientError) else error
            if isinstance(answer, ValueError):  # not one that smart_open made of the store's answer
                raise
            raise BackupError(f"{self} could not be {to_be}: {_why(answer, self.bucket)}") from error


class _Download(Reader):
    """A seekable download of an object, which reconnects after a lost connection. It raises BackupError."""

    def __init__(self, place: BucketPlace) -> None:
        self._place = place
        with place.backup_errors("read"):
            response = _client().head_object(Bucket=place.bucket, Key=place.key)
        same = {"S3.Client.get_object": {"IfMatch": response["ETag"]}}  # fail if the object is replaced
        super().__init__(
            place.bucket, place.key, buffer_size=1024 * 1024, client=_client(), client_kwargs=same
        )

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._place.backup_errors("read"):
            return super().seek(offset, whence)

    def read(self, size: int | None = -1) -> bytes:
        with self._place.backup_errors("read"):
            return super().read(size)


def _client() -> Any:
    """Return a client for the documents' store or, if that is no S3 store, for the one of boto3's own variables."""
    store = settings.STORAGES["documents"]
    options = store["OPTIONS"] if store["BACKEND"] == S3_BACKEND else {}
    names = ("endpoint_url", "region_name", "access_key", "secret_key", "client_config")
    return _client_for(*(options.get(name) for name in names))


@cache
def _client_for(
    endpoint: str | None, region: str | None, key: str | None, secret: str | None, config: Any
) -> Any:
    """Create an S3 client, or return the one with these options. Creating takes 0.3 seconds. Threads may share it."""
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


def _why(error: Exception, bucket: str) -> str:
    if isinstance(error, NoCredentialsError):
        return (
            "there are no keys for the store. They are those of MEMORYHUB_S3_… where documents lie in one, else "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}."
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


Place = FilePlace | BucketPlace


def place_of(text: str | Path) -> Place:
    """Return the location that a text names: a path or an s3:// URL. Raises BackupError if the URL names no bucket."""
    if not str(text).startswith(SCHEME):
        return FilePlace(Path(text))
    bucket, _, key = str(text).removeprefix(SCHEME).partition("/")
    if not bucket:
        raise BackupError(f"{text} names no bucket: it must look like s3://bucket/folder/.")
    return BucketPlace(bucket, key)
