"""Reading of documents without the product's reader process, which takes longer to start than to read."""

import csv
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from multiprocessing import get_context
from pathlib import Path

import pytest

from workspaces.documents.reading import child_process, parent_process
from workspaces.documents.reading.parent_process import CouldNotRead

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.reading"])


@contextmanager
def read_here() -> Iterator[None]:
    """Read files in this process, without limits."""
    limit = csv.field_size_limit()  # which the reader of CSV files sets for its process
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parent_process, "_run", _run_here)
            yield
    finally:
        csv.field_size_limit(limit)


def _run_here(arguments: list[str], seconds: float) -> tuple[int, str]:
    output = io.StringIO()
    child_process.left_out.clear()
    with redirect_stdout(output), pytest.MonkeyPatch.context() as patch:
        for name, value in parent_process._environment().items():
            patch.setenv(name, value)
        kind, ended = child_process.read(Path(arguments[0]), arguments[1])
        child_process.say({"ended": ended, "kind": kind, "left_out": child_process.left_out})
    return 0, output.getvalue()


@contextmanager
def read_in_forks() -> Iterator[None]:
    """Read each file in a process with the product's limits, which is forked and so need not import the readers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parent_process, "_run", _run_in_a_fork)
        yield


def _run_in_a_fork(arguments: list[str], seconds: float) -> tuple[int, str]:
    with tempfile.NamedTemporaryFile() as out:
        reader = FORKS.Process(
            target=_read_limited, args=(arguments, parent_process._environment(), out.name)
        )
        reader.start()
        reader.join(seconds)
        if reader.exitcode is None:
            reader.kill()
            raise CouldNotRead("time")
        return reader.exitcode, Path(out.name).read_text(errors="replace")


def _read_limited(arguments: list[str], environment: dict[str, str], out: str) -> None:
    os.environ.update(environment)
    path, media_type, memory, seconds = arguments
    child_process.limit(int(memory), int(seconds))
    with Path(out).open("w", encoding="utf-8") as file, redirect_stdout(file):
        kind, ended = child_process.read(Path(path), media_type)
        child_process.say({"ended": ended, "kind": kind, "left_out": child_process.left_out})
