"""A small file system, for tests of full disks."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """Mount a file system at this folder; ``size`` as in ``mount``. Skips the test if mounting is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system of its own")
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> None:
    """Fill the disk to its last byte, by a file that ``make_room`` removes."""
    with (disk / "ballast").open("ab", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


def make_room(disk: Path) -> None:
    (disk / "ballast").unlink(missing_ok=True)
