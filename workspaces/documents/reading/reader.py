"""A file is read here, in a process of its own with limits: ``python -m workspaces.documents.reading.reader``.

Whatever a hostile file does, it does it to this process: memory, time and what it writes have their limits, and
it ends with its parent. Blocks go to the standard output as JSON, a line each; the last line says how it ended.
"""

from __future__ import annotations

import base64
import json
import resource
import sys
from pathlib import Path

from workspaces.documents.reading import ocr
from workspaces.documents.reading.block import Unreadable
from workspaces.documents.reading.drawing import FACE, FACE_SIDE, draw_picture
from workspaces.documents.reading.formats import READERS

MOST_CHARACTERS = 10_000_000
MOST_WRITTEN = 200_000_000  # bytes


def limit(memory: int, seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_WRITTEN, MOST_WRITTEN))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def say(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what, ensure_ascii=False) + "\n")


def read(path: Path, media_type: str) -> str:
    """How it ended: "" when the file was read to its end. A picture is drawn even if no text was found in it."""
    if media_type == FACE:
        return _draw(path, square=FACE_SIDE)
    ended = _read(path, media_type)
    if media_type.startswith("image/") and ended in ("", "no_ocr", "empty", "ocr", "time"):
        return _draw(path) or ended
    return ended


def _draw(path: Path, *, square: int = 0) -> str:
    try:
        jpeg, width, height = draw_picture(path, square=square)
    except Unreadable as error:
        return str(error)
    except MemoryError:
        return "memory"
    except Exception:  # as below
        return "broken"
    say({"jpeg": base64.b64encode(jpeg).decode(), "width": width, "height": height})
    return ""


def _read(path: Path, media_type: str) -> str:
    reader = READERS.get(media_type)
    if reader is None:
        return "unknown"
    characters = 0
    try:
        for block in reader(path):
            text = block.text.replace("\0", "").encode(errors="replace").decode()
            if not text.strip():
                continue
            characters += len(text)
            if characters > MOST_CHARACTERS:
                return "too_long"
            heading = block.heading.replace("\0", "").encode(errors="replace").decode()
            say({"text": text, "page": block.page, "heading": heading})
    except (Unreadable, ocr.OcrFailed) as error:
        return str(error)
    except MemoryError:
        return "memory"
    except Exception:  # of a dozen libraries, on a file that is not what it says
        return "broken"
    if characters:
        return ""
    return "no_ocr" if ocr.unread else "empty"


if __name__ == "__main__":
    limit(int(sys.argv[3]), int(sys.argv[4]))
    ended = read(Path(sys.argv[1]), sys.argv[2])
    say({"ended": ended, "unread": len(ocr.unread)})
    sys.stdout.flush()
