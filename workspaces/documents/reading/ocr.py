"""The text in pictures, by the operator's own ``tesseract`` where there is one: a program of its own for each picture.

Runs in the reader's process, within its limits of memory and of what it may write; all pictures of a file together
have OCR_SECONDS. Pictures are decoded here: the program is given none of the file's own bytes.
"""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import time
from functools import cache
from typing import TYPE_CHECKING

from memoryhub.local.launcher import launch_command

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST_SIDE = 5000  # pixels: a sheet of A4 at 400 dots an inch
PASSED_ON = ("TESSDATA_PREFIX",)  # of the environment


class OcrFailed(Exception):
    """``args[0]`` is a key of ``process.SENTENCES``."""


def is_there() -> bool:
    return bool(os.environ.get("OCR_PROGRAM"))


def text_of(picture: Image) -> str:
    """Raises OcrFailed."""
    grey = picture.convert("L")
    grey.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    drawn = io.BytesIO()
    grey.save(drawn, "PNG", compress_level=1)
    command = [os.environ["OCR_PROGRAM"], "stdin", "stdout", "-l", os.environ["OCR_LANGUAGES"]]
    try:
        ended = subprocess.run(  # noqa: S603  the operator's program, found on their PATH
            launch_command(command, death_signal=signal.SIGKILL),
            input=drawn.getvalue(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                "OMP_THREAD_LIMIT": "1",
                **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            },
            timeout=max(0.1, _deadline() - time.monotonic()),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OcrFailed("time") from None
    if ended.returncode:
        raise OcrFailed("ocr")
    return ended.stdout.decode(errors="replace").replace("\f", "").strip()


def text_beside(picture: Image) -> str | None:
    """The same of a picture in a file that has other texts: None if it cannot be read for any reason."""
    if not is_there():
        return None
    try:
        lines = text_of(picture).splitlines()
    except OcrFailed:
        return None
    return "\n".join(
        line for line in lines if len(re.findall(r"[^\W_]", line)) > 2
    )  # not the specks of a photo


@cache
def _deadline() -> float:
    return time.monotonic() + float(os.environ["OCR_SECONDS"])
