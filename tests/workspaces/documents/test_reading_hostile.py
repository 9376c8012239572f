"""Files made to harm: each ends in a sentence, within its limits, and costs nobody else anything."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.workspaces.documents.hostile import HOSTILE
from workspaces.documents import media
from workspaces.documents.reading.process import CouldNotRead, read_file


def test_the_set_is_large() -> None:
    assert len(HOSTILE) >= 60


@pytest.mark.parametrize("name", HOSTILE)
def test_it_ends_in_a_sentence_or_in_what_could_be_read(name: str, tmp_path: Path) -> None:
    content, kind, why = HOSTILE[name]
    path = tmp_path / "file"
    path.write_bytes(content() if callable(content) else content)
    began = time.monotonic()
    try:
        text = "".join(block.text for block in read_file(path, kind).blocks)
        said = ""
    except CouldNotRead as error:
        text, said = "", str(error)
    if (why, kind.partition("/")[0]) == (
        None,
        "image",
    ):  # OCR, where there is any, finds something or nothing
        assert said in ("", "empty", "no_ocr", "broken")
    else:
        assert said == (why or "") and bool(text) == (why is None)
    assert "root:" not in text
    assert time.monotonic() - began < 60


def test_it_may_take_neither_all_memory_nor_all_time(tmp_path: Path, settings: pytest.FixtureRequest) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a,b\n" * 2_000_000)
    settings.DOCUMENT_SECONDS = 1  # type: ignore[attr-defined]
    with pytest.raises(CouldNotRead, match=r"^(time|too_long)$"):
        read_file(path, media.CSV)
    path.write_bytes(b"word " * 60_000_000)
    settings.DOCUMENT_SECONDS, settings.DOCUMENT_MEMORY_MB = 60, 256  # type: ignore[attr-defined]
    with pytest.raises(CouldNotRead, match=r"^memory$"):
        read_file(path, media.TEXT)
