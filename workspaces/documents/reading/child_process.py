"""The process that reads one file within limits: ``python -m workspaces.documents.reading.child_process``.

A malicious file can harm only this process: its memory, time and output are limited, and it ends with its parent. It
writes the blocks to standard output as JSON lines; the last line holds the result.
"""

import base64
import errno
import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from workspaces.documents.reading import kinds, pictures
from workspaces.documents.reading.kinds import READERS, Blocks, Unreadable, left_out, look_inside
from workspaces.documents.reading.mail import read_box, read_calendar, read_mail, read_msg
from workspaces.documents.reading.office import (
    read_by_library,
    read_docx,
    read_epub,
    read_odp,
    read_ods,
    read_odt,
    read_pptx,
    read_rtf,
    read_xlsx,
)
from workspaces.documents.reading.pictures import FACE, FACE_SIDE, PICTURES, draw_picture, read_picture
from workspaces.documents.reading.plain import (
    read_csv,
    read_html,
    read_json,
    read_markdown,
    read_text,
    read_web_page,
)


def _read_pdf(data: bytes) -> Blocks:
    from workspaces.documents.reading.pdf import read_pdf  # loads PDFium, which other types do not need

    return read_pdf(data)


BY_LIBRARY = (kinds.DOC, kinds.PPT, kinds.XLS, kinds.XLSB)
READERS |= {
    kinds.PDF: _read_pdf,
    kinds.WORD: read_docx,
    kinds.SLIDES: read_pptx,
    kinds.SHEETS: read_xlsx,
    kinds.ODT: read_odt,
    kinds.ODS: read_ods,
    kinds.ODP: read_odp,
    kinds.RTF: read_rtf,
    kinds.EPUB: read_epub,
    kinds.HTML: read_html,
    kinds.WEB_PAGE: read_web_page,
    kinds.MARKDOWN: read_markdown,
    kinds.CSV: read_csv,
    kinds.JSON: read_json,
    kinds.MAIL: read_mail,
    kinds.MBOX: read_box,
    kinds.MSG: read_msg,
    kinds.CALENDAR: read_calendar,
    kinds.TEXT: read_text,
    **{kind: partial(read_by_library, kind=kind) for kind in BY_LIBRARY},
    **{f"image/{name.lower()}": read_picture for name in PICTURES},
}


MOST_CHARACTERS = 10_000_000
MOST_WRITTEN = 200_000_000  # bytes


def limit(memory: int, seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_WRITTEN, MOST_WRITTEN))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def say(what: dict[str, object]) -> None:
    with exit_if_disk_full():
        sys.stdout.write(json.dumps(what, ensure_ascii=False) + "\n")


@contextmanager
def exit_if_disk_full() -> Iterator[None]:
    """Exit with ENOSPC if writing in this context fails because the disk is full. The file is then not marked as
    unreadable.
    """
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            os._exit(errno.ENOSPC)
        raise


def read(path: Path, media_type: str) -> tuple[str, str]:
    """Read the file and write its blocks. Return its media type and an error key, or "" on success.

    For an image, write a small JPEG too, even if it has no text.
    """
    try:
        data = path.read_bytes()
        if media_type == FACE:
            return media_type, _draw(data, square=FACE_SIDE)
        kind = look_inside(data, media_type)
    except Exception as error:
        return media_type, _why(error)
    ended = _read(data, kind)
    if kind.startswith("image/") and ended in ("", "no_ocr", "empty", "ocr", "time"):
        return kind, _draw(data) or ended
    return kind, ended


def _why(error: BaseException) -> str:
    """Return the error key of a failed reading."""
    if isinstance(error, Unreadable | pictures.OcrFailed):
        return str(error)
    return "memory" if isinstance(error, MemoryError) else "broken"


def _draw(data: bytes, *, square: int = 0) -> str:
    try:
        jpeg, width, height = draw_picture(data, square=square)
    except Exception as error:
        return _why(error)
    say({"jpeg": base64.b64encode(jpeg).decode(), "width": width, "height": height})
    return ""


def _read(data: bytes, kind: str) -> str:
    reader = READERS.get(kind)
    if reader is None:
        return "unknown"
    characters = 0
    try:
        for block in reader(data):
            text = block.text.replace("\0", "").encode(errors="replace").decode()
            if not text.strip():
                continue
            characters += len(text)
            if characters > MOST_CHARACTERS:
                return "too_long"
            heading = block.heading.replace("\0", "").encode(errors="replace").decode()
            say({"text": text, "page": block.page, "heading": heading})
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # any error of a dozen libraries; a Rust panic is no Exception
        return _why(error)
    if characters:
        return ""
    return "no_ocr" if left_out["pages"] or left_out["pictures"] else "empty"


if __name__ == "__main__":
    limit(int(sys.argv[3]), int(sys.argv[4]))
    kind, ended = read(Path(sys.argv[1]), sys.argv[2])
    say({"ended": ended, "kind": kind, "left_out": left_out})
    with exit_if_disk_full():
        sys.stdout.flush()
