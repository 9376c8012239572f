"""Readers of text documents, slides and spreadsheets.

The text comes from a library. The XML parts that the library leaves out are read here. Of spreadsheets, displayed
values, formulas without a value, comments, charts and drawn text are read.
"""

import html
import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import unquote

from workspaces.documents.reading import pictures
from workspaces.documents.reading.kinds import (
    ODT,
    RTF,
    SHEETS,
    WORD,
    Block,
    Blocks,
    Unreadable,
    left_out,
    open_zip,
)
from workspaces.documents.reading.plain import enter, path, read_html, table

_PARAGRAPHS = ("wordprocessingml", "drawingml", "opendocument:xmlns:text")
# Elements to skip: deleted or moved text, fallback drawings for old programs, and metadata of changes.
_UNSEEN = {"del", "moveFrom", "Fallback", "tracked-changes", "rPr", "note-citation", "sdtPr"}
_SAID_IN = {
    "cNvPr": "title",
    "docPr": "title",
    "textpath": "string",
    "text": "{urn:oasis:names:tc:opendocument:xmlns:form:1.0}current-value",
}  # titles of pictures, and text drawn as shapes
_HOLDS_PARAGRAPHS = {"drawing", "pict", "object", "frame", "custom-shape", "annotation", "note"}
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "line-break": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_WORD_PARTS = (
    ("Comments", r"word/comments\.xml"),
    ("Footnotes", r"word/(foot|end)notes\.xml"),
    ("Header", r"word/header\d*\.xml"),
    ("Footer", r"word/footer\d*\.xml"),
    ("Chart", r"word/charts/chart(Ex)?\d*\.xml"),
    ("Diagram", r"word/diagrams/data\d*\.xml"),
)
_RTF_DELETED = re.compile(rb"\{(?:\\[a-z]+-?\d*\s?)*\\deleted\b[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_RTF_PROPERTY = re.compile(rb"\{\\sp\s*\{\\sn[^{}]*\}\s*\{\\sv[^{}]*\}\s*\}")  # of a shape: size, colour
_RTF_PICTURE = re.compile(rb"\\(?:jpeg|png)blip(?:[^{}]|\{[^{}]*\})*?[\s}]((?:[0-9a-fA-F]{2}\s*){40,}+)\}")
_OF_SLIDES = ("chart", "chartEx", "diagramData", "notesSlide", "comments")


def extracted(data: bytes, kind: str) -> Any:
    """Return what the library Kreuzberg reads in a file. Raises Unreadable if it is encrypted or broken."""
    from kreuzberg import ConcurrencyConfig, ExtractionConfig, KreuzbergError, extract_bytes_sync

    config = ExtractionConfig(
        use_cache=False,
        include_document_structure=True,
        concurrency=ConcurrencyConfig(max_threads=1),
    )
    try:
        return extract_bytes_sync(data, kind, config=config)
    except KreuzbergError as error:
        raise Unreadable("encrypted" if re.search("(?i)password|encrypt", str(error)) else "broken") from None


def read_by_library(data: bytes, kind: str) -> Blocks:
    """Yield the library's text by headings, with tables a few rows at a time. Raises Unreadable as ``extracted``."""
    result = extracted(data, kind)
    document: Any = result.document or {}
    nodes = document.get("nodes") or []
    if not nodes:
        yield Block(result.content)
        return
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    for node in nodes:
        content = node["content"]
        text = re.sub(r"\[\^\d+\]", "", content.get("text") or "")
        if content["node_type"] == "table":
            yield Block("\n\n".join(lines), 0, path(headings))
            lines = []
            rows: dict[int, list[str]] = {}
            for each in content["grid"]["cells"]:
                rows.setdefault(each["row"], []).append(each["content"])
            yield from table(rows.values(), 0, path(headings))
        elif content["node_type"] in ("heading", "title"):
            yield Block("\n\n".join(lines), 0, path(headings))
            enter(headings, content.get("level") or 1, text)
            lines = [text]
        elif text.strip():
            lines.append(text)
    yield Block("\n\n".join(lines), 0, path(headings))


def read_rtf(data: bytes) -> Blocks:
    """Read RTF with the library, including text boxes, notes and pictures, but not deleted text.

    WMF pictures are only counted.
    """
    data = _RTF_DELETED.sub(b"", data)
    data = _RTF_PROPERTY.sub(b"", data)
    data = re.sub(rb"\{\\\*\\(shpinst|annotation)\b", rb"{\\par\\\1", data)
    yield from read_by_library(data, RTF)
    drawn = [bytes.fromhex(each[1].decode()) for each in _RTF_PICTURE.finditer(data)]
    yield from pictures.pictures({f"picture {number}": each for number, each in enumerate(drawn, 1)})
    if (undrawn := data.count(b"{\\pict") - data.count(b"{\\nonshppict") - len(drawn)) > 0:
        left_out["pictures"] += undrawn


def read_docx(data: bytes) -> Blocks:
    with open_zip(data) as archive:
        whole = related(archive, "").values()
        main = next((name for of, name in whole if of == "officeDocument"), "word/document.xml")
        body = xml(archive.read(main))
        blocks, known = _completed(read_by_library(data, WORD), texts(body))
        yield from blocks
        for heading, pattern in _WORD_PARTS:
            lines: dict[str, None] = {}
            for name in matching(archive, pattern):
                tree = xml(archive.read(name))
                lines |= dict.fromkeys(chart(tree) if heading == "Chart" else texts([tree]))
            missing = [line for line in lines if _plain(line) not in known]
            yield Block("\n\n".join(missing), 0, heading)
        for of, name in related(archive, main).values():
            # An embedded file whose content replaces paragraphs.
            if of == "aFChunk" and name in archive.namelist():
                yield from pictures.read(name, archive.read(name))
        yield from pictures.in_archive(archive)


def read_odt(data: bytes) -> Blocks:
    with open_zip(data) as archive:
        body = xml(archive.read("content.xml"))
        blocks, known = _completed(read_by_library(data, ODT), texts(body))
        yield from blocks
        yield from beside_content(archive, known)


def beside_content(archive: zipfile.ZipFile, known: str = "") -> Blocks:
    """Yield an OpenDocument file's headers and footers, charts and formulas, pictures and embedded files.

    Lines in ``known``, the text read before, are left out.
    """
    for name in matching(archive, r"styles\.xml|(?:.*/)?Object \d+/content\.xml"):
        tree = xml(archive.read(name))
        lines = dict.fromkeys(texts(tree)) or dict.fromkeys(["".join(tree.itertext())])
        missing = [line for line in lines if _plain(line) not in known]
        yield Block("\n\n".join(missing), 0, "Header, footer" if name == "styles.xml" else "Chart")
    yield from pictures.in_archive(archive)


def _completed(blocks: Blocks, lines: Iterator[str]) -> tuple[list[Block], str]:
    """Complete the blocks that the library read with those of ``lines`` that they lack.

    Returns the blocks, and the library's text as one string. If the library read a line without its spaces, the line
    replaces it. A missing line becomes a block of its own, after the block that contains the line before it.
    """
    try:
        whole = list(blocks)
    except Unreadable as error:
        # If the library refuses the file, its paragraphs are still readable.
        whole = [Block("\n\n".join(lines))]
        if str(error) != "broken" or not whole[0].text:
            raise
    split = [block.text.split("\n\n") for block in whole]
    plain = [_plain(block.text) for block in whole]
    glued = {"".join(part.split()): (at, n) for at, parts in enumerate(split) for n, part in enumerate(parts)}
    missing: list[list[str]] = [[] for _ in whole]
    everywhere = " ".join(plain)
    at = 0
    for line in lines:
        wanted = _plain(line)
        here = next((n for n in range(at, min(at + 3, len(plain))) if wanted in plain[n]), None)
        if here is not None:
            at = here
        elif place := glued.get("".join(line.split())):
            split[place[0]][place[1]] = line
        elif wanted not in everywhere:
            missing[at].append(line)
    complete_blocks = [
        block._replace(text="\n\n".join(part))
        for block, parts, more in zip(whole, split, missing, strict=True)
        for part in ((parts, more) if more else (parts,))
    ]
    return complete_blocks, everywhere


def _plain(text: str) -> str:
    return " ".join(text.split())


def read_pptx(data: bytes) -> Blocks:
    """Read slides one by one, each with its charts, diagrams, notes and comments.

    The library reads these too, but does not say to which slide they belong.
    """
    with open_zip(data) as archive:
        slides = related(archive, "ppt/presentation.xml")
        order = xml(archive.read("ppt/presentation.xml")).iter("{*}sldId")
        keys = [next(value for name, value in each.items() if name.endswith("}id")) for each in order]
        drawn_on: set[str] = set()
        layout: dict[str, None] = {}  # the layouts' own text, without placeholders
        for number, key in enumerate(keys, 1):
            name = slides[key][1]
            tree = xml(archive.read(name))
            titles = [
                " ".join(texts(each))
                for each in tree.iter("{*}sp")
                if any(mark.get("type") in ("title", "ctrTitle") for mark in each.iter("{*}ph"))
            ]
            title = titles[0] if titles else ""
            lines = list(texts(tree))
            for of, target in related(archive, name).values():
                if of in _OF_SLIDES and target in archive.namelist():
                    part = xml(archive.read(target))
                    lines += chart(part) if of.startswith("chart") else texts([part])
            yield Block("\n\n".join(lines), number, title)
            drawn_on |= {target for of, target in related(archive, name).values() if of == "slideLayout"}
        for name in sorted(drawn_on):
            masters = [target for of, target in related(archive, name).values() if of == "slideMaster"]
            for part in [name, *masters]:
                shapes = xml(archive.read(part)).iter("{*}sp")
                own = [each for each in shapes if next(each.iter("{*}ph"), None) is None]
                layout |= dict.fromkeys(texts(own))
        yield Block("\n\n".join(layout), 0, "On every slide")
        yield from pictures.in_archive(archive)


def read_odp(data: bytes) -> Blocks:
    with open_zip(data) as archive:
        for number, page in enumerate(xml(archive.read("content.xml")).iter("{*}page"), 1):
            lines = list(texts(page))
            yield Block("\n\n".join(lines), number, lines[0] if lines else "")
        yield from beside_content(archive)


def read_epub(data: bytes) -> Blocks:
    with open_zip(data) as archive:
        container = xml(archive.read("META-INF/container.xml"))
        package = next((each.get("full-path", "") for each in container.iter("{*}rootfile")), "")
        folder = package.rpartition("/")[0]
        opf = xml(archive.read(package))
        files = {each.get("id"): each.get("href", "") for each in opf.iter("{*}item")}
        for number, each in enumerate(opf.iter("{*}itemref"), 1):
            full = posixpath.normpath(posixpath.join(folder, unquote(files.get(each.get("idref"), ""))))
            if full in archive.namelist():
                for block in read_html(archive.read(full)):
                    yield block._replace(page=number)


def xml(data: bytes) -> Any:
    from lxml import etree

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def matching(archive: zipfile.ZipFile, pattern: str) -> list[str]:
    return sorted(name for name in archive.namelist() if re.fullmatch(pattern, name))


def related(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """Return the parts of the archive that ``part`` refers to, as {id: (relationship type, part name)}."""
    folder, _, name = part.rpartition("/")
    rels = f"{folder}/_rels/{name}.rels".lstrip("/")
    if rels not in archive.namelist():
        return {}
    return {
        each.get("Id", ""): (
            each.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/" + folder, each.get("Target", ""))).lstrip("/"),
        )
        for each in xml(archive.read(rels)).iter("{*}Relationship")
        if each.get("TargetMode") != "External"
    }


def texts(tree: Any) -> Iterator[str]:
    """Yield the paragraphs, table rows and picture descriptions of these elements, without deleted text."""
    for element in tree:
        if not isinstance(element.tag, str):
            continue
        space, _, name = element.tag[1:].rpartition("}")
        if name in _UNSEEN or (name == "tr" and element.find("{*}trPr/{*}del") is not None):
            continue
        if alt := element.get("descr") or (name == "desc" and element.text):
            yield alt
        if name in _SAID_IN and (attribute := element.get(_SAID_IN[name])):
            yield attribute
        if name == "tr" and "drawingml" in space:
            yield " | ".join(" ".join(texts(cell)) for cell in element)
        elif name == "comment" and "wordprocessingml" in space:
            author = next((value for key, value in element.items() if key.endswith("}author")), "")
            yield f"{author}: {' '.join(texts(element))}"
        elif name in ("p", "h") and any(part in space for part in _PARAGRAPHS):
            held: list[Any] = []
            line = "".join(_line(element, held, mixed="opendocument" in space))
            if line.strip():
                yield line.strip()
            yield from texts(held)
        elif name == "oMath":
            yield "".join(_line(element, [], mixed=False))
        elif name == "text" and space.endswith("presentationml/2006/main"):
            yield element.text or ""  # of a comment on a slide
        else:
            yield from texts(element)


def _line(element: Any, held: list[Any], *, mixed: bool) -> Iterator[str]:
    """Yield the pieces of a paragraph's own text. Child elements that contain paragraphs are added to ``held`` instead.

    The caller reads those afterwards. ``mixed``: text is directly in the elements, as in OpenDocument.
    """
    if mixed:
        yield element.text or ""
    for child in element:
        name = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else "del"
        if name in _HOLDS_PARAGRAPHS or name in ("AlternateContent", "p", "h"):
            held.append(child)
        elif name == "s" and mixed:
            yield " "
        elif name == "ddList":  # a legacy form field: the selected entry
            entries = [each for tag in child.iterfind("{*}listEntry") for each in tag.attrib.values()]
            chosen = next((each for tag in child.iterfind("{*}result") for each in tag.attrib.values()), "0")
            yield next(iter(entries[int(chosen) :]), "") if chosen.isdigit() else ""
        elif name in _SIGNS:
            yield _SIGNS[name]
        elif name == "t":
            yield child.text or ""
        elif name not in _UNSEEN:
            yield from _line(child, held, mixed=mixed)
        if mixed:
            yield child.tail or ""


def chart(tree: Any) -> Iterator[str]:
    """Yield a chart's titles, and each series of values with its labels."""
    yield from texts([tree])
    for series in tree.iter("{*}ser"):
        name = " ".join(each.text or "" for each in series.iterfind("{*}tx//{*}v"))
        what = _points(series, "cat", "xVal")
        pairs = [
            f"{what.get(at, '')} {value}".strip() for at, value in _points(series, "val", "yVal").items()
        ]
        yield f"{name}: {', '.join(pairs or what.values())}"
    for series in tree.iter("{*}data"):  # of charts of 2016 and later
        what, values = (
            {each.get("idx"): each.text for each in series.iterfind(f"{{*}}{dimension}//{{*}}pt")}
            for dimension in ("strDim", "numDim")
        )
        yield ", ".join(f"{what.get(at) or ''} {values.get(at) or ''}".strip() for at in what | values)


def _points(series: Any, *names: str) -> dict[str, str]:
    points: dict[str, str] = {}
    for name in names:
        for cache in series.iterfind(f"{{*}}{name}//{{*}}pt/.."):
            code = next((each.text or "" for each in cache.iterfind("{*}formatCode")), "")
            for point in cache.iterfind("{*}pt"):
                value = point.findtext("{*}v") or ""
                value = shown(value, code) if cache.tag.endswith("numCache") else value
                at = point.get("idx", "")
                # Of several label levels, the lowest comes first.
                points[at] = f"{value} {points.get(at, '')}".strip()
    return points


# Formatting of a spreadsheet's value by the number format of its cell.

_DATE_PARTS = re.compile(r'"([^"]*)"|\\(.)|\[[^\]]*\]|(y+|m+|d+|h+|s+(?:\.0+)?|am/pm|a/p)|(.)', re.IGNORECASE)
_LITERALS = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|_.|\*.')
_EPOCH = datetime(1899, 12, 30)  # of spreadsheets


def shown(value: Any, code: str) -> str:
    """Format a value by the number format ``code``. With an unknown format, return it unformatted."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        try:
            value = float(value) if code not in ("", "General", "@") else value
        except ValueError:
            return value
        if isinstance(value, str):
            return value
    sections = re.findall(r'(?:"[^"]*"|\\.|[^;"])+', code) or [""]
    if isinstance(value, (int, float)) and len(sections) > 1 and (value < 0 or (value == 0 and sections[2:])):
        return _number(abs(value), sections[1 if value < 0 else 2])
    code = sections[0]
    if isinstance(value, (int, float)) and re.search(r"(?i)y|d|h:", re.sub(_LITERALS, "", code)):
        value = _EPOCH + timedelta(days=value)
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if "s" in code.lower() else "")
    if isinstance(value, (datetime, date, time)):
        return _moment(value, code)
    return _number(value, code)


def _moment(value: datetime | date | time, code: str) -> str:
    # Formats that depend on the reader's country are shown as ISO 8601.
    if code in ("General", "", "mm-dd-yy", "@") or code.startswith("[$-F"):
        if isinstance(value, datetime) and value.time() == time():
            value = value.date()
        return value.isoformat().replace("T", " ")
    out, hour_before, half_days = "", False, "am/pm" in code.lower()
    moment = value if isinstance(value, datetime) else None
    day = value if isinstance(value, date) else date(1900, 1, 1)
    clock = moment.time() if moment else value if isinstance(value, time) else time()
    parts = list(_DATE_PARTS.finditer(code))
    for at, part in enumerate(parts):
        sign = (part[3] or "").lower()
        after = next((later[3].lower() for later in parts[at + 1 :] if later[3]), "")
        if sign.startswith("m") and (hour_before or after.startswith("s")):
            out += f"{clock.minute:0{min(len(sign), 2)}}"
        elif sign.startswith("m"):
            out += {1: str(day.month), 2: f"{day.month:02}", 3: f"{day:%b}"}.get(len(sign), f"{day:%B}")
        elif sign.startswith("y"):
            out += f"{day.year % 100:02}" if len(sign) < 3 else str(day.year)
        elif sign.startswith("d"):
            out += {1: str(day.day), 2: f"{day.day:02}", 3: f"{day:%a}"}.get(len(sign), f"{day:%A}")
        elif sign.startswith("h"):
            out += f"{(clock.hour % 12 or 12) if half_days else clock.hour:0{min(len(sign), 2)}}"
        elif sign.startswith("s"):
            out += f"{clock.second:0{min(len(sign.split('.')[0]), 2)}}"
        elif sign.startswith("a"):
            out += "PM" if clock.hour >= 12 else "AM"
        else:
            out += part[1] or part[2] or part[4] or ""
        hour_before = sign.startswith("h") if sign else hour_before
    return out.strip()


def _number(value: float, code: str) -> str:
    literals: list[str] = []

    def mark(match: re.Match[str]) -> str:
        literals.append(match[1] or match[2] or match[3] or "")
        return "\0"

    marked = _LITERALS.sub(mark, code)
    digits = re.search(r"[#0?][#0?,]*(\.[#0?]*)?(,*)", marked)
    if digits is None and not re.search("(?i)general", marked) and (code.strip() and "@" not in code):
        return "".join(literals)
    if (
        digits is None
        or re.search("[#0?]", marked[digits.end() :])
        or re.search(r"(?i)e[+-]|general|/|@", marked)
    ):
        return f"{value:.15g}"
    whole, _, decimals = digits[0].removesuffix(digits[2]).partition(".")
    scale = 100 ** marked.count("%") / 1000 ** (len(digits[2]) + len(whole) - len(whole.rstrip(",")))
    text = f"{abs(value) * scale:{',' if ',' in whole.rstrip(',') else ''}.{len(decimals)}f}"
    for _ in range(len(decimals) - len(decimals.rstrip("#"))):  # "#" shows no trailing zero
        text = text[:-1] if text.endswith("0") else text
    text = text.rstrip(".").zfill(whole.count("0"))
    around = marked[: digits.start()] + ("-" if value < 0 else "") + text + marked[digits.end() :]
    for literal in literals:
        around = around.replace("\0", literal, 1)
    return around.strip()


_HEADERS = re.compile(rb"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)>([^<]*)<")
_HEADER_CODES = re.compile(r'&("[^"]*"|K[0-9A-F]{6}|K\d\d[+-]\d{3}|\d+|[A-Z])')
_VALUES = ("string-value", "date-value", "time-value", "boolean-value", "value", "formula")


def read_xlsx(data: bytes) -> Blocks:
    from openpyxl import load_workbook

    with open_zip(data) as archive:
        values = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        formulas: Any = None
        if any(b"<f" in archive.read(name) for name in matching(archive, r"xl/worksheets/[^/]+\.xml")):
            formulas = load_workbook(io.BytesIO(data), read_only=True)
        if not values.worksheets:  # openpyxl does not support the namespaces of strict files
            yield from read_by_library(data, SHEETS)
        for number, sheet in enumerate(values.worksheets, 1):
            sheet.reset_dimensions()  # programs write wrong dimensions, which would hide rows
            written: Iterator[Any] = iter(())
            if formulas:
                formulas.worksheets[number - 1].reset_dimensions()
                written = formulas.worksheets[number - 1].iter_rows()
            yield from table(_rows(sheet.iter_rows(), written), number, sheet.title)
            yield from _sheet_extras(archive, sheet._worksheet_path.lstrip("/"), number, sheet.title)
        for name in matching(archive, r"xl/chartsheets/[^/]+\.xml"):
            yield from _sheet_extras(archive, name, 0, "Chart")
        yield from pictures.in_archive(archive)


def _rows(values: Iterator[Any], written: Iterator[Any]) -> Iterator[list[str]]:
    for row in values:
        formulas = next(written, ())
        yield [
            shown(cell.value, cell.number_format)
            if cell.value is not None
            else _formula(formulas[at].value)
            if at < len(formulas)
            else ""
            for at, cell in enumerate(row)
        ]


def _formula(value: Any) -> str:
    """Return a formula as text. openpyxl returns an array formula as an object with a ``text``."""
    return str(getattr(value, "text", None) or value or "")


def _sheet_extras(archive: zipfile.ZipFile, part: str, page: int, title: str) -> Blocks:
    """Yield one block with the texts of a sheet's headers, footers, comments, shapes and charts. It may be empty.

    ``part``: the sheet's path in the archive. ``page`` and ``title``: the sheet's number and name, for the block.
    """
    lines = [
        _HEADER_CODES.sub(" ", html.unescape(each.decode(errors="replace"))).strip()
        for each in _HEADERS.findall(archive.read(part))
    ]
    for of, name in related(archive, part).values():
        if name not in archive.namelist():
            continue
        if of in ("comments", "threadedComment"):
            for comment in xml(archive.read(name)).iter("{*}comment", "{*}threadedComment"):
                text = "".join(each.text or "" for each in comment.iter("{*}t", "{*}text"))
                lines.append(f"{comment.get('ref', '')}: {text.strip()}")
        elif of == "drawing":
            lines += texts(xml(archive.read(name)))
            for kind, drawn in related(archive, name).values():
                if kind in ("chart", "chartEx") and drawn in archive.namelist():
                    lines += chart(xml(archive.read(drawn)))
    yield Block("\n".join(lines), page, title)


def read_ods(data: bytes) -> Blocks:
    with open_zip(data) as archive:
        for number, sheet in enumerate(xml(archive.read("content.xml")).iter("{*}table"), 1):
            title = next((value for name, value in sheet.items() if name.endswith("}name")), "")
            yield from table(
                ([_cell(cell) for cell in row] for row in sheet.iter("{*}table-row")), number, title
            )
            yield Block("\n".join(texts(sheet.iterfind("{*}shapes"))), number, title)
        yield from beside_content(archive)


def _cell(cell: Any) -> str:
    if text := " ".join(texts(cell)):
        return text
    attributes = {name.rpartition("}")[2]: value for name, value in cell.items()}
    return next((attributes[name] for name in _VALUES if attributes.get(name)), "")
