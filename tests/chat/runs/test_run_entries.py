"""The run's memory and its three tools, row by row of their contract."""

import json
import logging
import threading
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from chat.runs.run_entries import MemoryEntry, MemoryKind, RunEntries, memory_keys
from chat.runs.run_memory_tools import memory_tools
from chat.runs.scheduling import isolated
from chat.runs.step import Reply, StepContext
from chat.tools.base import ToolTrouble

NOON = datetime(2026, 5, 7, 12, tzinfo=UTC)


def ticking() -> RunEntries:
    """Return a memory whose entries are a millisecond apart."""
    ticks = count()
    return RunEntries(lambda: NOON + timedelta(milliseconds=next(ticks)))


@pytest.fixture
def memory() -> RunEntries:
    return ticking()


def filled(memory: RunEntries) -> RunEntries:
    memory.set(
        "task:research", MemoryKind.TASK_RESULT, {"findings": ["é"]}, source="research", title="Findings"
    )
    memory.set("step:search", MemoryKind.STEP_RESULT, [1, 2], source="search")
    memory.set("input:topic", MemoryKind.INPUT, "cats", title="topic")
    memory.set("shared:top", MemoryKind.SHARED, None, source="search", description="d" * 500)
    return memory


def called(memory: RunEntries, name: str, arguments: dict[str, Any], told: list[Any] | None = None) -> Any:
    heard = told if told is not None else []
    tools = memory_tools(memory, source="me", on_access=lambda op, data: heard.append((op, data)))
    return json.loads(next(tool for tool in tools if tool.name == name).call(json.dumps(arguments), "k"))


# --- namespaces


def test_key_namespaces() -> None:
    assert (memory_keys.step("a"), memory_keys.task("a"), memory_keys.input("a")) == (
        "step:a",
        "task:a",
        "input:a",
    )
    given = {"a": "shared:a", "shared:a": "shared:a", "task:a": "shared:task:a"}
    assert {key: memory_keys.shared(key) for key in given} == given


# --- the API


def test_set_returns_the_entry_and_keeps_created_at_when_overwritten(memory: RunEntries) -> None:
    first = memory.set("task:a", MemoryKind.TASK_RESULT, 1, source="a", title="A")
    again = memory.set("task:a", MemoryKind.TASK_RESULT, {"b": 2})
    assert first.created_at == again.created_at == NOON
    assert memory.get("task:a") == again
    assert memory.get_value("task:a") == {"b": 2} and again.title is None


def test_get_get_value_has_snapshot(memory: RunEntries) -> None:
    filled(memory)
    assert memory.get("nothing") is None and memory.get_value("nothing") is None
    assert not memory.has("nothing") and memory.has("shared:top") and memory.get_value("shared:top") is None
    assert [entry.key for entry in memory.snapshot()] == [
        "task:research",
        "step:search",
        "input:topic",
        "shared:top",
    ]


def test_a_reader_cannot_change_what_is_kept(memory: RunEntries) -> None:
    value = {"list": [1]}
    memory.set("shared:a", MemoryKind.SHARED, value)
    value["list"].append(2)
    memory.get_value("shared:a")["list"].append(3)
    assert memory.get_value("shared:a") == {"list": [1]}


def test_only_json_is_kept(memory: RunEntries) -> None:
    for value in (float("nan"), {1, 2}, object()):
        with pytest.raises((TypeError, ValueError)):
            memory.set("shared:a", MemoryKind.SHARED, value)
        assert memory.snapshot() == [], value
    for text in ("\x00", "\ud800", '"\\u0000'):
        entry = memory.set("shared:a", MemoryKind.SHARED, text)
        assert (
            entry.value == text and entry.value_bytes == len(entry.json.encode()) and "\x00" not in entry.json
        )


def test_listing_and_filtering(memory: RunEntries) -> None:
    whole = filled(memory)
    for filters, keys in (
        ({}, ["task:research", "step:search", "input:topic", "shared:top"]),
        ({"kind": "task_result"}, ["task:research"]),
        ({"kind": ["task_result", "input"]}, ["task:research", "input:topic"]),
        ({"keys": ["task:research", "task:report"]}, ["task:research"]),
        ({"key_prefix": "step:"}, ["step:search"]),
        ({"sources": ["research"]}, ["task:research"]),
        ({"sources": ["search"]}, ["step:search", "shared:top"]),  # none without a source
        ({"kind": "shared", "sources": ["search"], "key_prefix": "sha"}, ["shared:top"]),  # ANDed
        ({"kind": "shared", "sources": ["research"]}, []),
        ({"keys": []}, []),
    ):
        assert [entry.key for entry in whole.list(**filters)] == keys


def test_subscribe_until_unsubscribed_though_another_listener_fails(
    memory: RunEntries, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    def failing(entry: MemoryEntry) -> None:
        raise RuntimeError("broken")

    memory.subscribe(failing)
    stop = memory.subscribe(lambda entry: heard.append(entry.key))
    with caplog.at_level(logging.CRITICAL, "chat.runs.run_entries"):
        memory.set("shared:a", MemoryKind.SHARED, 1)
        stop()
        stop()
        memory.set("shared:b", MemoryKind.SHARED, 1)
    assert heard == ["shared:a"] and memory.has("shared:b")


def test_clear_by_kind_and_prefix() -> None:
    for filters, left in (
        ({}, []),
        ({"kind": "step_result"}, ["task:research", "input:topic", "shared:top"]),
        ({"key_prefix": "input:"}, ["task:research", "step:search", "shared:top"]),
        (
            {"kind": "shared", "key_prefix": "input:"},
            ["task:research", "step:search", "input:topic", "shared:top"],
        ),
    ):
        memory = filled(ticking())
        memory.clear(**filters)
        assert [entry.key for entry in memory.snapshot()] == left, filters


def test_a_restored_snapshot_fills_another_memory_and_a_copy_shares_nothing(memory: RunEntries) -> None:
    other = ticking()
    other.restore(filled(memory).snapshot())
    assert other.snapshot() == memory.snapshot()
    other.set("shared:mine", MemoryKind.SHARED, 1)
    assert not memory.has("shared:mine")
    copy = isolated(StepContext(memory, lambda messages, tools, may_call: Reply("")))
    assert copy.memory.snapshot() == []


def test_a_hundred_threads_write_at_once(memory: RunEntries) -> None:
    def write(number: int) -> None:
        for each in range(20):
            memory.set(f"shared:{each}", MemoryKind.SHARED, number)
            memory.set_if_absent("shared:once", MemoryKind.SHARED, number)
            memory.list(key_prefix="shared:")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memory.snapshot()) == 21


# --- memory_list


def test_memory_list_shows_metadata_and_no_values(memory: RunEntries) -> None:
    told: list[Any] = []
    shown = called(filled(memory), "memory_list", {}, told)
    assert (shown["total"], shown["returned"], shown["truncated"]) == (4, 4, False)
    assert shown["entries"][0] == {
        "key": "task:research",
        "kind": "task_result",
        "title": "Findings",
        "source": "research",
        "valueBytes": len('{"findings":["é"]}'.encode()),
        "createdAt": "2026-05-07T12:00:00.000Z",
    }
    assert len(shown["entries"][3]["description"]) == 240 and "value" not in shown["entries"][3]
    assert told == [("list", {"returned": 4})]


def test_memory_list_filters(memory: RunEntries) -> None:
    whole = filled(memory)
    for arguments, keys in (
        ({"kind": ["task_result", "shared"]}, ["task:research", "shared:top"]),
        ({"kind": "shared"}, ["shared:top"]),
        (
            {"kind": [], "sources": [], "key_prefix": ""},
            ["task:research", "step:search", "input:topic", "shared:top"],
        ),
        ({"key_prefix": "task:"}, ["task:research"]),
        ({"sources": ["search"], "kind": ["shared"]}, ["shared:top"]),
    ):
        assert [entry["key"] for entry in called(whole, "memory_list", arguments)["entries"]] == keys


def test_memory_list_shows_the_newest_200_of_201(memory: RunEntries) -> None:
    for number in range(201):
        memory.set(f"shared:{number}", MemoryKind.SHARED, number)
    shown = called(memory, "memory_list", {})
    assert (shown["total"], shown["returned"], shown["truncated"]) == (201, 200, True)
    assert "shared:0" not in {entry["key"] for entry in shown["entries"]}
    assert shown["entries"][-1]["key"] == "shared:200"


# --- memory_read


def test_memory_read_gives_whole_values_and_names_what_is_missing(memory: RunEntries) -> None:
    shown = called(filled(memory), "memory_read", {"keys": ["task:research", "step:summary"]})
    assert shown == {
        "entries": {
            "task:research": {
                "key": "task:research",
                "kind": "task_result",
                "value": {"findings": ["é"]},
                "source": "research",
                "title": "Findings",
                "createdAt": int(NOON.timestamp() * 1000),
            }
        },
        "missing": ["step:summary"],
    }


ROOM = 24_000  # bytes of an answer


def test_memory_list_drops_the_oldest_until_the_whole_answer_fits(memory: RunEntries) -> None:
    """An answer cut inside a string was invalid JSON and lost the newest entries."""
    for number in range(208):
        memory.set(f"shared:{number}", MemoryKind.SHARED, number, description="é" * 240)
    tool = memory_tools(memory, source="me", on_access=lambda op, data: None)[0]
    text = tool.call("{}", "id")
    shown = json.loads(text)
    assert len(text.encode()) <= ROOM < len(text.encode()) + 600, "as many as fit"
    assert shown["total"] == 208 and shown["truncated"]
    assert shown["returned"] == len(shown["entries"])
    assert shown["entries"][-1]["key"] == "shared:207"


def test_memory_read_pages_a_value_that_is_too_large(memory: RunEntries) -> None:
    value = {"text": 'a "quoted" é line\n' * 2_000}
    memory.set("shared:a", MemoryKind.SHARED, value)
    text, at, rounds = "", 0, 0
    while True:
        arguments = {"keys": ["shared:a"], "offset": at}
        page = called(memory, "memory_read", arguments)["entries"]["shared:a"]
        text, rounds = text + page["value"], rounds + 1
        if not page["truncated"]:
            break
        assert page["offset"] == at and page["nextOffset"] == len(text)
        at = page["nextOffset"]
    assert json.loads(text) == value and rounds < 6
    part = called(memory, "memory_read", {"keys": ["shared:a"], "offset": 2, "length": 4})
    assert part["entries"]["shared:a"]["value"] == "text"


def test_memory_read_keeps_what_is_missing_beside_large_values(memory: RunEntries) -> None:
    for name in "ab":
        memory.set(f"shared:{name}", MemoryKind.SHARED, "x" * 13_000)
    shown = called(memory, "memory_read", {"keys": ["shared:a", "shared:b", "task:none"]})
    assert (set(shown["entries"]), shown["missing"]) == ({"shared:a"}, ["task:none"])
    assert shown["tooLarge"] == {"shared:b": 13_002}
    with pytest.raises(ToolTrouble, match="at most 50 keys"):
        called(memory, "memory_read", {"keys": [str(number) for number in range(51)]})
    assert called(memory, "memory_read", {"keys": []}) == {"entries": {}, "missing": []}


def test_memory_write_takes_null_and_keeps_the_title(memory: RunEntries) -> None:
    said = {"title": "Top source", "description": "Picked by the researcher."}
    called(memory, "memory_write", {"key": "top", "value": "a", **said})
    called(memory, "memory_write", {"key": "top", "value": None})
    entry = memory.get("shared:top")
    assert entry is not None and entry.value is None
    assert (entry.title, entry.description) == tuple(said.values())


# --- memory_write


def test_memory_write_publishes_under_shared() -> None:
    for key in ("top_source", "shared:top_source"):
        memory, told = ticking(), list[Any]()
        arguments = {"key": key, "value": {"url": "https://example.com"}, "title": "Top"}
        assert called(memory, "memory_write", arguments, told) == {
            "ok": True, "key": "shared:top_source", "kind": "shared", "createdAt": "2026-05-07T12:00:00.000Z",
        }, key  # fmt: skip
        entry = memory.get("shared:top_source")
        assert entry is not None and (entry.source, entry.title) == ("me", "Top")
        assert told == [("write", {"keys": ["shared:top_source"]})]


def test_memory_write_cannot_stand_in_for_results(memory: RunEntries) -> None:
    filled(memory)
    for key in ("task:research", "step:search", "input:topic"):
        before = memory.get(key)
        assert called(memory, "memory_write", {"key": key, "value": "forged"})["key"] == f"shared:{key}"
        assert memory.get(key) == before


def test_memory_write_refuses_in_a_sentence(memory: RunEntries) -> None:
    for arguments, why in (
        ({"key": "", "value": 1}, "key must not be blank"),
        ({"key": "shared:", "value": 1}, "key must not be blank"),
        ({"key": "k" * 201, "value": 1}, "at most 200"),
        ({"key": "a"}, "value is required"),
        ({"key": "a", "value": "x" * 17_000}, "at most 16,000 bytes"),
    ):
        with pytest.raises(ToolTrouble, match=why):
            called(memory, "memory_write", arguments)
        assert memory.snapshot() == []


def test_a_run_keeps_only_so_many_entries(memory: RunEntries) -> None:
    for number in range(2_000):
        memory.set(f"shared:{number}", MemoryKind.SHARED, number)
    with pytest.raises(ToolTrouble, match="full"):
        called(memory, "memory_write", {"key": "more", "value": 1})
    assert called(memory, "memory_write", {"key": "7", "value": 8})["ok"]
