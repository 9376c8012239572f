"""Storages of files: a local folder or, for documents and memories, an S3-compatible store."""

from __future__ import annotations

import ipaddress
import os
import posixpath
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import FileSystemStorage

from memoryhub.environment import Environment

IN_MEMORY = 1_000_000  # bytes up to which a file is read in memory, without a temporary file
S3_BACKEND, FOLDER_BACKEND = "storages.backends.s3.S3Storage", "memoryhub.files.file_stores.Folder"
# Folders, and their paths in a store below MEMORYHUB_S3_PREFIX. Documents came first, so they have no folder there.
PLACES: dict[str, tuple[str, ...]] = {"documents": (), "assets": ("assets",)}
SECONDS = {"connect_timeout": 5, "read_timeout": 30}


def files_folder() -> Path:
    """Return the folder of locally stored files: MEMORYHUB_FILES_DIR, else the data folder."""
    return Path(settings.FILES_DIR or settings.DATA_DIR)


class Folder(FileSystemStorage):
    """A storage below ``files_folder``, readable only by this user. A file gets its name once it is synced to disk."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            file_permissions_mode=0o600,
            directory_permissions_mode=0o700,
            allow_overwrite=True,  # only a draft of a killed process is overwritten, since names are random
        )
        self.folder = folder

    @property
    def location(self) -> Path:  # not cached, because tests change it
        return files_folder().absolute() / self.folder

    def _save(self, name: str, content: Any) -> str:
        path = self.location / name
        draft = path.with_name(f".{path.name}.part")
        try:
            super()._save(str(draft.relative_to(self.location)), content)  # type: ignore[misc]  # not in its stubs
            _sync(draft)
            draft.replace(path)
            _sync(path.parent)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return name


def file_stores(env: Environment) -> tuple[dict[str, dict[str, Any]], bool]:
    """Return the entries of Django's ``STORAGES`` for users' files, and whether these stay on this machine.

    Raises ImproperlyConfigured if the MEMORYHUB_S3_… variables are inconsistent.
    """
    bucket, endpoint, here = env.text("S3_BUCKET"), env.url("S3_ENDPOINT_URL"), env.boolean("S3_LOCAL", None)
    given = {
        "region_name": env.text("S3_REGION"),
        "access_key": env.text("S3_ACCESS_KEY"),
        "secret_key": env.text("S3_SECRET_KEY"),
        "location": env.text("S3_PREFIX"),
    }
    if not bucket:
        if endpoint or here is not None or any(given.values()):
            raise ImproperlyConfigured(
                "MEMORYHUB_S3_BUCKET must name a bucket where another MEMORYHUB_S3_… is set."
            )
        return {name: {"BACKEND": FOLDER_BACKEND, "OPTIONS": {"folder": name}} for name in PLACES}, True
    if bool(given["access_key"]) != bool(given["secret_key"]):
        raise ImproperlyConfigured("MEMORYHUB_S3_ACCESS_KEY and MEMORYHUB_S3_SECRET_KEY go together.")
    options: dict[str, Any] = {
        "bucket_name": bucket,
        "endpoint_url": endpoint,
        **{name: value for name, value in given.items() if value},  # without keys, boto3 finds some itself
        "default_acl": None,
        "querystring_auth": False,
        "max_memory_size": IN_MEMORY,
    }
    on_this_machine = _is_loopback(endpoint) if here is None else here
    options["client_config"] = client_config(own_address=endpoint is not None, past_proxies=on_this_machine)
    stores = {
        name: {
            "BACKEND": S3_BACKEND,
            "OPTIONS": options | {"location": posixpath.join(given["location"] or "", *below)},
        }
        for name, below in PLACES.items()
    }
    return stores, on_this_machine


def client_config(*, own_address: bool, past_proxies: bool) -> Any:
    """Return boto3's configuration. ``own_address`` means a store other than Amazon's."""
    from botocore.config import Config  # slow to import, and only needed with such a store

    return Config(
        retries={"total_max_attempts": 3},
        s3={"addressing_style": "path"} if own_address else {},
        # Only Amazon's servers know the newer checksums. TLS and our own SHA-256 protect the data anyway.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        signature_version="s3v4",
        proxies={} if past_proxies else None,  # None uses the environment's proxies
        **SECONDS,
    )


def _sync(path: Path) -> None:
    """Sync a file or folder to the disk. A new file's name is durable only once its folder is synced."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_loopback(endpoint: str | None) -> bool:
    host = urlsplit(endpoint or "").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
