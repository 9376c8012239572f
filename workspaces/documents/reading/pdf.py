"""PDF: the text of its pages, values of forms, notes, attached files, and by OCR what is only drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from ctypes import POINTER, cast, create_string_buffer
from typing import Any

import pypdfium2
from pypdfium2 import raw

from workspaces.documents.reading import attached, ocr
from workspaces.documents.reading.block import Block, Blocks, Unreadable, left_out
from workspaces.documents.reading.drawing import MOST_PAGES, MOST_PIXELS

DOTS = 200  # an inch, of a page that is drawn for OCR
SMALLEST_BESIDE = 2_500  # square points of a picture beside a text: less is a sign or a logo
_IMAGE = raw.FPDF_PAGEOBJ_IMAGE


def read_pdf(data: bytes) -> Blocks:
    """Its pages with values of forms, notes and, by OCR, pictures; then the files attached to it."""
    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise Unreadable("encrypted" if "assword" in str(error) else "broken") from None
    if len(pdf) > MOST_PAGES:
        raise Unreadable("too_long")
    pdf.init_forms()
    known: set[bytes] = set()
    for number in range(len(pdf)):
        page = pdf[number]
        text_page = page.get_textpage()
        text = text_page.get_text_bounded().replace("\r\n", "\n").replace("\ufffe", "")
        text_page.close()
        drawn = [] if text.strip() else list(page.get_objects(filter=[_IMAGE], max_depth=3))
        if drawn:
            text = _drawn_text(page)
        elif text.strip():
            text += _beside(page, text, known)
        yield Block("\n\n".join([text, *_annotations(pdf, page)]), number + 1)
        page.close()
    for number in range(pdf.count_attachments()):
        file = pdf.get_attachment(number)
        yield from attached.read(file.get_name(), bytes(file.get_data()))


def _annotations(pdf: Any, page: Any) -> list[str]:
    """Fields of forms with their values, and notes."""
    found: dict[str, None] = {}
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        note = raw.FPDFPage_GetAnnot(page, number)
        kind = raw.FPDFAnnot_GetSubtype(note)
        if kind == raw.FPDF_ANNOT_WIDGET and pdf.formenv is not None:
            name = _string(raw.FPDFAnnot_GetFormFieldAlternateName, pdf.formenv, note)
            name = name or _string(raw.FPDFAnnot_GetFormFieldName, pdf.formenv, note)
            value = _string(raw.FPDFAnnot_GetFormFieldValue, pdf.formenv, note)
            if value and value != "Off":
                found[f"{name}: {value}"] = None
        elif kind not in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_POPUP):
            found[_string(raw.FPDFAnnot_GetStringValue, note, b"Contents")] = None
        raw.FPDFPage_CloseAnnot(note)
    return [text for text in found if text.strip()]


def _string(ask: Callable[..., int], *of: Any) -> str:
    """What PDFium writes into a buffer of the size that it names: UTF-16 with a zero at its end."""
    size = ask(*of, None, 0)
    buffer = create_string_buffer(size)
    ask(*of, cast(buffer, POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[: max(0, size - 2)].decode("utf-16-le", "replace")


def _beside(page: Any, text: str, known: set[bytes]) -> str:
    """The text in pictures that stand beside a text, or below a stamp; a picture on many pages is read once."""
    bounds = []
    for each in page.get_objects(filter=[_IMAGE], max_depth=3):
        left, bottom, right, top = each.get_bounds()
        if (right - left) * (top - bottom) < SMALLEST_BESIDE or top - bottom < 8:
            continue
        print_of = hashlib.sha256(bytes(each.get_data())).digest()
        if print_of not in known:
            known.add(print_of)
            bounds.append((left, bottom, right, top))
    if not bounds:
        return ""
    width, height = page.get_size()
    low = [max(0.0, min(each[side] for each in bounds)) for side in (0, 1)]
    high = [min(most, max(each[side] for each in bounds)) for side, most in ((2, width), (3, height))]
    if low[0] >= high[0] or low[1] >= high[1]:
        return ""
    read = ocr.text_beside(_rendered(page, crop=(low[0], low[1], width - high[0], height - high[1])))
    if read is None:
        left_out["pictures"] += len(bounds)
        return ""
    there = " ".join(text.split())
    new = [line for line in read.splitlines() if " ".join(line.split()) not in there]
    return "\n\n" + "\n".join(new) if new else ""


def _drawn_text(page: Any) -> str:
    """Of a scanned page."""
    if not ocr.is_there():
        left_out["pages"] += 1
        return ""
    return ocr.text_of(_rendered(page))


def _rendered(page: Any, crop: tuple[float, float, float, float] = (0, 0, 0, 0)) -> Any:
    width, height = page.get_size()
    scale = min(DOTS / 72, (MOST_PIXELS / max(1.0, width * height)) ** 0.5)
    return page.render(scale=scale, grayscale=True, crop=crop).to_pil()
