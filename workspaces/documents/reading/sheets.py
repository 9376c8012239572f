"""Readers of spreadsheets: displayed values, formulas without a value, comments, charts and drawn text."""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from workspaces.documents.reading import attachments
from workspaces.documents.reading.kinds import SHEETS, Block, Blocks, open_zip
from workspaces.documents.reading.office import (
    beside_content,
    chart,
    matching,
    read_by_library,
    related,
    shown,
    texts,
    xml,
)
from workspaces.documents.reading.plain import table

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
            yield from _beside(archive, sheet._worksheet_path.lstrip("/"), number, sheet.title)
        for name in matching(archive, r"xl/chartsheets/[^/]+\.xml"):
            yield from _beside(archive, name, 0, "Chart")
        yield from attachments.in_archive(archive)


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


def _beside(archive: zipfile.ZipFile, part: str, page: int, title: str) -> Blocks:
    """Yield a sheet's headers and footers, comments and drawings."""
    lines = [
        _HEADER_CODES.sub(" ", html.unescape(each.decode(errors="replace"))).strip()
        for each in _HEADERS.findall(archive.read(part))
    ]
    for of, name in related(archive, part).values():
        if name not in archive.namelist():
            continue
        if of in ("comments", "threadedComment"):
            for comment in xml(archive.read(name)).iter("{*}comment", "{*}threadedComment"):
                said = "".join(each.text or "" for each in comment.iter("{*}t", "{*}text"))
                lines.append(f"{comment.get('ref', '')}: {said.strip()}")
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
    if said := " ".join(texts(cell)):
        return said
    given = {name.rpartition("}")[2]: value for name, value in cell.items()}
    return next((given[name] for name in _VALUES if given.get(name)), "")
