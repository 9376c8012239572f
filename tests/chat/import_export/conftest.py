from pathlib import Path

import pytest
from pytest_django.fixtures import Settings


@pytest.fixture(autouse=True)
def _data_dir(tmp_path: Path, settings: Settings) -> None:
    """Keep uploaded files of one test from the next."""
    settings.DATA_DIR = tmp_path
