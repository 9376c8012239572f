"""Folders for the tests of the local services, which start real programs and inspect processes."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data folder of one test, with a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="mh-"))
    yield folder / "data"
    shutil.rmtree(folder, ignore_errors=True)
