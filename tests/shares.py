"""Distribution of the tests among processes (``pytest -n 3``, as ``make test`` does): a file is one share.

pytest-xdist's own ``--dist loadgroup`` does not keep groups together under pytest 9.2 (pytest-xdist#1386).
"""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Files whose tests one process runs in sequence. The shares named here take longest and start first.
TOGETHER = {
    "whole installations": ("tests/verification/",),
    # They share one installation with a scripted model, and one Chromium.
    "browser": ("tests/functional/",),
    # These use a server in the process of the tests.
    "browser without a hub": tuple(
        f"tests/functional/test_{name}.py"
        for name in ("every_page", "admin_pages", "few_presses", "first_look", "keys", "memory_page", "tidy")
    ),
    # Few and long tests: started late, they would outlast the other processes.
    "backups": (
        "tests/memoryhub/test_backup.py",
        "tests/memoryhub/test_backup_in_store.py",
        "tests/memoryhub/test_forgotten_since.py",
    ),
    "sweeps": (
        "tests/test_access_",
        "tests/test_api_fuzz.py",
        "tests/test_attacks",
        "tests/test_read_only.py",
        "tests/test_staff.py",
    ),
}
BEGINNINGS = {beginning: share for share, beginnings in TOGETHER.items() for beginning in beginnings}


def share_of(node_id: str) -> str:
    """Return the share with the longest matching prefix of the file's name; any other file is its own share."""
    file = node_id.partition("::")[0]
    found = [beginning for beginning in BEGINNINGS if file.startswith(beginning)]
    return BEGINNINGS[max(found, key=len)] if found else file


class Shares(LoadScopeScheduling):
    """The shares of TOGETHER in their order, then file by file, those with the most tests first.

    A test whose process ended, such as a hanging one (``faulthandler_exit_on_timeout``), fails without a retry: the
    replacing process continues with the next (pytest-xdist#1371, #1378 and #1327).
    """

    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if longest := next((share for share in TOGETHER if share in self.workqueue), None):
            self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)

    def remove_node(self, node: WorkerController) -> str | None:
        shares = self.assigned_work[node]
        ended = next((test for share in shares.values() for test, done in share.items() if not done), None)
        if ended is not None:
            shares[self._split_scope(ended)][ended] = True
        for share in [share for share, tests in shares.items() if all(tests.values())]:
            del shares[share]
        super().remove_node(node)
        return ended

    def _reschedule(self, node: WorkerController) -> None:
        if node not in self.registered_collections:
            return  # still collecting
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) == 1:
            super()._reschedule(node)  # a process runs a test once it knows the next one


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Shares:
    return Shares(config, log)
