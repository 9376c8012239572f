"""Pictures and scanned pages: read if the program is installed, reported otherwise, within a time limit."""

import io
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from PIL import Image, ImageDraw, ImageFont

from tests.conftest import Cast
from tests.workspaces.documents.samples import SENTENCE, pdf
from workspaces.documents import documents, files, reading_jobs
from workspaces.documents.reading.parent_process import CouldNotRead, read_file
from workspaces.models import Document, DocumentPicture

Program = Callable[[str], None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Install a script as tesseract; none at first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def write(script: str) -> None:
        (folder / "tesseract").write_text(f"#!/bin/sh\n/bin/cat >/dev/null\n{script}\n")
        (folder / "tesseract").chmod(0o755)

    return write


def drawn(kind: str, *, pages: int = 1, size: tuple[int, int] = (900, 120)) -> bytes:
    picture, out = Image.new("RGB", size, "white"), io.BytesIO()
    ImageDraw.Draw(picture).text((20, 30), SENTENCE, "black", ImageFont.load_default(40))
    more = {"save_all": True, "append_images": [picture] * (pages - 1)} if pages > 1 else {}
    picture.save(out, kind, **more)
    return out.getvalue()


def file_of(folder: Path, content: bytes) -> Path:
    (folder / "file").write_bytes(content)
    return folder / "file"


def test_each_page_of_each_kind_goes_to_the_program(
    program: Program, tmp_path: Path, settings: Any, files_are_read_here: None
) -> None:
    settings.OCR_LANGUAGES = "eng+deu"
    program('echo "read as $1 $2 $3 $4"')
    for kind, pages in {"PNG": 1, "JPEG": 1, "WEBP": 1, "GIF": 1, "BMP": 1, "TIFF": 2, "PDF": 2}.items():
        content = drawn(kind, pages=pages)
        read = read_file(file_of(tmp_path, content), files.media_type("a.txt", content[:512]))
        assert [(block.page, block.text) for block in read.blocks] == [
            (page, "read as stdin stdout -l eng+deu") for page in range(1, pages + 1)
        ], kind
        assert not read.left_out, kind


def test_pages_with_a_text_need_no_program(program: Program, tmp_path: Path) -> None:
    program("exit 1")
    assert SENTENCE in read_file(file_of(tmp_path, pdf(SENTENCE, "")), files.PDF).blocks[0].text


def test_what_the_program_does_not_read_is_said(program: Program, tmp_path: Path, settings: Any) -> None:
    settings.OCR_SECONDS = 1
    path = file_of(tmp_path, drawn("PDF", pages=3))
    for script, why in ((None, "no_ocr"), ("exit 1", "ocr"), ("/bin/sleep 60", "time"), ("echo", "empty")):
        if script is not None:
            program(script)
        began = time.monotonic()
        with pytest.raises(CouldNotRead, match=f"^{why}$"):
            read_file(path, files.PDF)
        assert time.monotonic() - began < 20, why


@pytest.mark.django_db
def test_a_picture_without_ocr_is_kept_says_why_it_has_no_text_and_is_read_once_there_is(
    program: Program, cast: Cast, client: Client
) -> None:
    now = timezone.now()
    made = documents.add_document(
        cast.workspace, name="photo.txt", content=[drawn("PNG")], by=cast.editor, now=now
    ).document
    assert made.media_type == "image/png"
    reading_jobs.read(made.pk, now=now)
    made.refresh_from_db()
    assert (made.status, made.passage_count) == ("ready", 0) and "OCR, which is not installed" in made.error
    client.force_login(cast.editor)
    page = f"/workspaces/{cast.workspace.public_id}/documents/"
    shown = client.get(page).content.decode()
    assert made.error in shown and "Try again" in shown
    program(f'echo "{SENTENCE}"')
    client.post(f"{page}{made.public_id}/retry/")
    assert reading_jobs.read(made.pk, now=now) == "1 passages"
    made.refresh_from_db()
    assert (made.status, made.error, made.passages.get().text.strip()) == ("indexing", "", SENTENCE)
    # A document read before pictures were extracted: its page and the admin's action read it again.
    DocumentPicture.objects.all().delete()
    assert list(Document.objects.not_quite_read()) == [made]
    assert (
        "read before models could be shown pictures"
        in client.get(f"{page}{made.public_id}/").content.decode()
    )
    client.post(f"{page}{made.public_id}/retry/")
    assert reading_jobs.read(made.pk, now=now) == "1 passages"
    assert DocumentPicture.objects.get().document == made and not Document.objects.not_quite_read().exists()
    assert f"{made.public_id}/retry/" not in client.get(f"{page}{made.public_id}/").content.decode()
    broken = documents.add_document(
        cast.workspace, name="b.png", content=[drawn("PNG")[:600]], by=cast.editor, now=now
    ).document
    assert reading_jobs.read(broken.pk, now=now) == "broken"
    assert Document.objects.get(pk=broken.pk).status == "failed"


@pytest.mark.django_db
def test_of_a_file_that_is_partly_scanned_the_rest_is_read(program: Program, cast: Cast) -> None:
    from pypdfium2 import PdfDocument

    both, out = PdfDocument(pdf(SENTENCE)), io.BytesIO()
    both.import_pages(PdfDocument(drawn("PDF", pages=2)))
    both.save(out)
    made = documents.add_document(
        cast.workspace, name="a.pdf", content=[out.getvalue()], by=cast.editor, now=timezone.now()
    ).document
    reading_jobs.read(made.pk, now=timezone.now())
    made.refresh_from_db()
    assert (made.status, made.passage_count) == ("indexing", 1)
    assert made.error.startswith("2 pages are pictures.")


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_the_real_program_reads_the_words(tmp_path: Path) -> None:
    for kind in ("PNG", "PDF"):
        content = drawn(kind)
        read = read_file(file_of(tmp_path, content), files.media_type("a", content[:512]))
        assert SENTENCE in " ".join(block.text for block in read.blocks), kind
