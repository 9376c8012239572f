"""The text of files, by blocks: what stands under one heading and on one page. Libraries do the reading.

Runs in a process of its own (``reader``), on files that nobody vouches for; knows no Django.
"""

from __future__ import annotations

import csv
import email
import email.policy
import io
import json
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from workspaces.documents.reading import ocr

MOST_UNPACKED = 300_000_000  # bytes of all that an archive says it holds
MOST_PACKED_FILES = 10_000
MOST_PAGES = 5_000
MOST_PIXELS = 64_000_000  # of a picture, and of a page that is drawn for OCR
LONGEST_SHOWN = 1280  # pixels a side of a picture as models and pages show it
FACE, FACE_SIDE = "image/*; of=person", 256  # a picture of which no more than a small square is wanted
DOTS = 200  # an inch, of such a page
PICTURES = ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP")  # no other decoder of the library is ever tried
WEB_PAGE = "text/html; of=web"  # read for what it is about, where a document is read whole
ROWS_AT_ONCE = 20  # of a table in one block, with its head repeated


class Block(NamedTuple):
    text: str
    page: int = 0
    heading: str = ""


class Unreadable(Exception):
    """With the code of why: ``reader.SENTENCES`` says it."""


Blocks = Iterator[Block]


def read_pdf(path: Path) -> Blocks:
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise Unreadable("encrypted" if "assword" in str(error) else "broken") from None
    if len(pdf) > MOST_PAGES:
        raise Unreadable("too_long")
    for number in range(len(pdf)):
        page = pdf[number]
        text_page = page.get_textpage()
        text = text_page.get_text_bounded().replace("\r\n", "\n").replace("\ufffe", "")
        text_page.close()
        if not text.strip() and _has_picture(page):
            text = _drawn_text(page, number + 1)
        page.close()
        yield Block(text, number + 1)


def _has_picture(page: Any) -> bool:
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    return next(page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE], max_depth=3), None) is not None


def _drawn_text(page: Any, number: int) -> str:
    """Of a scanned page."""
    if not ocr.is_there():
        ocr.unread.append(number)
        return ""
    width, height = page.get_size()
    scale = min(DOTS / 72, (MOST_PIXELS / max(1.0, width * height)) ** 0.5)
    return ocr.text_of(page.render(scale=scale, grayscale=True).to_pil())


def read_picture(path: Path) -> Blocks:
    """The text in it; of a TIFF, by its pages. Whole it must be even where there is no OCR: models are shown it."""
    from PIL import ImageOps, ImageSequence

    opened = _open_picture(path)
    pages = ImageSequence.Iterator if opened.format == "TIFF" else lambda only: iter([only])
    pixels = 0
    for frame in pages(opened):  # their headers alone
        pixels += frame.width * frame.height
        if frame.width * frame.height > MOST_PIXELS or pixels > MOST_PAGES * 1_000_000:
            raise Unreadable("too_large_unpacked")
    for number, frame in enumerate(pages(opened), 1):
        frame.load()
        if ocr.is_there():
            yield Block(ocr.text_of(ImageOps.exif_transpose(frame)), number)
        else:
            ocr.unread.append(number)


def _open_picture(path: Path) -> Any:
    """With its header read alone."""
    from PIL import Image

    try:
        opened = Image.open(path, formats=PICTURES)
    except Image.DecompressionBombError:
        raise Unreadable("too_large_unpacked") from None
    if opened.width * opened.height > MOST_PIXELS:
        raise Unreadable("too_large_unpacked")
    return opened


def draw_picture(path: Path, *, square: int = 0) -> tuple[bytes, int, int]:
    """The first picture in the file, upright, as a JPEG with its width and height, at most LONGEST_SHOWN a side; or the
    middle of it, ``square`` pixels a side.

    Drawn anew: of the file's own bytes, of where it was taken and of whatever else lies in it nothing is left.
    """
    from PIL import Image, ImageOps

    longest = square or LONGEST_SHOWN
    with _open_picture(path) as opened:
        opened.draft("RGB", (2 * longest, 2 * longest))  # a JPEG is decoded no larger than is needed
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


def read_docx(path: Path) -> Blocks:
    from docx import Document
    from docx.table import Table

    _look_into_zip(path)
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    for part in Document(str(path)).iter_inner_content():
        if isinstance(part, Table):
            rows = [[cell.text for cell in row.cells] for row in part.rows]
            yield Block("\n\n".join(lines), 0, _path(headings))
            lines = []
            yield from _table(rows, 0, _path(headings))
            continue
        level = re.fullmatch(r"Heading ([1-9])", (part.style.name or "") if part.style else "")
        if level and part.text.strip():
            yield Block("\n\n".join(lines), 0, _path(headings))
            _enter(headings, int(level[1]), part.text)
            lines = [part.text]
        else:
            lines.append(part.text)
    yield Block("\n\n".join(lines), 0, _path(headings))


def read_pptx(path: Path) -> Blocks:
    from pptx import Presentation

    _look_into_zip(path)
    for number, slide in enumerate(Presentation(str(path)).slides, 1):
        title = slide.shapes.title.text_frame.text if slide.shapes.title is not None else ""
        texts: list[str] = []
        for shape in slide.shapes:
            if shape.has_text_frame:
                texts.append(shape.text_frame.text)
            elif getattr(shape, "has_table", False):
                table: Any = shape
                texts += [" | ".join(cell.text for cell in row.cells) for row in table.table.rows]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            texts.append(slide.notes_slide.notes_text_frame.text)
        yield Block("\n\n".join(filter(None, texts)), number, title)


def read_xlsx(path: Path) -> Blocks:
    from openpyxl import load_workbook

    _look_into_zip(path)
    book = load_workbook(path.open("rb"), read_only=True, data_only=True)
    for number, sheet in enumerate(book.worksheets, 1):
        rows = (
            [str(cell) if cell is not None else "" for cell in row]
            for row in sheet.iter_rows(values_only=True)
        )
        yield from _table((row for row in rows if any(row)), number, sheet.title)


def read_odt(path: Path) -> Blocks:
    with _look_into_zip(path) as archive:
        tree = _xml(archive.read("content.xml"))
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    for element in tree.iter("{*}h", "{*}p"):
        text = "".join(element.itertext()).strip()
        if element.tag.endswith("}h"):
            yield Block("\n\n".join(lines), 0, _path(headings))
            level = next((value for name, value in element.items() if name.endswith("outline-level")), "1")
            _enter(headings, int(level) if level.isdecimal() else 1, text)
            lines = [text]
        elif text:
            lines.append(text)
    yield Block("\n\n".join(lines), 0, _path(headings))


def read_epub(path: Path) -> Blocks:
    with _look_into_zip(path) as archive:
        container = _xml(archive.read("META-INF/container.xml"))
        package = next((each.get("full-path", "") for each in container.iter("{*}rootfile")), "")
        folder = package.rpartition("/")[0]
        opf = _xml(archive.read(package))
        files = {each.get("id"): each.get("href", "") for each in opf.iter("{*}item")}
        for number, each in enumerate(opf.iter("{*}itemref"), 1):
            full = posixpath.normpath(posixpath.join(folder, unquote(files.get(each.get("idref"), ""))))
            if full in archive.namelist():
                for block in _html(archive.read(full)):
                    yield block._replace(page=number)


def read_html(path: Path) -> Blocks:
    yield from _html(path.read_bytes())


def read_web_page(path: Path) -> Blocks:
    """What a page of the web says, without its menus, notices and comments; whole where nothing stands out."""
    from trafilatura import extract

    data = path.read_bytes()
    text = extract(data, output_format="txt", include_comments=False)
    yield from [Block(text)] if text else _html(data)


def read_markdown(path: Path) -> Blocks:
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    in_code = False
    for line in _text(path).splitlines():
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        match = None if in_code else re.match(r"(#{1,6})\s+(.+?)\s*#*$", line)
        if match:
            yield Block("\n".join(lines), 0, _path(headings))
            _enter(headings, len(match[1]), match[2])
            lines = []
        lines.append(line)
    yield Block("\n".join(lines), 0, _path(headings))


def read_csv(path: Path) -> Blocks:
    text = _text(path)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:4096], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    yield from _table(csv.reader(io.StringIO(text), dialect), 0, "")


def read_json(path: Path) -> Blocks:
    text = _text(path)
    try:
        yield Block(json.dumps(json.loads(text), ensure_ascii=False, indent=1))
    except (ValueError, RecursionError):
        yield Block(text)  # several of them, a line each, or none at all: still text


def read_mail(path: Path) -> Blocks:
    mail: Any = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    subject = str(mail.get("subject", ""))
    head = "\n".join(f"{name}: {mail[name]}" for name in ("From", "To", "Date", "Subject") if mail[name])
    yield Block(head, 0, subject)
    body = mail.get_body(("plain", "html"))
    if body is not None:
        text = body.get_content()
        if body.get_content_type() == "text/html":
            yield from (block._replace(heading=subject) for block in _html(text.encode()))
        else:
            yield Block(text, 0, subject)


def read_text(path: Path) -> Blocks:
    yield Block(_text(path))


READERS: dict[str, Callable[[Path], Blocks]] = {
    "application/pdf": read_pdf,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": read_docx,
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": read_pptx,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": read_xlsx,
    "application/vnd.oasis.opendocument.text": read_odt,
    "application/epub+zip": read_epub,
    "text/html": read_html,
    WEB_PAGE: read_web_page,
    "text/markdown": read_markdown,
    "text/csv": read_csv,
    "application/json": read_json,
    "message/rfc822": read_mail,
    "text/plain": read_text,
    **{f"image/{name.lower()}": read_picture for name in PICTURES},
}


def _text(path: Path) -> str:
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _look_into_zip(path: Path) -> zipfile.ZipFile:
    """The archive; a reader of it is never given more than it says it holds."""
    archive = zipfile.ZipFile(path)
    files = archive.infolist()
    if len(files) > MOST_PACKED_FILES or sum(each.file_size for each in files) > MOST_UNPACKED:
        raise Unreadable("too_large_unpacked")
    if any(each.flag_bits & 1 for each in files):
        raise Unreadable("encrypted")
    return archive


def _xml(data: bytes) -> Any:
    from lxml import etree

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def _html(data: bytes) -> Blocks:
    """By its headings, without what no reader sees."""
    from lxml import etree

    try:
        data.decode()
        encoding = "utf-8"
    except UnicodeDecodeError:
        encoding = None  # as the file says
    parser = etree.HTMLParser(no_network=True, remove_comments=True, encoding=encoding)
    tree = etree.fromstring(data, parser)  # bytes: a text with an XML declaration would be refused
    if tree is None:
        return
    headings: list[tuple[int, str]] = []
    lines: list[str] = [""]
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if tag in _UNSEEN:
            if event == "start":
                element.text = None
                for child in list(element):
                    element.remove(child)
            said = ""
        else:
            said = (element.text if event == "start" else "") or ""
        if event == "start" and re.fullmatch("h[1-6]", tag):
            yield Block("\n".join(lines), 0, _path(headings))
            _enter(headings, int(tag[1]), " ".join("".join(element.itertext()).split()))
            lines = [""]
        if tag in _LINES and lines[-1]:
            lines += ["", ""] if tag == "p" else [""]
        if event == "end":
            said = element.tail or ""
        lines[-1] += re.sub(r"\s+", " ", said)
        if tag in ("td", "th") and event == "end":
            lines[-1] += " | "
    yield Block("\n".join(lines), 0, _path(headings))


_UNSEEN = {"script", "style", "template", "noscript", "svg", "head"}
_LINES = {"p", "div", "li", "tr", "br", "table", "ul", "ol", "pre", "section", "article", "blockquote", "dt", "dd",
          "h1", "h2", "h3", "h4", "h5", "h6", "header", "footer", "nav", "main"}  # fmt: skip


def _table(rows: Any, page: int, heading: str) -> Blocks:
    """Some rows at a time, each with the first row before it: what a number means stands there."""
    head, waiting = "", []
    for row in rows:
        line = " | ".join(" ".join(str(cell).split()) for cell in row)
        if not head:
            head = line
        waiting.append(line)
        if len(waiting) == ROWS_AT_ONCE:
            yield Block("\n".join(waiting), page, " — ".join(filter(None, (heading, head)))[:300])
            waiting = []
    if waiting:
        yield Block("\n".join(waiting), page, " — ".join(filter(None, (heading, head)))[:300])


def _enter(headings: list[tuple[int, str]], level: int, text: str) -> None:
    while headings and headings[-1][0] >= level:
        headings.pop()
    headings.append((level, " ".join(text.split())))


def _path(headings: list[tuple[int, str]]) -> str:
    return " > ".join(text for _, text in headings)[-300:]
