"""Spreadsheets: cells as they are shown, formulas that have no value, comments, charts and texts beside the cells."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from workspaces.documents.reading import attached
from workspaces.documents.reading.block import Block, Blocks
from workspaces.documents.reading.kinds import open_zip
from workspaces.documents.reading.office import chart, matching, related, texts, xml
from workspaces.documents.reading.plain import table
from workspaces.documents.reading.shown import shown


def read_xlsx(data: bytes) -> Blocks:
    from openpyxl import load_workbook

    with open_zip(data) as archive:
        values = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        formulas: Any = None
        if any(b"<f" in archive.read(name) for name in matching(archive, r"xl/worksheets/[^/]+\.xml")):
            formulas = load_workbook(io.BytesIO(data), read_only=True)
        for number, sheet in enumerate(values.worksheets, 1):
            written = formulas.worksheets[number - 1].iter_rows() if formulas else iter(())
            yield from table(_rows(sheet.iter_rows(), written), number, sheet.title)
            yield from _beside(archive, sheet._worksheet_path.lstrip("/"), number, sheet.title)
        yield from attached.in_archive(archive)


def _rows(values: Iterator[Any], written: Iterator[Any]) -> Iterator[list[str]]:
    for row in values:
        formulas = next(written, ())
        yield [
            shown(cell.value, cell.number_format)
            if cell.value is not None
            else str(formulas[at].value or "")
            if at < len(formulas)
            else ""
            for at, cell in enumerate(row)
        ]


def _beside(archive: zipfile.ZipFile, part: str, page: int, title: str) -> Blocks:
    """Comments on a sheet's cells, and what is drawn on it."""
    lines: list[str] = []
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
                if kind == "chart" and drawn in archive.namelist():
                    lines += chart(xml(archive.read(drawn)))
    yield Block("\n".join(lines), page, title)


def read_ods(data: bytes) -> Blocks:
    with open_zip(data) as archive:
        for number, sheet in enumerate(xml(archive.read("content.xml")).iter("{*}table"), 1):
            title = next((value for name, value in sheet.items() if name.endswith("}name")), "")
            yield from table(
                ([_cell(cell) for cell in row] for row in sheet.iter("{*}table-row")), number, title
            )


def _cell(cell: Any) -> str:
    said = " ".join(texts(cell))
    formula = next((value for name, value in cell.items() if name.endswith("}formula")), "")
    return said or formula
