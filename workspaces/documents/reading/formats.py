"""Table of readers by kind of file."""

from __future__ import annotations

from functools import partial

from workspaces.documents.reading import kinds
from workspaces.documents.reading.block import READERS, Blocks
from workspaces.documents.reading.drawing import PICTURES, read_picture
from workspaces.documents.reading.mail import read_box, read_calendar, read_mail, read_msg
from workspaces.documents.reading.office import (
    read_by_library,
    read_docx,
    read_epub,
    read_odp,
    read_odt,
    read_pptx,
    read_rtf,
)
from workspaces.documents.reading.plain import (
    read_csv,
    read_html,
    read_json,
    read_markdown,
    read_text,
    read_web_page,
)
from workspaces.documents.reading.sheets import read_ods, read_xlsx


def _read_pdf(data: bytes) -> Blocks:
    from workspaces.documents.reading.pdf import read_pdf  # loads PDFium, which other files do without

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
