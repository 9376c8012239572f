"""Real-world files: read in full, or with a note of what was left out."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.conftest import Cast
from tests.workspaces.documents.odd import odd_files, pdf_with_picture, picture_file
from tests.workspaces.documents.odd_office import DOCX, changed
from workspaces.data_policy import DataPolicy
from workspaces.documents import documents, files, reading_jobs
from workspaces.documents.reading.office import shown
from workspaces.documents.reading.parent_process import CouldNotRead, Read, read_file
from workspaces.documents.search import find_passages
from workspaces.models import Document

# test_reading reads a file of each kind with the limits of the reader's process.
pytestmark = pytest.mark.usefixtures("files_are_read_here")
FOLDER = Path(__file__).parent / "cases"
# For each file of that folder its required and its forbidden text.
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "tracked.docx": (("5,850 euros", "Brightmoor Trust"), ("4,200",)),
    "content_control.docx": (("Ottoline Brack", "V-17 | 83 newton metres"), ()),
    "parts.docx": (
        ("QX-4471", "30 November 2027", "12 milligrams", "41 degrees", "Kestrel Chemicals"),
        (),
    ),
    "launch.pptx": (("9 October 2026", "2087", "Larkfield Mutual"), ()),
    "f.xlsx": (("=A2*5",), ()),
    "form.pdf": (("Thaddeus Ormerod", "17,650"), ()),
    "scan_stamped.pdf": (("Torridon hut", "Isobel Quarrie"), ()),
    "attach.eml": (("48,300", "Brightmoor Trust"), ()),
    "stub.eml": (("HTMLPART",), ()),
    "charset.eml": (("64 pounds",), ()),
    "cp1251.txt": (("84 тысячи рублей",), ()),
    "sjis.csv": (("温度計 | 第三倉庫 | 418",), ()),
    "rtf.rtf": (("312 barrels", "Annelie Voß"), ("rtf1", "\\par")),
    "depots.odt": (("Keeper Rhiannon Vaughan Shed 12 Pwllheli",), ()),
    "sep.csv": (("Depot | Manager",), ("sep=",)),
    "agreement.doc": (("5,850 euros", "Brightmoor Trust"), ()),
}
ODD = {name: rest for name, *rest in odd_files()}


def read(folder: Path, name: str, content: bytes) -> Read:
    path = folder / "file"
    path.write_bytes(content)
    return read_file(path, files.media_type(name, content[:512]))


def plain(read_file: Read) -> str:
    return " ".join(" ".join(f"{block.heading} {block.text}" for block in read_file.blocks).split())


@pytest.fixture
def no_ocr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_reported_files_are_read_in_full(tmp_path: Path) -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(CASES)
    for name, (wanted, unwanted) in CASES.items():
        result = read(tmp_path, name, (FOLDER / name).read_bytes())
        text = plain(result)
        if not result.left_out:  # otherwise the document reports it: a scan without OCR
            assert [words for words in wanted if words not in text] == [], name
        assert [words for words in unwanted if words in text] == [], name


def test_odd_files_are_read_in_full(tmp_path: Path) -> None:
    for name, (content, wanted, unwanted) in ODD.items():
        text = plain(read(tmp_path, name, content))
        assert [words for words in wanted if " ".join(words.split()) not in text] == [], name
        assert [words for words in unwanted if words in text] == [], name


def test_rows_of_a_table_and_tabs_keep_their_words_apart(tmp_path: Path) -> None:
    blocks = [
        block.text for block in read(tmp_path, "depots.odt", (FOLDER / "depots.odt").read_bytes()).blocks
    ]
    assert "North tank | 8400 | diesel" in blocks[-1] and "Keeper\tRhiannon Vaughan" in blocks[0]


@pytest.mark.usefixtures("no_ocr")
def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    maths = changed(DOCX["maths"][0], lambda *_: None, **{"word/media/a.jpg": picture_file()})
    mail = b"From: a@example.org\n\nSee\nbegin 644 a.txt\n#0V%T\n`\nend\n"
    for name, content, left_out in (
        ("a.docx", maths, {"pictures": 1}),
        ("a.pdf", pdf_with_picture("Drawn", "Printed", height=90), {"pictures": 1}),
        ("attached.eml", ODD["attached.eml"][0], {"files": 1}),
        ("rare.rtf", ODD["rare.rtf"][0], {"pictures": 2}),
        ("old.eml", mail, {"files": 1}),
    ):
        assert read(tmp_path, name, content).left_out == left_out, name
    with pytest.raises(CouldNotRead, match=r"^no_ocr$"):
        read(tmp_path, "a.pdf", pdf_with_picture("Drawn", "", height=90))


@pytest.mark.django_db
@pytest.mark.usefixtures("no_ocr")
def test_document_says_what_was_left_out(cast: Cast) -> None:
    now = timezone.now()
    content = changed(ODD["nested.docx"][0], lambda *_: None, **{"word/media/a.jpg": picture_file()})
    made = documents.add_document(
        cast.workspace, name="a.docx", content=[content], by=cast.editor, now=now
    ).document
    reading_jobs.read(made.pk, now=now)
    made.refresh_from_db()
    assert (made.status, made.error) == ("indexing", "1 picture was not read.")


@pytest.mark.django_db
def test_bytes_that_could_not_be_read_are_read_again_under_a_better_name(cast: Cast) -> None:
    now = timezone.now()
    content = b"\x00\x01not a text\x00" * 40

    def bring(name: str) -> Document:
        return documents.add_document(
            cast.workspace, name=name, content=[content], by=cast.editor, now=now
        ).document

    first = bring("scan")
    reading_jobs.read(first.pk, now=now)
    assert Document.objects.get(pk=first.pk).status == "failed"
    again = bring("scan.pdf")
    assert (again.pk, again.status, again.title, again.media_type) == (
        first.pk,
        "waiting",
        "scan.pdf",
        files.PDF,
    )
    assert bring("scan.pdf").status == "waiting"


@pytest.mark.django_db
def test_document_has_the_type_that_is_found_inside(cast: Cast) -> None:
    now = timezone.now()
    content = (FOLDER / "agreement.doc").read_bytes()
    made = documents.add_document(
        cast.workspace, name="a.zip", content=[content], by=cast.editor, now=now
    ).document
    assert made.media_type == files.ZIP
    reading_jobs.read(made.pk, now=now)
    made.refresh_from_db()
    assert (made.status, made.media_type) == ("indexing", files.WORD)


@pytest.mark.django_db
def test_words_answer_questions_about_what_has_no_vectors_yet(cast: Cast) -> None:
    now = timezone.now()
    text = b"The eastern warehouse: its keeper is Morag Tulloch.\n\nThe harbour office opens at nine."
    made = documents.add_document(
        cast.workspace, name="a.txt", content=[text], by=cast.editor, now=now
    ).document
    reading_jobs.read(made.pk, now=now)

    def ask(question: str) -> list[str]:
        given = {"limit": 3, "policy": DataPolicy.here(cast.workspace), "floor": 0.57, "by_words": False}
        return [each.passage.text for each in find_passages(question, cast.workspace, cast.editor, **given)]

    assert "Morag Tulloch" in "".join(ask("Who keeps the eastern warehouse?"))
    assert ask("Which train goes to Prague?") == []


def test_cells_are_read_as_shown() -> None:
    rows: list[tuple[object, str, str]] = [
        (0.175, "0%", "18%"),
        (0.175, "0.0%", "17.5%"),
        (1234.5, "#,##0.00", "1,234.50"),
        (-1234.5, '#,##0.00\\ "€"', "-1,234.50 €"),
        (1234.5, "[$£-809]#,##0", "£1,234"),
        (7, "000", "007"),
        (1.5, "0.##", "1.5"),
        (2.0, "General", "2"),
        (46304, "d mmmm yyyy", "9 October 2026"),
        (46304.5625, "yyyy-mm-dd hh:mm", "2026-10-09 13:30"),
        (46304.5625, "h:mm AM/PM", "1:30 PM"),
        (True, "General", "TRUE"),
        (-44, "0;(0)", "(44)"),
        (0, '0%;-0%;"none"', "none"),
        (12300000, '0.0,,"M"', "12.3M"),
        (123456789, "000-00-0000", "123456789"),
        (timedelta(hours=31, minutes=5), "[h]:mm", "31:05"),
        ("text", "@", "text"),
    ]
    for value, code, text in rows:
        assert shown(value, code) == text, (value, code)


def test_reading_writes_no_file_and_needs_no_network(tmp_path: Path) -> None:
    """The library would cache results, download models, and run OCR: all of it is switched off."""
    (tmp_path / "home").mkdir()
    (tmp_path / "a").write_bytes(DOCX["tracked"][0])
    program = (
        "import resource, sys, kreuzberg, workspaces.documents.reading.child_process as reader\n"
        "from pathlib import Path\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"  # no file can be written
        "print(reader.read(Path(sys.argv[1]), 'application/msword')[1] == '', file=sys.stderr)"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a")],
        cwd=tmp_path / "home",
        env={"HOME": str(tmp_path / "home"), "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.strip() == "True", done.stderr
    assert list((tmp_path / "home").iterdir()) == []
