"""Reader of PDF: page texts, form values, notes, attachments, and scanned pages by OCR."""

import hashlib
import re
from collections.abc import Callable, Iterator
from ctypes import POINTER, cast, create_string_buffer
from typing import Any

import pypdfium2
from pypdfium2 import raw

from workspaces.documents.reading import pictures
from workspaces.documents.reading.kinds import Block, Blocks, Unreadable, left_out
from workspaces.documents.reading.pictures import MOST_PAGES, MOST_PIXELS

DOTS = 200  # per inch, for rendering a page for OCR
SMALLEST_BESIDE = 2_500  # square points; a smaller picture beside text is a sign or a logo
FEWEST_CURVES = 40  # on a page without text and pictures; fewer are lines and frames
_IMAGE = raw.FPDF_PAGEOBJ_IMAGE


def read_pdf(data: bytes) -> Blocks:
    """Read the pages, each with its form values, notes and the text of its pictures by OCR. Attached files are read
    last.

    Raises Unreadable if the file is encrypted, broken or too long.
    """
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
        if not text.strip() and _is_drawn(page):
            text = _scanned_text(page)
        elif text.strip():
            text += _picture_text(page, text, known)
        clipped: list[Any] = []
        yield Block("\n\n".join([text, *_annotations(pdf, page, clipped)]), number + 1)
        page.close()
        for file in clipped:
            yield from _attached(file)
    for number in range(pdf.count_attachments()):
        yield from _attached(pdf.get_attachment(number))


def _attached(file: Any) -> Blocks:
    name = file.get_name()
    try:
        data = bytes(file.get_data())
    except pypdfium2.PdfiumError:  # damaged, or not embedded in the PDF
        data = b""
    yield from pictures.read(name, data)
    if not data:
        left_out["files"] += 1
        yield Block(f"Attached, not read: {name}", 0, name)


def _is_drawn(page: Any) -> bool:
    """Return whether a page without text shows a picture, or text that is drawn as curves."""
    drawn = [each.type for each in page.get_objects(filter=[_IMAGE, raw.FPDF_PAGEOBJ_PATH], max_depth=3)]
    return _IMAGE in drawn or len(drawn) >= FEWEST_CURVES


def _annotations(pdf: Any, page: Any, clipped: list[Any]) -> list[str]:
    """Return the page's form fields with their values, and its notes. ``clipped`` gets the files attached to notes."""
    texts: dict[str, None] = {}
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        note = raw.FPDFPage_GetAnnot(page, number)
        kind = raw.FPDFAnnot_GetSubtype(note)
        if kind == raw.FPDF_ANNOT_WIDGET and pdf.formenv is not None:
            name = _string(raw.FPDFAnnot_GetFormFieldAlternateName, pdf.formenv, note)
            name = name or _string(raw.FPDFAnnot_GetFormFieldName, pdf.formenv, note)
            value = _string(raw.FPDFAnnot_GetFormFieldValue, pdf.formenv, note)
            value = ", ".join(_chosen(pdf, note)) or value
            if value and value != "Off":
                texts[f"{name}: {value}"] = None
        elif kind not in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_POPUP):
            rich = re.sub("<[^>]*>", " ", _string(raw.FPDFAnnot_GetStringValue, note, b"RC"))
            texts[_string(raw.FPDFAnnot_GetStringValue, note, b"Contents") or " ".join(rich.split())] = None
            if file := raw.FPDFAnnot_GetFileAttachment(note):
                clipped.append(pypdfium2.PdfAttachment(file, pdf))
        raw.FPDFPage_CloseAnnot(note)
    return [text for text in texts if text.strip()]


def _chosen(pdf: Any, note: Any) -> Iterator[str]:
    """Yield all selected options of a list field. PDFium returns only the first as the field's value."""
    for number in range(raw.FPDFAnnot_GetOptionCount(pdf.formenv, note)):
        if raw.FPDFAnnot_IsOptionSelected(pdf.formenv, note, number):
            yield _string(raw.FPDFAnnot_GetOptionLabel, pdf.formenv, note, number)


def _string(ask: Callable[..., int], *of: Any) -> str:
    """Return a text from the PDFium function ``ask``, which is called first for its size and then for the text.

    The text is UTF-16 with a final zero.
    """
    size = ask(*of, None, 0)
    buffer = create_string_buffer(size)
    ask(*of, cast(buffer, POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[: max(0, size - 2)].decode("utf-16-le", "replace")


def _picture_text(page: Any, text: str, known: set[bytes]) -> str:
    """Return the text of a page's pictures by OCR, without lines that are in the page's own ``text``.

    ``known``: hashes of the pictures on earlier pages, which are not read again.
    """
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
    read = pictures.text_beside(_rendered(page, crop=(low[0], low[1], width - high[0], height - high[1])))
    if read is None:
        left_out["pictures"] += len(bounds)
        return ""
    there = " ".join(text.split())
    new = [line for line in read.splitlines() if " ".join(line.split()) not in there]
    return "\n\n" + "\n".join(new) if new else ""


def _scanned_text(page: Any) -> str:
    """Return the text of a scanned page by OCR."""
    if not pictures.is_there():
        left_out["pages"] += 1
        return ""
    return pictures.text_of(_rendered(page))


def _rendered(page: Any, crop: tuple[float, float, float, float] = (0, 0, 0, 0)) -> Any:
    width, height = page.get_size()
    scale = min(DOTS / 72, (MOST_PIXELS / max(1.0, width * height)) ** 0.5)
    return page.render(scale=scale, grayscale=True, crop=crop).to_pil()
