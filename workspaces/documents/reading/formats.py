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
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from workspaces.documents.reading.block import Block, Blocks, Unreadable
from workspaces.documents.reading.drawing import PICTURES, read_pdf, read_picture

MOST_UNPACKED = 300_000_000  # bytes of all that an archive says it holds
MOST_PACKED_FILES = 10_000
WEB_PAGE = "text/html; of=web"  # read for what it is about, where a document is read whole
ROWS_AT_ONCE = 20  # of a table in one block, with its head repeated


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
