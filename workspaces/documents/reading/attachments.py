"""Reading of files and pictures inside other files."""

from __future__ import annotations

import zipfile
from pathlib import PurePath

from workspaces.documents.reading import pictures as ocr
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
from workspaces.documents.reading.pictures import open_picture

MOST_FILES = 200
MOST_DEEP = 4
SMALLEST = 3_000  # pixels; a smaller picture is a bullet or a line
_depth = 0


def read(name: str, data: bytes, kind: str = "", depth: int = 0) -> Blocks:
    """Read a file inside another file, under its name. A file that cannot be read is named and counted as left out."""
    global _depth
    if not data:
        return
    guess = by_name(name, kind)
    blocks: list[Block] = []
    _depth += 1
    try:
        found = look_inside(data, guess)
        if found.startswith("image/"):
            yield from pictures({name: data})
            return
        if _depth + depth <= MOST_DEEP and found in READERS and (found != TEXT or guess != UNKNOWN):
            blocks = list(READERS[found](data))
    except (MemoryError, ocr.OcrFailed, RecursionError):
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
    """Read pictures inside a file by OCR. Those that cannot be read are counted as left out."""
    for name, data in files.items():
        try:
            picture = open_picture(data)
            if picture.width * picture.height < SMALLEST:
                continue
            picture.load()
        except (Unreadable, OSError, ValueError, SyntaxError):
            left_out["pictures"] += 1
            continue
        text = ocr.text_beside(picture)
        if text is None:
            left_out["pictures"] += 1
        elif text:
            yield Block(text, 0, PurePath(name).name)


def in_archive(archive: zipfile.ZipFile) -> Blocks:
    """Read the pictures and embedded files of an office file, except the worksheets that hold the data of its
    charts.
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
