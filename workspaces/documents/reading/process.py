"""Have a file read by another process (``reader``), and say in a sentence what went wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as later

from memoryhub.local.launcher import launch_command
from workspaces.documents.cutting import Block

SENTENCES: dict[str, str | Promise] = {
    "unknown": later("Files of this kind cannot be read."),
    "encrypted": later("The file is protected by a password. Save it without one and bring it again."),
    "broken": later("The file is damaged, or is not what its name says."),
    "empty": later("There is no text in it. Scanned pages need OCR, which is not installed here."),
    "too_long": later("The file has more text than is read of one document. Split it."),
    "too_large_unpacked": later("The file unpacks to more than is read of one document."),
    "memory": later("Reading the file took more memory than it may."),
    "time": later("Reading the file took longer than it may."),
}


class CouldNotRead(Exception):
    """``args[0]`` is a key of SENTENCES."""


def read_file(path: Path, media_type: str) -> list[Block]:
    """Its blocks. Raises CouldNotRead. Takes at most DOCUMENT_SECONDS and DOCUMENT_MEMORY_MB."""
    seconds = settings.DOCUMENT_SECONDS
    command = [sys.executable, "-m", "workspaces.documents.reading.reader", str(path), media_type]
    command += [str(settings.DOCUMENT_MEMORY_MB * 2**20), str(seconds)]
    with tempfile.TemporaryFile() as out:
        try:
            ended = subprocess.run(  # noqa: S603  ours; the path is a file that we made
                launch_command(command, death_signal=signal.SIGKILL),
                cwd=settings.BASE_DIR,
                env={"PYTHONHASHSEED": "random", "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
                timeout=2 * seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CouldNotRead("time") from None
        out.seek(0)
        blocks, why = _parsed(out.read().decode())
    if why is None:
        raise CouldNotRead("time" if ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else "memory")
    if why:
        raise CouldNotRead(why)
    return blocks


def _parsed(text: str) -> tuple[list[Block], str | None]:
    """The blocks, and how it ended: None where it did not say."""
    blocks: list[Block] = []
    for line in text.splitlines():
        try:
            said = json.loads(line)
        except ValueError:  # the last line of a process that was killed
            return blocks, None
        if "ended" in said:
            return blocks, said["ended"]
        blocks.append(Block(said["text"], said["page"], said["heading"]))
    return blocks, None
