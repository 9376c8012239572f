"""Where files lie: in a folder, those of documents in an S3-compatible store where the settings name one."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memoryhub.environment import Environment

IN_MEMORY = 1_000_000  # bytes of a file that need none of its own on this machine while it is read
S3_BACKEND = "storages.backends.s3.S3Storage"
SECONDS = {"connect_timeout": 5, "read_timeout": 30}


def files_folder() -> Path:
    """Where files of memories and imports lie: the data folder, or the one that MEMORYHUB_FILES_DIR names."""
    return Path(settings.FILES_DIR or settings.DATA_DIR)


def document_store(env: Environment, folder: Path) -> tuple[dict[str, Any], bool]:
    """Django's ``STORAGES["documents"]``, and whether what lies there is on this machine."""
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
        modes = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
        backend = "django.core.files.storage.FileSystemStorage"
        return {"BACKEND": backend, "OPTIONS": {"location": folder, **modes}}, True
    if bool(given["access_key"]) != bool(given["secret_key"]):
        raise ImproperlyConfigured("MEMORYHUB_S3_ACCESS_KEY and MEMORYHUB_S3_SECRET_KEY go together.")
    options: dict[str, Any] = {
        "bucket_name": bucket,
        "endpoint_url": endpoint,
        **{
            name: value for name, value in given.items() if value
        },  # without keys, the client's own ways to some
        "default_acl": None,
        "querystring_auth": False,
        "max_memory_size": IN_MEMORY,
    }
    on_this_machine = _is_loopback(endpoint) if here is None else here
    options["client_config"] = client_config(own_address=endpoint is not None, past_proxies=on_this_machine)
    return {"BACKEND": S3_BACKEND, "OPTIONS": options}, on_this_machine


def client_config(*, own_address: bool, past_proxies: bool) -> Any:
    """How boto3 asks such a store."""
    from botocore.config import Config  # heavy; only where there is such a store

    return Config(
        retries={"total_max_attempts": 3},
        s3={"addressing_style": "path"} if own_address else {},
        # Newer checksums are known to Amazon's servers alone; TLS and our own SHA-256 are there anyway.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        signature_version="s3v4",
        proxies={} if past_proxies else None,  # None: those of the environment
        **SECONDS,
    )


def _is_loopback(endpoint: str | None) -> bool:
    host = urlsplit(endpoint or "").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
