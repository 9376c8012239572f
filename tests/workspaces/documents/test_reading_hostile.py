"""Hostile files: each ends in an error message, within its limits, without affecting others."""

import errno
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.workspaces.documents.hostile import HOSTILE
from workspaces.documents import files
from workspaces.documents.reading.process import CouldNotRead, read_file


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
    ):  # OCR, if installed, may or may not find text
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
        read_file(path, files.CSV)
    path.write_bytes(b"word " * 60_000_000)
    settings.DOCUMENT_SECONDS, settings.DOCUMENT_MEMORY_MB = 60, 256  # type: ignore[attr-defined]
    with pytest.raises(CouldNotRead, match=r"^memory$"):
        read_file(path, files.TEXT)


@pytest.mark.parametrize("kills", [1, 2])
def test_a_reader_that_somebody_kills_is_followed_by_one_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"Bins go out on Mondays")
    run, statuses = subprocess.run, [-signal.SIGKILL] * kills

    def runs(*args: Any, **how: Any) -> Any:
        ended = run(*args, **how)
        if statuses:
            ended.returncode = statuses.pop()
            how["stdout"].truncate(0)
        return ended

    monkeypatch.setattr("workspaces.documents.reading.process.subprocess.run", runs)
    if kills == 1:
        assert [block.text for block in read_file(path, files.TEXT).blocks] == ["Bins go out on Mondays"]
    else:  # the machine's memory limit, most likely
        with pytest.raises(CouldNotRead, match=r"^memory$"):
            read_file(path, files.TEXT)
    assert not statuses


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_full_disk_says_nothing_about_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"word " * size)
    place = "workspaces.documents.reading.process.tempfile.TemporaryFile"
    monkeypatch.setattr(place, partial(open, "/dev/full", "r+b", buffering=0))
    with pytest.raises(OSError, match="no room on the disk") as caught:
        read_file(path, files.TEXT)
    assert caught.value.errno == errno.ENOSPC
