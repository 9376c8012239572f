"""An import survives the death of its worker: a real process, killed while storing."""

import os
import signal
from collections.abc import Callable
from typing import Any

import psutil

from tests.memoryhub.local.processes import wait_until
from tests.stack import signed_up
from tests.verification.conftest import Hub

ROWS = 1500
WORDS = (
    "amber",
    "boat",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbour",
    "island",
    "juniper",
    "kettle",
)


def statements() -> bytes:
    """Return statements different enough that none counts as a duplicate."""
    lines = []
    for number in range(ROWS):
        words = (
            WORDS[number % 11],
            WORDS[number // 11 % 11],
            WORDS[number // 121 % 11],
            WORDS[number // 1331],
        )
        lines.append(f"Locker {number} holds the {' '.join(words)} key")
    return "\n".join(lines).encode()


def test_a_worker_killed_while_it_stores_is_followed_by_one_that_stores_the_rest_once(
    hub: Hub, eventually: Callable[..., None]
) -> None:
    person = signed_up(hub.web(), "importer")
    cluster = hub.stack.worker()
    workspace = person.get("/chat/api/workspaces").json()["items"][0]["id"]
    form = {"file": ("list.txt", statements())}
    made = person.post("/chat/api/imports", files=form, data={"workspace_id": workspace})
    assert made.status_code == 201, made.text
    path = f"/chat/api/imports/{made.json()['id']}"

    def now() -> dict[str, Any]:
        return person.get(path).json()

    def stored() -> int:
        return now()["stored"].get("memory", {}).get("new", 0)

    wait_until(lambda: now()["checked"], "it is checked", pause=0.3)
    assert person.post(f"{path}/start", json={}).status_code == 202
    eventually(lambda: 0 < stored() < ROWS, 60)
    for process in psutil.Process(cluster.pid).children(recursive=True):
        if " processing " in " ".join(process.cmdline()):
            os.kill(process.pid, signal.SIGKILL)
    assert now()["status"] == "running"
    wait_until(lambda: now()["status"] == "done", "the next worker stores the rest", pause=0.3)
    assert now()["stored"]["memory"] == {"new": ROWS, "update": 0, "duplicate": 0, "refused": 0}
    assert person.get(f"/chat/api/workspaces/{workspace}").json()["memory_count"] == ROWS
