"""Reading a file in another process, and messages for its failures."""

import base64
import errno
import json
import logging
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as later
from django.utils.translation import ngettext

from memoryhub.local.run_with_parent import launch_command
from workspaces.documents.reading import pictures
from workspaces.documents.reading.kinds import Block

logger = logging.getLogger(__name__)
SENTENCES: dict[str, str | Promise] = {
    "unknown": later("Files of this kind cannot be read. PDF, Office, HTML, text, email and pictures can."),
    "encrypted": later("The file is protected by a password. Save it without one and add it again."),
    "broken": later("The file is damaged, or is not what its name says."),
    "empty": later("There is no text in it."),
    "no_ocr": later(
        "There are only pictures in it, and reading those needs OCR, which is not installed here."
    ),
    "ocr": later("OCR failed on it. Its language data may be missing: ask your administrator."),
    "too_long": later("The file has more text than is read of one document. Split it."),
    "too_large_unpacked": later("The file unpacks to more than is read of one document."),
    "memory": later("Reading the file took more memory than it may."),
    "time": later("Reading the file took longer than it may."),
}

LEFT_OUT = {  # messages for the numbers of parts not read
    "pages": lambda many: (
        ngettext(
            "%(pages)d page is a picture. Its text was not read: OCR is not installed here.",
            "%(pages)d pages are pictures. Their text was not read: OCR is not installed here.",
            many,
        )
        % {"pages": many}
    ),
    "pictures": lambda many: (
        ngettext("%(pictures)d picture was not read.", "%(pictures)d pictures were not read.", many)
        % {"pictures": many}
    ),
    "files": lambda many: (
        ngettext("%(files)d attached file was not read.", "%(files)d attached files were not read.", many)
        % {"files": many}
    ),
}
DRAWN = ("application/", "image/", "message/")  # types that may contain pictures for OCR


@dataclass(frozen=True)
class Picture:
    jpeg: bytes
    width: int
    height: int


@dataclass(frozen=True)
class Read:
    blocks: list[Block]
    left_out: dict[str, int] = field(default_factory=dict)  # numbers of parts not read, by key of LEFT_OUT
    picture: Picture | None = None
    kind: str = ""  # the media type by content


class CouldNotRead(Exception):
    """Raised when a file's text was not read. ``args[0]``: a key of SENTENCES, which says why.

    ``picture`` is set for an image without text, which can still be shown. ``kind``: the media type by content, if
    known.
    """

    def __init__(self, why: str, picture: Picture | None = None, kind: str = "") -> None:
        super().__init__(why)
        self.picture, self.kind = picture, kind


def sentences_of(left_out: dict[str, int]) -> str:
    """Return sentences about the parts of a document that were not read."""
    return " ".join(sentence(left_out[what]) for what, sentence in LEFT_OUT.items() if left_out.get(what))


def longest(media_type: str) -> float:
    """Return the time limit in seconds for reading a file of this type."""
    seconds = float(2 * settings.DOCUMENT_SECONDS)
    return seconds + settings.OCR_SECONDS if media_type.startswith(DRAWN) else seconds


def read_file(path: Path, media_type: str, *, most: int | None = None) -> Read:
    """Read a file in another process, with limits of time and memory.

    The limits are DOCUMENT_SECONDS (or ``most``) of processor time, OCR_SECONDS for OCR, and DOCUMENT_MEMORY_MB. Raises
    CouldNotRead, or OSError if the disk is full.
    """
    seconds = most or settings.DOCUMENT_SECONDS
    limits = [str(settings.DOCUMENT_MEMORY_MB * 2**20), str(seconds)]
    for is_first in (True, False):
        before = _seconds_of_children()
        status, output = _run([str(path), media_type, *limits], most or longest(media_type))
        # Retry once if it was killed from outside, for example because the machine ran out of memory.
        was_killed = status == -signal.SIGKILL and _seconds_of_children() - before < seconds - 1
        if not (was_killed and is_first):
            break
    read, why = _parsed(output)
    if why is None:
        is_late = status in (-signal.SIGXCPU, -signal.SIGKILL) and not was_killed
        raise CouldNotRead("time" if is_late else "memory")
    if why == "ocr":
        logger.warning("OCR failed; is its data for MEMORYHUB_OCR_LANGUAGES installed?")
    if why:
        raise CouldNotRead(why, read.picture, read.kind)
    return read


def _run(arguments: list[str], seconds: float) -> tuple[int, str]:
    """Run the reader and return its exit status and output.

    Raises CouldNotRead after ``seconds``, OSError if the disk is full.
    """
    command = [sys.executable, "-m", "workspaces.documents.reading.child_process", *arguments]
    with tempfile.TemporaryFile() as out:
        try:
            ended = subprocess.run(  # noqa: S603  ours; the path is a file that we made
                launch_command(command, death_signal=signal.SIGKILL),
                cwd=settings.BASE_DIR,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CouldNotRead("time") from None
        if ended.returncode == errno.ENOSPC:
            raise OSError(errno.ENOSPC, "The reader of a document found no room on the disk")
        out.seek(0)
        return ended.returncode, out.read().decode(errors="replace")


def _seconds_of_children() -> float:
    """Return the processor seconds of this process's terminated children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment() -> dict[str, str]:
    """Return the reader's environment variables. Of the server's own variables it gets only those that OCR needs."""
    variables = {
        "ORT_DISABLE_TELEMETRY": "1",
        "PYTHONHASHSEED": "random",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    program = shutil.which("tesseract") if settings.OCR_LANGUAGES != "none" else None
    if program is not None:
        variables |= {"OCR_PROGRAM": program, "OCR_LANGUAGES": settings.OCR_LANGUAGES}
        variables["OCR_SECONDS"] = str(settings.OCR_SECONDS)
        variables |= {name: os.environ[name] for name in pictures.PASSED_ON if name in os.environ}
    return variables


def _parsed(text: str) -> tuple[Read, str | None]:
    """Return the parsed output of the reader and its error key: "" on success, None if the output was cut off."""
    blocks: list[Block] = []
    picture: Picture | None = None
    for line in text.split("\n"):  # not splitlines(), which also splits on characters inside JSON strings
        try:
            record = json.loads(line)
        except ValueError:  # an incomplete last line of a killed process
            break
        if "ended" in record:
            return Read(blocks, record["left_out"], picture, record["kind"]), record["ended"]
        if "jpeg" in record:
            picture = Picture(base64.b64decode(record["jpeg"]), record["width"], record["height"])
            continue
        blocks.append(Block(record["text"], record["page"], record["heading"]))
    return Read(blocks), None
