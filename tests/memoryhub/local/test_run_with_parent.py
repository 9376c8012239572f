"""Executing another program: as which user, with which capabilities, and until when."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from memoryhub.local.run_with_parent import LAUNCH_FAILED, launch_command
from tests.memoryhub.local.processes import is_running, wait_until

PARENT = """
import subprocess, sys, time
from memoryhub.local.run_with_parent import launch_command
import signal
child = subprocess.Popen(launch_command(["/bin/sleep", "600"], death_signal=signal.SIGKILL))
print(child.pid, flush=True)
time.sleep(600)
"""
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root changes to another account")


def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    wrapped = launch_command(command, death_signal=signal.SIGKILL, **options)  # type: ignore[arg-type]
    return subprocess.run(wrapped, capture_output=True, text=True, check=False)


def test_it_becomes_the_program_and_keeps_its_process_id() -> None:
    process = subprocess.Popen(launch_command(["/bin/sleep", "600"], death_signal=signal.SIGKILL))
    try:
        # Its name appears a moment before its arguments.
        wait_until(
            lambda: psutil.Process(process.pid).cmdline() == ["/bin/sleep", "600"], "it is the program"
        )
    finally:
        process.kill()
        process.wait()


def test_the_program_dies_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    wait_until(lambda: child.name() == "sleep", "the child is the program")
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_running(child), "the child is gone")


def test_a_program_whose_parent_is_already_dead_is_not_started() -> None:
    command = launch_command(["/bin/echo", "alive"], death_signal=signal.SIGKILL)
    command = [word.replace(f"--parent={os.getpid()}", "--parent=1000000000") for word in command]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (LAUNCH_FAILED, "")


@needs_root
class TestAsRoot:
    @pytest.fixture
    def closed(self, data_dir: Path) -> Path:
        """A folder that only root may enter, with a program that everyone may run."""
        folder = data_dir.parent
        shutil.copy("/bin/cat", folder / "cat")
        (folder / "cat").chmod(0o755)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        return folder

    def test_where_everything_is_in_reach_no_power_is_kept(self) -> None:
        status = run(["/bin/cat", "/proc/self/status"], run_as="nobody", must_reach=[Path("/bin/cat")]).stdout
        assert "CapEff:\t0000000000000000" in status
        assert "CapPrm:\t0000000000000000" in status
        assert "Uid:\t65534\t65534\t65534\t65534" in status

    def test_a_closed_folder_is_reached_without_changing_it(self, closed: Path) -> None:
        status = run([str(closed / "cat"), "/proc/self/status"], run_as="nobody", must_reach=[closed / "cat"])
        held = next(line for line in status.stdout.splitlines() if line.startswith("CapEff:"))
        assert int(held.split()[1], 16).bit_count() == 1
        assert "Uid:\t65534" in status.stdout
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700

    def test_what_stays_out_of_reach_is_said(self, closed: Path) -> None:
        missing = closed / "nowhere"
        ended = run(["/bin/true"], run_as="nobody", must_reach=[missing])
        assert ended.returncode == LAUNCH_FAILED
        assert f"the account 'nobody' cannot reach {missing}" in ended.stderr
