"""Pictures: reading their text by OCR, small JPEGs for models and pages, and pictures and files inside other files.

Does not import Django, because it runs in the process that reads untrusted files.
"""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import time
import zipfile
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from memoryhub.local.run_with_parent import launch_command
from workspaces.documents.reading.kinds import (
    READERS,
    TEXT,
    UNKNOWN,
    Block,
    Blocks,
    Unreadable,
    by_name,
    left_out,
    look_inside,
)

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PAGES = 5_000
MOST_PIXELS = 64_000_000  # of a picture, or of a page rendered for OCR
LONGEST_SHOWN = 1280  # pixels; longest side of the JPEG for models and pages
FACE, FACE_SIDE = "image/*; of=person", 256  # a profile picture, of which only a small square is needed
PICTURES = ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP")  # other decoders of the library are not used


def read_picture(data: bytes) -> Blocks:
    """Yield the text of a picture by OCR, page by page for TIFF.

    A picture is decoded even if OCR is not installed, so that broken pictures, which models would reject, are found.
    Raises Unreadable if it is too large.
    """
    from PIL import ImageOps, ImageSequence

    opened = open_picture(data)
    pages = ImageSequence.Iterator if opened.format == "TIFF" else lambda only: iter([only])
    pixels = 0
    for frame in pages(opened):  # reads only the headers
        pixels += frame.width * frame.height
        if frame.width * frame.height > MOST_PIXELS or pixels > MOST_PAGES * 1_000_000:
            raise Unreadable("too_large_unpacked")
    for number, frame in enumerate(pages(opened), 1):
        frame.load()
        if is_there():
            yield Block(text_of(ImageOps.exif_transpose(frame)), number)
        else:
            left_out["pages"] += 1


def open_picture(data: bytes) -> Any:
    """Open a picture, reading only its header. Raises Unreadable if it is too large."""
    from PIL import Image

    try:
        opened = Image.open(io.BytesIO(data), formats=PICTURES)
    except Image.DecompressionBombError:
        raise Unreadable("too_large_unpacked") from None
    if opened.width * opened.height > MOST_PIXELS:
        raise Unreadable("too_large_unpacked")
    return opened


def draw_picture(data: bytes, *, square: int = 0) -> tuple[bytes, int, int]:
    """Return the file's first picture as an upright JPEG, with its width and height.

    The longest side has at most LONGEST_SHOWN pixels. With ``square``, the picture is cropped around its centre to a
    square with sides of ``square`` pixels. Re-encoding removes all metadata, such as the location.
    """
    from PIL import Image, ImageOps

    longest = square or LONGEST_SHOWN
    with open_picture(data) as opened:
        opened.draft("RGB", (2 * longest, 2 * longest))  # decodes a JPEG no larger than needed
        drawn = ImageOps.exif_transpose(opened)
    if drawn.mode.startswith("I"):  # 16 bits a pixel
        drawn = drawn.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if drawn.mode in ("1", "P"):
        drawn = drawn.convert("RGBA")
    if square:
        drawn = ImageOps.fit(drawn, (square, square))
    drawn.thumbnail((longest, longest))
    drawn, sheet, out = drawn.convert("RGBA"), Image.new("RGB", drawn.size, "white"), io.BytesIO()
    sheet.paste(drawn, mask=drawn.getchannel("A"))
    sheet.save(out, "JPEG", quality=85)
    return out.getvalue(), *sheet.size


# OCR by the operator's ``tesseract``, if it is installed: one process per picture.
#
# It runs within the reader's limits of memory and output; all pictures of a file together have OCR_SECONDS. Pictures
# are decoded and re-encoded here, so that tesseract does not get the file's own bytes.

LONGEST_SIDE = 5000  # pixels; an A4 page at 400 dots per inch
PASSED_ON = ("TESSDATA_PREFIX",)  # environment variables


class OcrFailed(Exception):
    """Raised when OCR fails. ``args[0]``: a key of ``parent_process.SENTENCES``."""


def is_there() -> bool:
    return bool(os.environ.get("OCR_PROGRAM"))


def text_of(picture: Image) -> str:
    """Return a picture's text by OCR. Raises OcrFailed if tesseract fails or the file's time is up."""
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
    """Return the text of a picture inside another file, or None if it cannot be read."""
    if not is_there():
        return None
    try:
        lines = text_of(picture).splitlines()
    except OcrFailed:
        return None
    # Without noise, such as specks in a photo.
    return "\n".join(line for line in lines if len(re.findall(r"[^\W_]", line)) > 2)


@cache
def _deadline() -> float:
    return time.monotonic() + float(os.environ["OCR_SECONDS"])


MOST_FILES = 200
MOST_DEEP = 4
SMALLEST = 3_000  # pixels; a smaller picture is a bullet or a line
_depth = 0


def read(name: str, data: bytes, kind: str = "", depth: int = 0) -> Blocks:
    """Read a file that is inside another file, such as an attachment. The headings of its blocks begin with its name.

    A file that cannot be read yields a block that says so, and is counted in ``left_out``. ``kind``: its media type, if
    its name does not show it. ``depth``: added to the nesting, which is limited.
    """
    global _depth
    if not data:
        return
    guess = by_name(name, kind)
    blocks: list[Block] = []
    _depth += 1
    try:
        media_type = look_inside(data, guess)
        if media_type.startswith("image/"):
            yield from pictures({name: data})
            return
        if _depth + depth <= MOST_DEEP and media_type in READERS and (media_type != TEXT or guess != UNKNOWN):
            blocks = list(READERS[media_type](data))
    except (MemoryError, OcrFailed, RecursionError):
        raise
    except Exception:  # any error of a dozen libraries on a malformed file
        blocks = []
    finally:
        _depth -= 1
    if not any(block.text.strip() for block in blocks):
        left_out["files"] += 1
        yield Block(f"Attached, not read: {name}", 0, name)
        return
    for block in blocks:
        yield Block(block.text, 0, " > ".join(filter(None, (name, block.heading)))[:300])


def pictures(files: dict[str, bytes]) -> Blocks:
    """Read pictures inside a file by OCR. Pictures that cannot be read are counted in ``left_out``."""
    for name, data in files.items():
        try:
            picture = open_picture(data)
            if picture.width * picture.height < SMALLEST:
                continue
            picture.load()
        except (Unreadable, OSError, ValueError, SyntaxError):
            left_out["pictures"] += 1
            continue
        text = text_beside(picture)
        if text is None:
            left_out["pictures"] += 1
        elif text:
            yield Block(text, 0, PurePath(name).name)


def in_archive(archive: zipfile.ZipFile) -> Blocks:
    """Read the pictures and embedded files of an office file.

    The worksheets that hold the data of its charts are left out.
    """
    names = archive.namelist()
    media = [name for name in names if "/media/" in name or name.startswith("Pictures/")]
    yield from pictures({name: archive.read(name) for name in media})
    charts = {name.replace("/_rels", "")[:-5]: name for name in names if "/charts/_rels/" in name}
    # A chart without cached values is read from its worksheet.
    has_values = [rels for name, rels in charts.items() if name in names and b"v>" in archive.read(name)]
    charted = b"".join(map(archive.read, has_values))
    for name in [each for each in names if "/embeddings/" in each][:MOST_FILES]:
        short = name.rpartition("/")[2]
        if short.encode() not in charted:
            yield from read(short, archive.read(name))
