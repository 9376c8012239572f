"""Hostile files, some dozens, all generated here: bombs, cycles, false headers, locked, broken and empty ones.

For each file: its bytes (or a function that makes them, if that is slow, so that collecting tests stays fast), its
media type, and the code of the resulting error; None if the file may be read or refused.
"""

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable

from PIL import Image

from tests.workspaces.documents.samples import SAMPLES, archive, docx, odt, pdf
from workspaces.documents import files

Hostile = tuple[bytes | Callable[[], bytes], str, str | None]

LAUGHS = '<!DOCTYPE l [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(10)
)
BOMB = f"{LAUGHS}]><d>&k;</d>"
OUTSIDE = '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><d><h>&x;</h></d>'
CONTAINER = '<c><rootfiles><rootfile full-path="{}"/></rootfiles></c>'
WORD_NS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def lying_zip() -> bytes:
    """Return an archive that declares a gigabyte, and of zeros would unpack to it."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made,
        made.open("content.xml", "w") as file,
    ):
        for _ in range(400):
            file.write(bytes(1_000_000))
    return out.getvalue()


def understated_zip() -> bytes:
    """Return an archive that declares ten bytes and unpacks to fifty million."""
    whole = bytearray(archive(**{"content.xml": "<d>" + " " * 50_000_000 + "</d>"}))
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = whole.index(mark) + place
        whole[at : at + 4] = (10).to_bytes(4, "little")
    return bytes(whole)


def locked_zip() -> bytes:
    whole = bytearray(odt())
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):
        place = whole.index(mark) + (6 if mark == b"PK\x03\x04" else 8)
        whole[place] |= 1
    return bytes(whole)


def with_part(made: bytes, name: str, content: str) -> bytes:
    """Return an office file with one part replaced."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(made)) as before,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        for each in before.namelist():
            after.writestr(each, content if each == name else before.read(each))
    return out.getvalue()


def one_page(stream: bytes, *, more: bytes = b"", fields: bytes = b"", trailer: bytes = b"") -> bytes:
    """Return a PDF of one page with this content stream; readers rebuild the missing xref table."""
    return (
        b"%%PDF-1.5\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n"
        b"2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj\n"
        b"3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources 5 0 R >> endobj\n"
        b"4 0 obj << /Length %d %s >>\nstream\n%s\nendstream endobj\n%s\ntrailer << /Root 1 0 R %s >>\n%%%%EOF"
    ) % (len(stream), fields, stream, more, trailer)


PDFS: dict[str, Hostile] = {
    "ends early": (pdf("One")[:120], files.PDF, "broken"),
    "no text": (pdf(""), files.PDF, "empty"),
    "a first line alone": (b"%PDF-1.7\n", files.PDF, "broken"),
    "pages that are their own parents": (
        b"%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n"
        b"2 0 obj << /Type /Pages /Kids [2 0 R] /Count 9 >> endobj\ntrailer << /Root 1 0 R >>\n%%EOF",
        files.PDF,
        "broken",
    ),
    "a table of places that leads to itself": (
        pdf("One").replace(b"trailer << ", b"trailer << /Prev 9 "),
        files.PDF,
        None,
    ),
    "a billion pages, it says": (pdf("One").replace(b"/Count 1", b"/Count 999999999"), files.PDF, None),
    "locked with a password": (
        one_page(
            b"BT ET",
            more=b"6 0 obj << /Filter /Standard /V 1 /R 2 /P -4 /O (%s) /U (%s) >> endobj"
            % (b"o" * 32, b"u" * 32),
            trailer=b"/Encrypt 6 0 R /ID [(a) (a)]",
        ),
        files.PDF,
        "encrypted",
    ),
    "a page that unpacks to much": (
        lambda: one_page(zlib.compress(bytes(200_000_000), 1), fields=b"/Filter /FlateDecode"),
        files.PDF,
        "empty",
    ),
    "packed a hundred times": (
        one_page(b"x" * 100, fields=b"/Filter [" + b"/FlateDecode " * 100 + b"]"),
        files.PDF,
        "empty",
    ),
    "a picture drawn in itself": (
        one_page(
            b"/X Do",
            more=b"5 0 obj << /XObject << /X 6 0 R >> >> endobj\n6 0 obj << /Type /XObject /Subtype /Form "
            b"/BBox [0 0 9 9] /Resources 5 0 R /Length 5 >>\nstream\n/X Do\nendstream endobj",
        ),
        files.PDF,
        "empty",
    ),
    "brackets in brackets": (one_page(b"[" * 1_000_000), files.PDF, "empty"),
    "a script that runs": (
        pdf("One").replace(
            b"/Type /Catalog", b"/Type /Catalog /OpenAction << /S /JavaScript /JS (app.alert) >>"
        ),
        files.PDF,
        None,
    ),
}
OFFICE: dict[str, Hostile] = {
    "entities upon entities in odt": (archive(**{"content.xml": BOMB}), files.ODT, "broken"),
    "entities upon entities in epub": (archive(**{"META-INF__container.xml": BOMB}), files.EPUB, "broken"),
    "entities upon entities in docx": (with_part(docx(), "word/document.xml", BOMB), files.WORD, "broken"),
    "entities upon entities in xlsx": (
        with_part(SAMPLES["keys.xlsx"][0], "xl/worksheets/sheet1.xml", BOMB),
        files.SHEETS,
        "broken",
    ),
    "entities upon entities in pptx": (
        with_part(SAMPLES["keys.pptx"][0], "ppt/slides/slide1.xml", BOMB),
        files.SLIDES,
        "broken",
    ),
    "a file of the server in odt": (archive(**{"content.xml": OUTSIDE}), files.ODT, "broken"),
    "a file of the server in docx": (with_part(docx(), "word/document.xml", OUTSIDE), files.WORD, "empty"),
    "a file of the server as a chapter": (
        archive(
            **{
                "META-INF__container.xml": CONTAINER.format("book.opf"),
                "book.opf": '<p><item id="a" href="../../../../etc/passwd"/><itemref idref="a"/></p>',
            }
        ),
        files.EPUB,
        "empty",
    ),
    "a book that begins with itself": (
        archive(**{"META-INF__container.xml": CONTAINER.format("META-INF/container.xml")}),
        files.EPUB,
        "empty",
    ),
    "a chapter ten thousand times": (
        archive(
            **{
                "META-INF__container.xml": CONTAINER.format("book.opf"),
                "book.opf": '<p><item id="a" href="a.html"/>' + '<itemref idref="a"/>' * 10_000 + "</p>",
                "a.html": "<p>" + "word " * 2_000,
            }
        ),
        files.EPUB,
        "too_long",
    ),
    "unpacks to too much": (lying_zip, files.ODT, "too_large_unpacked"),
    "unpacks to more than it says": (understated_zip, files.ODT, "broken"),
    "too many in it": (
        lambda: archive(**{f"f{n}": "" for n in range(10_001)}),
        files.WORD,
        "too_large_unpacked",
    ),
    "locked": (locked_zip(), files.ODT, "encrypted"),
    "nothing in it": (archive(), files.ODT, "broken"),
    "not what it should hold": (archive(a="b"), files.WORD, "broken"),
    "names that lead out": (
        archive(**{"..__..__etc__passwd": "root:", "content.xml": "<d/>"}),
        files.ODT,
        "empty",
    ),
    "elements within elements": (archive(**{"content.xml": "<d>" * 100_000}), files.ODT, "broken"),
    "half of it": (docx()[:4000], files.WORD, "broken"),
    "a picture": (b"\x89PNG" + bytes(99), files.WORD, "broken"),
    "a sheet with nothing": (
        with_part(SAMPLES["keys.xlsx"][0], "xl/worksheets/sheet1.xml", ""),
        files.SHEETS,
        "broken",
    ),
    "a zip of nothing known": (archive(a="b"), files.ZIP, "unknown"),
}
TEXTS: dict[str, Hostile] = {
    "nothing": (b" \n", files.TEXT, "empty"),
    "marks nobody sees": ("\ufeff\u200b\n".encode(), files.TEXT, None),
    "unknown": (b"\0\1\2", files.UNKNOWN, "unknown"),
    "packed": (gzip.compress(bytes(10_000_000)), files.UNKNOWN, "unknown"),
    "text without an end": (b"word " * 3_000_000, files.TEXT, "too_long"),
    "half a letter": (b"\xff\xfea", files.TEXT, None),
    "letters of no script": (b"\xed\xa0\x80\xc3\x28" * 1000, files.TEXT, None),
    "tags without an end": (b"<div>" * 200_000, files.HTML, "empty"),
    "a script without an end": (b"<script>" + b"evil() " * 100_000, files.HTML, "empty"),
    "an attribute without an end": (b'<p a="' + b"x" * 5_000_000, files.HTML, "empty"),
    "half a tag": (b"<p>One.</p><", files.HTML, None),
    "a charset that is none": (b'<meta charset="\xff\xfe"><p>\xe9</p>', files.HTML, None),
    "headings without an end": (b"# a\n" * 100_000, files.MARKDOWN, None),
    "a fence that never ends": (b"```\n" + b"# no heading\n" * 1000, files.MARKDOWN, None),
    "brackets without an end": (b"[" * 500_000, files.JSON, None),
    "a number without an end": (b"9" * 5_000_000, files.JSON, None),
    "a table of one row": (b"a," * 2_000_000, files.CSV, None),
    "a quote that never ends": (b'"' + b"a,b\n" * 100_000, files.CSV, None),
    "a mail within mails": (
        b"".join(b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (n, n) for n in range(3000))
        + b"\nhello",
        files.MAIL,
        "broken",
    ),
    "a mail of headers": (b"Subject: a\n" * 200_000 + b"\n", files.MAIL, None),
    "a mail in no charset": (
        b"Subject: a\nContent-Type: text/plain; charset=klingon\n\n\xff\xfe",
        files.MAIL,
        None,
    ),
    "a mail packed wrongly": (b"Subject: a\nContent-Transfer-Encoding: base64\n\n====", files.MAIL, None),
}


def png(width: int, height: int, *, data: bytes = b"") -> bytes:
    """Return a PNG that declares this size, with one bit a pixel."""

    def chunk(name: bytes, said: bytes) -> bytes:
        return len(said).to_bytes(4, "big") + name + said + zlib.crc32(name + said).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x01\0\0\0\0"
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def picture(kind: str, *, side: int = 64) -> bytes:
    out = io.BytesIO()
    Image.new("1", (side, side)).save(out, kind, **({"compression": "group4"} if kind == "TIFF" else {}))
    return out.getvalue()


def tiff(*, side: int = 64, pages: int) -> bytes:
    """Return a TIFF whose further pages repeat the first, in an endless cycle."""
    whole = bytearray(picture("TIFF", side=side))
    first = int.from_bytes(whole[4:8], "little")
    page = whole[first : first + 2 + 12 * int.from_bytes(whole[first : first + 2], "little")]
    end = first + len(page)
    for _ in range(pages - 1):
        whole += bytes(1_000 - len(whole) % 4)  # a reader checks that the offsets of pages are inside
        whole[end : end + 4] = len(whole).to_bytes(4, "little")
        end = len(whole) + len(page)
        whole += page + bytes(4)
    whole[end : end + 4] = first.to_bytes(4, "little")
    return bytes(whole)


SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
IMAGES: dict[str, Hostile] = {
    "a png of four billion pixels": (
        png(65_000, 65_000, data=bytes(10_000_000)),
        files.PNG,
        "too_large_unpacked",
    ),
    "a png that ends in its first row": (png(4_000, 4_000, data=bytes(9)), files.PNG, "broken"),
    "a png with sides of nothing": (png(0, 0), files.PNG, "broken"),
    "half a jpeg": (picture("JPEG", side=800)[:-400], files.JPEG, "broken"),
    "a jpeg of a first mark alone": (b"\xff\xd8\xff", files.JPEG, "broken"),
    "a tiff that unpacks to much": (
        lambda: tiff(side=7_900, pages=90),
        files.TIFF,
        "too_large_unpacked",
    ),
    "a tiff whose pages go round": (tiff(pages=1), files.TIFF, None),
    "a drawing with a script": (SVG, files.media_type("a.svg", SVG), None),
    "a gif that is a script": (b"GIF89a/*" + bytes(9) + b"*/=1;alert(1)//", files.GIF, "broken"),
    "a png that is a pdf": (
        png(8, 8) + pdf("One"),
        files.media_type("a.png", (png(8, 8) + pdf("One"))[:512]),
        None,
    ),
    "a png that is an archive": (png(8, 8, data=bytes(99)) + archive(a="b"), files.PNG, None),
}
NOISE: dict[str, Hostile] = {
    f"{kind} of noise": (
        content[: len(content) // 2] + b"\xff\0" * 50,
        files.media_type(kind, content[:512]),
        "broken" if content[:2] in (b"PK", b"%P") else None,  # half of a plain text is readable
    )
    for kind, (content, _, _) in SAMPLES.items()
}
HOSTILE = {"pdf": PDFS, "office": OFFICE, "text": TEXTS, "image": IMAGES, "half": NOISE}
