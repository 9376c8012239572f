"""Files made to harm: each ends in a sentence, within its limits, and costs nobody else anything."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

import pytest

from tests.workspaces.documents.samples import SAMPLES, archive, docx, odt, pdf
from workspaces.documents import media
from workspaces.documents.reading.process import SENTENCES, CouldNotRead, read_file

LAUGHS = '<!DOCTYPE l [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(10)
)
BOMB = f"{LAUGHS}]><d>&k;</d>"
OUTSIDE = '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><d><h>&x;</h></d>'


def lying_zip() -> bytes:
    """Says that it unpacks to a gigabyte; of zeros, it would."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made, made.open("content.xml", "w") as file:
        for _ in range(400):
            file.write(bytes(1_000_000))
    return out.getvalue()


def locked_zip() -> bytes:
    whole = bytearray(odt())
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):
        place = whole.index(mark) + (6 if mark == b"PK\x03\x04" else 8)
        whole[place] |= 1
    return bytes(whole)


HOSTILE = {
    "nothing": (b" \n", media.TEXT, "empty"),
    "unknown": (b"\0\1\2", media.UNKNOWN, "unknown"),
    "a zip of nothing known": (archive(a="b"), media.ZIP, "unknown"),
    "entities upon entities in odt": (archive(**{"content.xml": BOMB}), media.ODT, "broken"),
    "entities upon entities in epub": (archive(**{"META-INF__container.xml": BOMB}), media.EPUB, "broken"),
    "a file of the server": (archive(**{"content.xml": OUTSIDE}), media.ODT, ""),
    "unpacks to too much": (lying_zip(), media.ODT, "too_large_unpacked"),
    "too many in it": (archive(**{f"f{n}": "" for n in range(10_001)}), media.WORD, "too_large_unpacked"),
    "locked": (locked_zip(), media.ODT, "encrypted"),
    "a PDF that ends early": (pdf("One")[:120], media.PDF, "broken"),
    "a PDF of no text": (pdf(""), media.PDF, "empty"),
    "a PDF whose pages are their own parents": (
        b"%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n"
        b"2 0 obj << /Type /Pages /Kids [2 0 R] /Count 9 >> endobj\ntrailer << /Root 1 0 R >>\n%%EOF",
        media.PDF,
        "",
    ),
    "an office file that is a picture": (b"\x89PNG" + bytes(99), media.WORD, "broken"),
    "half an office file": (docx()[:4000], media.WORD, "broken"),
    "tags without an end": (b"<div>" * 200_000, media.HTML, ""),
    "brackets without an end": (b"[" * 500_000, media.JSON, ""),
    "text without an end": (b"word " * 3_000_000, media.TEXT, "too_long"),
    **{
        f"{kind} of noise": (
            content[: len(content) // 2] + b"\xff\0" * 50,
            media.media_type(kind, content[:512]),
            "",
        )
        for kind, (content, _, _) in SAMPLES.items()
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_ends_in_a_sentence_or_in_what_could_be_read(name: str, tmp_path: Path) -> None:
    content, kind, why = HOSTILE[name]
    path = tmp_path / "file"
    path.write_bytes(content)
    began = time.monotonic()
    try:
        text = "".join(block.text for block in read_file(path, kind))
        said = ""
    except CouldNotRead as error:
        text, said = "", str(error)
    assert said in ({why} if why else {"", *SENTENCES})
    assert "root:" not in text
    assert time.monotonic() - began < 60


def test_it_may_take_neither_all_memory_nor_all_time(tmp_path: Path, settings: pytest.FixtureRequest) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a,b\n" * 2_000_000)
    settings.DOCUMENT_SECONDS = 1  # type: ignore[attr-defined]
    with pytest.raises(CouldNotRead, match=r"^(time|too_long)$"):
        read_file(path, media.CSV)
    path.write_bytes(b"word " * 100_000_000)
    settings.DOCUMENT_SECONDS, settings.DOCUMENT_MEMORY_MB = 60, 256  # type: ignore[attr-defined]
    with pytest.raises(CouldNotRead, match=r"^memory$"):
        read_file(path, media.TEXT)
