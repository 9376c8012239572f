"""Files of every kind, read with the limits of the product's reader process, and split into passages."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reading import read_in_forks
from tests.workspaces.documents.samples import SAMPLES, SENTENCE
from workspaces.documents.files import EPUB, clean_title, media_type
from workspaces.documents.passages import SIZE, passages_of
from workspaces.documents.reading.kinds import Block
from workspaces.documents.reading.parent_process import read_file


@pytest.fixture(autouse=True)
def _processes_of_readers_are_forked() -> Iterator[None]:
    with read_in_forks():
        yield


def test_each_kind_is_read_with_its_pages_and_headings(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for name, (content, page, heading) in SAMPLES.items():
        path.write_bytes(content)
        blocks = read_file(path, media_type(name, content[:512])).blocks
        where = next((block.page, block.heading) for block in blocks if SENTENCE in block.text)
        assert where == (page, heading), name
        assert "evil" not in "".join(block.text for block in blocks), name


def test_chapters_of_a_book_lie_where_its_list_says_from_where_it_lies(tmp_path: Path) -> None:
    out = tmp_path / "book"
    with zipfile.ZipFile(out, "w") as book:
        book.writestr("META-INF/container.xml", '<c><rootfile full-path="in/book.opf"/></c>')
        chapter = '<item id="a" href="../text/ch%201.xhtml"/><itemref idref="a"/>'
        book.writestr("in/book.opf", f"<p>{chapter}</p>")
        book.writestr("text/ch 1.xhtml", f"<p>{SENTENCE}</p>")
    assert [block.text.strip() for block in read_file(out, EPUB).blocks] == [SENTENCE]


def test_text_with_unicode_line_separators_is_read_whole(tmp_path: Path) -> None:
    text = "The rent\u2028is due\u2029on the\u0085first."
    path = tmp_path / "file"
    path.write_text(f"{text}\n" * 800, encoding="utf-8")
    assert "".join(block.text for block in read_file(path, "text/plain").blocks).count(text) == 800


def test_passages_one_after_the_other_are_the_whole_text() -> None:
    paragraphs = "\n\n".join(
        f"Sentence one of {n}. And another one, a bit longer than that." for n in range(40)
    )
    blocks = [
        Block(paragraphs, 1, "One"),
        Block("x" * 3000, 2, "No spaces"),
        Block("字" * 900 + "。" + "末", 3),
        Block("a b\\nc. " * 200, 4),
    ]
    passages = passages_of(blocks)
    assert "".join(each.text for each in passages) == "".join(block.text.rstrip() + "\n" for block in blocks)
    assert all(0 < len(each.text) <= SIZE + 1 for each in passages)
    assert [each.number for each in passages] == list(range(len(passages)))
    assert all(
        sum(len(before.text) for before in passages[: each.number]) == each.begins for each in passages
    )
    assert {each.page for each in passages} == {1, 2, 3, 4}
    middle = passages[1]
    assert middle.around.startswith("One\n") and middle.text in middle.around
    assert passages[0].text[-50:] in middle.around and passages[2].text[:50] in middle.around


def test_a_title_is_for_people() -> None:
    titles = {
        "C:\\a\\lease.pdf": "lease.pdf",
        "../../etc/passwd": "passwd",
        "a\u202egnp.exe": "a gnp.exe",
        "": "",
    }
    assert {name: clean_title(name) for name in titles} == titles
