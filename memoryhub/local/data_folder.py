"""The one folder that holds everything MemoryHub keeps."""

from __future__ import annotations

import stat
from pathlib import Path


class DataFolderError(Exception):
    """The data folder cannot be used; the text names the setting."""


def make_data_folders(data_dir: Path, *, passable: bool = False) -> None:
    """Make the data folder, `run/` and `logs/`, for this user only.

    `passable` adds the permission to pass through (not to look around) for the ordinary user that Postgres is
    run as when we are root.
    """
    try:
        for folder in (data_dir, data_dir / "run", data_dir / "logs"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if passable and folder.name != "logs":
                folder.chmod(stat.S_IMODE(folder.stat().st_mode) | 0o011)
        probe = data_dir / "run" / "writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DataFolderError(
            f"Cannot write in {error.filename or data_dir} ({error.strerror}): set MEMORYHUB_DATA_DIR to a "
            "folder that this user may write."
        ) from error
