"""Small files of every kind, generated here: each states where the spare key is, under a heading or on a page."""

import io
import json
import re
import zipfile
from email.message import EmailMessage

from docx import Document
from openpyxl import Workbook
from pptx import Presentation

SENTENCE = "The spare key lies under the blue pot"
HTML = (
    "<!doctype html><title>No</title><script>evil()</script><h1>House</h1><p>One.</p><h2>Keys</h2>"
    f"<p>{SENTENCE}.</p><table><tr><td>a</td><td>b</td></tr></table>"
)


def pdf(*pages: str) -> bytes:
    """Return a PDF with a line of text on each page."""
    return pdf_of_lines(*([page] for page in pages))


def pdf_of_lines(*pages: list[str]) -> bytes:
    """Return a PDF with several lines on each page, which are ASCII."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for lines in pages:
        plain = (re.sub(r"([()\\])", r"\\\1", line) for line in lines)
        shown = " T* ".join(f"({line}) Tj" for line in plain)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects) + 2} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, places = "%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF"
    return (out + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{end}").encode()


def docx() -> bytes:
    made, out = Document(), io.BytesIO()
    made.add_heading("House", 1)
    made.add_paragraph("One.")
    made.add_heading("Keys", 2)
    made.add_paragraph(SENTENCE)
    made.add_table(1, 2).cell(0, 1).text = "in the table"
    made.save(out)
    return out.getvalue()


def pptx() -> bytes:
    made, out = Presentation(), io.BytesIO()
    for title, text in (("House", "One."), ("Keys", SENTENCE)):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    made.save(out)
    return out.getvalue()


def xlsx() -> bytes:
    made, out = Workbook(), io.BytesIO()
    sheet = made.active
    sheet.title = "Keys"
    sheet.append(["what", "where"])
    sheet.append(["spare", SENTENCE])
    made.save(out)
    return out.getvalue()


def archive(**files: str | bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name.replace("__", "/"), content)
    return out.getvalue()


def odt() -> bytes:
    office, text = (f"urn:oasis:names:tc:opendocument:xmlns:{name}:1.0" for name in ("office", "text"))
    return archive(
        **{
            "content.xml": f'<o:document-content xmlns:o="{office}" xmlns:t="{text}"><o:body><o:text>'
            f'<t:h t:outline-level="1">Keys</t:h><t:p>{SENTENCE}</t:p></o:text></o:body></o:document-content>'
        }
    )


def epub() -> bytes:
    return archive(
        **{
            "META-INF/container.xml": '<c><rootfiles><rootfile full-path="in/book.opf"/></rootfiles></c>',
            "in/book.opf": '<p><manifest><item id="a" href="one.xhtml"/></manifest>'
            '<spine><itemref idref="a"/></spine></p>',
            "in/one.xhtml": HTML,
        }
    )


def mail() -> bytes:
    made = EmailMessage()
    made["Subject"], made["From"] = "Keys", "mona@example.org"
    made.set_content(SENTENCE)
    made.add_alternative(HTML, subtype="html")
    return made.as_bytes()


# For each kind a file, and the page and heading of the sentence.
SAMPLES: dict[str, tuple[bytes, int, str]] = {
    "keys.pdf": (pdf("Nothing here", SENTENCE), 2, ""),
    "keys.docx": (docx(), 0, "House > Keys"),
    "keys.pptx": (pptx(), 2, "Keys"),
    "keys.xlsx": (xlsx(), 1, "Keys — what | where"),
    "keys.odt": (odt(), 0, "Keys"),
    "keys.epub": (epub(), 1, "House > Keys"),
    "keys.html": (HTML.encode(), 0, "House > Keys"),
    "keys.xhtml": (f'<?xml version="1.0" encoding="UTF-8"?>\n{HTML}'.encode(), 0, "House > Keys"),
    "keys.md": (f"# House\n\nOne.\n\n## Keys\n\n{SENTENCE}\n".encode(), 0, "House > Keys"),
    "keys.csv": (f"what;where\nspare;{SENTENCE}\n".encode(), 0, "what | where"),
    "keys.json": (json.dumps({"keys": {"spare": SENTENCE}}).encode(), 0, ""),
    "keys.eml": (mail(), 0, "Keys"),
    "keys.txt": (f"{SENTENCE}\n".encode("utf-16"), 0, ""),
    "keys.py": (f"# {SENTENCE}\n".encode(), 0, ""),
}
