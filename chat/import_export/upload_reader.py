"""Reading of an upload: a plain file, or the files with known names in a .zip.

Nothing is unpacked to disk, so a path in an archive cannot write outside a folder. Sizes are counted while reading,
because the sizes that an archive declares may be false. Large JSON arrays are read element by element.
"""

import codecs
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import ijson
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from ijson.common import ObjectBuilder

from memoryhub.errors import Invalid, TooLarge
from workspaces.documents.reading.kinds import utf_16
from workspaces.documents.reading.plain import LOOKED_AT, guessed

KNOWN = re.compile(r"(?i)conversations([-_ ]?\(?\d{1,5}\)?)?\.json|memories\.json")
UNPACKED = 4  # limit of the unpacked size, as a multiple of IMPORT_MAX_BYTES
DIRECTORY = 32 * 2**20  # limit in bytes of an archive's list of files, which is read into memory
END, LOCATOR64 = b"PK\x05\x06", b"PK\x06\x07"
NO_ARCHIVE = later("This .zip file cannot be read. Download it again.")


@dataclass
class Part:
    name: str
    file: IO[bytes]
    size: int  # declared size in bytes
    read_count: int = 0  # bytes read so far
    room: int = 0  # limit in bytes; reading more raises TooLarge

    def read(self, size: int = -1) -> bytes:
        return self._counted(self.file.read, size)

    def readline(self, size: int = -1) -> bytes:
        return self._counted(self.file.readline, size)

    def _counted(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            data = read(size)
        except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, OSError):
            raise Invalid(NO_ARCHIVE) from None
        self.read_count += len(data)
        if self.read_count > self.room:
            raise TooLarge(_("This .zip file is too large to import once it is unpacked."))
        return data


def is_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", END)


@contextmanager
def parts_of(path: Path) -> Iterator[Iterator[Part]]:
    """Open an upload and yield an iterator over its files, each open until the next one. Raises Invalid or TooLarge."""
    if is_archive(path):
        _refuse_long_directory(path)
        try:
            archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise Invalid(NO_ARCHIVE) from None
        with archive:
            yield _of_archive(archive)
    else:
        with path.open("rb") as file:
            if file.read(3) != b"\xef\xbb\xbf":
                file.seek(0)
            yield iter([Part(path.name, file, path.stat().st_size, room=path.stat().st_size)])


def unpacked_size(path: Path) -> int:
    """Return the declared size of all files that will be read, for showing progress."""
    if not is_archive(path):
        return path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        return sum(info.file_size for info in _known(archive))


def _of_archive(archive: zipfile.ZipFile) -> Iterator[Part]:
    room = UNPACKED * settings.IMPORT_MAX_BYTES
    for info in _known(archive):
        try:
            file = archive.open(info)
        # Damaged, encrypted, or in an unsupported compression.
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError):
            raise Invalid(NO_ARCHIVE) from None
        with file:
            part = Part(_name(info), _in_utf8(archive, info, file), info.file_size, room=room)
            yield part
            room -= part.read_count


def _in_utf8(archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: IO[bytes]) -> IO[bytes]:
    """Return the file, converted to UTF-8 if its first bytes are UTF-16 or an older code page."""
    try:
        with archive.open(info) as peeked:
            beginning = peeked.read(LOOKED_AT)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError):
        return file  # reading it raises the error
    if beginning.startswith(codecs.BOM_UTF8):
        file.read(len(codecs.BOM_UTF8))
        return file
    code = utf_16(beginning)
    if not code and not is_utf8(beginning):
        code = guessed(beginning) or ""
    return cast("IO[bytes]", codecs.EncodedFile(file, "utf-8", code)) if code else file


def is_utf8(beginning: bytes) -> bool:
    """Return whether the first bytes of a file are UTF-8; the last character may be cut off."""
    try:
        beginning.decode()
    except UnicodeDecodeError as error:
        return error.end >= len(beginning) - 3 and error.reason == "unexpected end of data"
    return True


def _known(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files with known names, in any folder of the archive, by name. Raises Invalid if there are none."""
    files: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        if KNOWN.fullmatch(_name(info)) and not info.filename.startswith("__MACOSX/"):
            files.setdefault(info.filename, info)
    if not files:
        raise Invalid(_("There is no conversations.json or memories.json in this .zip file."))
    return sorted(files.values(), key=lambda info: (_name(info), info.filename))


def _name(info: zipfile.ZipInfo) -> str:
    return PurePosixPath(info.filename.replace("\\", "/")).name


def _refuse_long_directory(path: Path) -> None:
    """Raise Invalid if the list of files has more than DIRECTORY bytes, before zipfile reads it into memory."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 65_557))
        tail = file.read()
    at = tail.rfind(END)
    if at < 0 or len(tail) - at < 22:
        raise Invalid(NO_ARCHIVE)
    length = struct.unpack_from("<L", tail, at + 12)[0]
    if length > DIRECTORY or LOCATOR64 in tail[max(0, at - 20) : at]:
        raise Invalid(_("This .zip file contains too many files. Import the conversations.json in it."))


DEPTH = 100
ITEM = 64 * 2**20  # size limit of one element, which is held in memory: its characters, plus 8 for each value
BUFFER = 65_536


def items(file: Part) -> Iterator[Any]:
    """Yield the elements of a JSON array, or the objects of a file. Raises Invalid, also beyond the limits."""
    builder, size, is_empty = ObjectBuilder(), 0, True
    depth = outside = 0  # open containers, and those around the elements: 1 inside an array
    try:
        for event, value in ijson.basic_parse(file, use_float=True, multiple_values=True, buf_size=BUFFER):
            is_empty = False
            if event in ("start_map", "start_array"):
                depth += 1
                if depth > DEPTH:
                    raise Invalid(_("This file is nested too deeply."))
                if depth == 1:
                    outside = int(event == "start_array")
            elif event in ("end_map", "end_array"):
                depth -= 1
            elif depth == 0 and value is not None:
                raise Invalid(_("This file is not valid JSON."))
            if (depth == 0 and event != "end_map") or (depth == outside and event == "start_array"):
                continue  # the array around the elements, or null beside the objects
            builder.event(event, value)
            size += len(value) if isinstance(value, str) else 8
            if size > ITEM:
                raise Invalid(_("One entry of this file is too large."))
            if depth == outside:
                yield builder.value
                builder, size = ObjectBuilder(), 0
    except ijson.IncompleteJSONError:
        if is_empty:  # a file without content is not an error
            return
        raise Invalid(_("This file is incomplete. Download it again.")) from None
    except (ijson.JSONError, ValueError, OverflowError):
        raise Invalid(_("This file is not valid JSON.")) from None
