"""Cancelling over HTTP, where each request stands alone: by disconnecting, and by nothing that others could send."""

import json
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from memories.models import Memory
from tests.conftest import Cast
from tests.factories import make_key_text

pytestmark = pytest.mark.django_db(transaction=True)
JSON = "application/json, text/event-stream"


class HeldCall:
    """A tool call that starts, and ends when released."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()

    def before(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def held(*args: Any, **more: Any) -> Any:
            self.began.set()
            assert self.may_end.wait(20)
            return work(*args, **more)

        return held


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldCall]:
    from chat.programs import mcp_tools

    held = HeldCall()
    monkeypatch.setattr(mcp_tools, "store", held.before(mcp_tools.store))
    yield held
    held.may_end.set()


@pytest.fixture
def headers(people: Cast) -> dict[str, str]:
    key = make_key_text(people.editor, people.workspace)
    return {"authorization": f"Bearer {key}", "accept": JSON, "content-type": "application/json"}


def save(*, told: bool) -> dict[str, Any]:
    params: dict[str, Any] = {"name": "save_memory", "arguments": {"content": "Penguins cannot fly"}}
    params |= {"_meta": {"progressToken": "p"}} if told else {}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@pytest.mark.parametrize("told", [False, True], ids=["in JSON", "in events"])
def test_who_hangs_up_in_the_middle_leaves_nothing_half_done(
    door: str, headers: dict[str, str], held: HeldCall, told: bool, eventually: Callable[..., None]
) -> None:
    address = urlsplit(door)
    connection = HTTPConnection(str(address.hostname), address.port or 80, timeout=20)
    connection.request("POST", "/mcp", json.dumps(save(told=told)), headers)
    assert held.began.wait(10)
    connection.close()
    held.may_end.set()
    eventually(lambda: Memory.objects.count() == 1)
    again = httpx2.post(f"{door}/mcp", json=save(told=False), headers=headers, timeout=20).json()
    assert again["result"]["structuredContent"]["outcome"] == "duplicate", "it is done, whole and once"


def test_posted_cancellation_is_accepted_and_ends_no_call(
    door: str, headers: dict[str, str], held: HeldCall
) -> None:
    """Ids are the clients' own (1, 2, 3) and there are no sessions, so the cancelled call cannot be identified."""
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    for version, outcome in (("2025-03-26", "saved"), ("2025-11-25", "duplicate")):
        headers |= {"mcp-protocol-version": version}
        held.began.clear()
        held.may_end.clear()
        with httpx2.stream(
            "POST", f"{door}/mcp", json=save(told=True), headers=headers, timeout=20
        ) as answer:
            assert held.began.wait(10)
            taken = httpx2.post(f"{door}/mcp", json=cancel, headers=headers, timeout=20)
            assert (taken.status_code, taken.content) == (202, b""), version
            held.may_end.set()
            said = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {")]
        assert said[-1]["result"]["structuredContent"]["outcome"] == outcome, version
