"""Hostile files: each ends in an error message, within its limits, without affecting others."""

import errno
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tests.reading import read_in_forks
from tests.workspaces.documents.hostile import HOSTILE
from workspaces.documents import files
from workspaces.documents.reading.parent_process import CouldNotRead, read_file


@pytest.mark.parametrize("of", HOSTILE)
def test_hostile_file_ends_in_an_error_or_in_what_could_be_read(of: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    for name, (content, kind, why) in HOSTILE[of].items():
        path.write_bytes(content() if callable(content) else content)
        began = time.monotonic()
        try:
            with read_in_forks():
                text = "".join(block.text for block in read_file(path, kind).blocks)
            error = ""
        except CouldNotRead as caught:
            text, error = "", str(caught)
        if why is None and kind.startswith("image/"):  # OCR, if installed, may or may not find text
            assert error in ("", "empty", "no_ocr", "broken"), name
        else:
            assert (error, bool(text)) == (why or "", why is None), name
        assert "root:" not in text, name
        assert time.monotonic() - began < 60, name


def test_reader_is_limited_in_memory_and_time(tmp_path: Path, settings: Settings) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a,b\n" * 2_000_000)
    settings.DOCUMENT_SECONDS = 1
    with pytest.raises(CouldNotRead, match=r"^(time|too_long)$"):
        read_file(path, files.CSV)
    path.write_bytes(b"word " * 60_000_000)
    settings.DOCUMENT_SECONDS, settings.DOCUMENT_MEMORY_MB = 60, 256
    with pytest.raises(CouldNotRead, match=r"^memory$"):
        read_file(path, files.TEXT)


def test_killed_reader_is_followed_by_one_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"Bins go out on Mondays")
    run, statuses = subprocess.run, [-signal.SIGKILL]

    def runs(*args: Any, **how: Any) -> Any:
        ended = run(*args, **how)
        if statuses:
            ended.returncode = statuses.pop()
            how["stdout"].truncate(0)
        return ended

    monkeypatch.setattr("workspaces.documents.reading.parent_process.subprocess.run", runs)
    assert [block.text for block in read_file(path, files.TEXT).blocks] == ["Bins go out on Mondays"]
    statuses += [-signal.SIGKILL] * 2
    with pytest.raises(CouldNotRead, match=r"^memory$"):  # the machine's memory limit, most likely
        read_file(path, files.TEXT)
    assert not statuses


def test_full_disk_says_nothing_about_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    temporary = "workspaces.documents.reading.parent_process.tempfile.TemporaryFile"
    monkeypatch.setattr(temporary, partial(open, "/dev/full", "r+b", buffering=0))
    for size in (10, 100_000):
        path.write_bytes(b"word " * size)
        with pytest.raises(OSError, match="no room on the disk") as caught:
            read_file(path, files.TEXT)
        assert caught.value.errno == errno.ENOSPC
