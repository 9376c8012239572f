"""The watchdog: its protocol, and how it ends process groups."""

import signal
import subprocess
import sys

import psutil

from memoryhub.local.end_orphans import FAREWELL, end_groups, ended, read_children, started
from tests.memoryhub.local.processes import running, wait_until


def start_group(code: str) -> psutil.Process:
    found = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    return psutil.Process(found.pid)


def test_it_knows_who_runs_and_who_goes_last() -> None:
    lines = [
        started(11, signal.SIGINT, True),
        started(12, signal.SIGTERM, False),
        started(13, signal.SIGTERM, False),
        ended(13),
    ]
    assert read_children(lines) == ({11: (signal.SIGINT, True), 12: (signal.SIGTERM, False)}, False)


def test_after_a_farewell_there_is_nothing_to_do() -> None:
    assert read_children([started(11, signal.SIGINT, True), FAREWELL + "\n"]) == ({}, True)


def test_a_line_that_was_cut_off_is_not_believed() -> None:
    assert read_children(["+ 1234 15 0"]) == ({}, False)
    assert read_children(["+ 12"]) == ({}, False)


def test_a_group_that_does_not_listen_is_killed_with_all_its_members() -> None:
    leader = start_group(
        "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.fork(); time.sleep(600)"
    )
    wait_until(lambda: leader.children(), "the group has two members")
    members = [leader, *leader.children()]
    end_groups({leader.pid: signal.SIGTERM}, seconds=0.3)
    assert not running(members)


def test_orphans_are_killed_at_once() -> None:
    leader = start_group("import os, time; os.fork(); time.sleep(600)")
    wait_until(lambda: leader.children(), "the group has two members")
    orphans = leader.children()
    leader.kill()
    wait_until(lambda: not running([leader]), "the leader is gone")
    end_groups({leader.pid: signal.SIGTERM}, seconds=600)
    assert not running(orphans)


def test_a_group_that_is_gone_is_no_error() -> None:
    leader = start_group("pass")
    wait_until(lambda: not running([leader]), "it ended")
    end_groups({leader.pid: signal.SIGTERM}, seconds=600)  # neither raises nor waits for it
    assert not running([leader])
