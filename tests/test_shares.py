import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shares import TOGETHER, share_of


def test_who_needs_the_same_hub_is_in_one_share(request: pytest.FixtureRequest) -> None:
    items = [
        each for each in request.session.items if "open_scripted_page" in getattr(each, "fixturenames", ())
    ]
    assert len({share_of(each.nodeid) for each in items}) <= 1


def test_the_files_named_are_there(pytestconfig: pytest.Config) -> None:
    named = [beginning for beginnings in TOGETHER.values() for beginning in beginnings]
    assert [beginning for beginning in named if not [*pytestconfig.rootpath.glob(f"{beginning}*")]] == []


HANGING = """
import threading

def test_before(): pass
def test_hangs(): threading.Event().wait()
def test_after(): pass
"""


def test_one_that_hangs_fails_with_its_stack_and_the_others_are_run(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """The limit of pyproject.toml, shortened; each of the first two processes ends."""
    assert pytestconfig.getini("faulthandler_timeout") == 300
    assert pytestconfig.getini("faulthandler_exit_on_timeout")
    (tmp_path / "test_hanging.py").write_text(HANGING)
    # Half a second later than the other, or the two stacks would be written into each other.
    single = HANGING.replace("test_before(): pass", "test_before(): threading.Event().wait(0.5)").split(
        "def test_after"
    )[0]
    (tmp_path / "test_single.py").write_text(single)
    for number in range(3):
        (tmp_path / f"test_other{number}.py").write_text("def test_one(): pass\n")
    limit = ("-o", "faulthandler_timeout=2", "-o", "faulthandler_exit_on_timeout=true")
    plugins = ("-p", "xdist", "-p", "tests.shares", "-p", "no:cacheprovider")
    place = ("-c", "/dev/null", f"--rootdir={tmp_path}", str(tmp_path))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", *limit, *plugins, *place],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=pytestconfig.rootpath,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert "2 failed, 6 passed" in run.stdout
    assert run.stderr.count(" in test_hangs") == 2
