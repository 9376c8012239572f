"""A lock allows one supervisor for each data folder."""

import os
from pathlib import Path

import pytest

from memoryhub.local.data_folder import AlreadyRunning, make_data_folders, run_lock, wait_for_cleaner


def test_the_second_learns_who_the_first_is_and_the_first_keeps_the_lock(data_dir: Path) -> None:
    make_data_folders(data_dir)
    with run_lock(data_dir, "http://127.0.0.1:1234"):
        for _ in range(2):
            with (
                pytest.raises(AlreadyRunning, match=rf"process {os.getpid()}, http://127\.0\.0\.1:1234"),
                run_lock(data_dir, "http://127.0.0.1:9999"),
            ):
                pass


def test_a_released_lock_is_free(data_dir: Path) -> None:
    make_data_folders(data_dir)
    with run_lock(data_dir, "http://127.0.0.1:1234"):
        pass
    with (
        run_lock(data_dir, "http://127.0.0.1:1234"),  # does not raise
        pytest.raises(AlreadyRunning),
        run_lock(data_dir, "http://127.0.0.1:1234"),
    ):
        pass


def test_with_nothing_to_clean_up_nobody_waits(data_dir: Path) -> None:
    make_data_folders(data_dir)
    assert wait_for_cleaner(data_dir, seconds=0)
