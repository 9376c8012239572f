"""The three tools by which a step reads and writes the run's memory; every step has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from chat.agents.run_memory import AgentMemory, Head, MemoryEntry, MemoryKind, as_json_text, memory_keys
from chat.agents.step_tools import KEPT, LONGEST_RESULT, StepTool, Word, step_tool
from chat.tools.base import Arguments, ToolTrouble, at_most

MOST_LISTED = 200
MOST_READ = 50  # keys of one call
MOST_ENTRIES = 2_000  # of a run, beyond which nothing new is published
LONGEST_VALUE = 16_000  # bytes of one published value
DESCRIPTION_SHOWN = 200  # characters of it in a list
LONGEST_KEY = 200

OnAccess = Callable[[str, dict[str, Any]], None]


def _as_list(given: object) -> object:
    return [given] if isinstance(given, str) else given or None


Texts = Annotated[list[Word], BeforeValidator(_as_list)]
SomeTexts = Annotated[list[Word] | None, BeforeValidator(_as_list)]
Kinds = Annotated[
    list[Literal["task_result", "step_result", "input", "shared"]] | None, BeforeValidator(_as_list)
]


class ToList(Arguments):
    kind: Kinds = None
    key_prefix: Word = ""
    sources: SomeTexts = None


class ToRead(Arguments):
    keys: Texts


class ToWrite(Arguments):
    key: Annotated[str, at_most(LONGEST_KEY), KEPT]
    value: Any
    title: Annotated[str, at_most(200)] | None = None
    description: Annotated[str, at_most(1000)] | None = None


def memory_tools(memory: AgentMemory, *, source: str, on_access: OnAccess) -> tuple[StepTool, ...]:
    """``source`` is who publishes; ``on_access`` hears of every access, by its keys and never with a value."""

    def listed(asked: ToList, _: str) -> str:
        answer = list_entries(memory, asked)
        on_access("list", {"returned": answer["returned"]})
        return _shown(answer)

    def read(asked: ToRead, _: str) -> str:
        on_access("read", {"keys": asked.keys[:MOST_READ]})
        return read_entries(memory, asked.keys)

    def write(asked: ToWrite, _: str) -> str:
        entry = publish(memory, asked, source=source)
        on_access("write", {"keys": [entry.key]})
        return _shown(
            {"ok": True, "key": entry.key, "kind": entry.kind, "createdAt": _iso(entry)},
        )

    return (
        step_tool(
            "memory_list",
            "What the run's memory holds, without values; newest 200.",
            ToList,
            listed,
        ),
        step_tool("memory_read", "Get whole values.", ToRead, read),
        step_tool("memory_write", "Publish under shared:<key>.", ToWrite, write),
    )


def list_entries(memory: AgentMemory, asked: ToList) -> dict[str, Any]:
    """The newest 200 of those that all filters let through, oldest first, without their values."""
    total, shown = memory.newest(
        MOST_LISTED, kind=asked.kind, key_prefix=asked.key_prefix, sources=asked.sources
    )
    return {
        "total": total,
        "returned": len(shown),
        "truncated": len(shown) < total,
        "entries": [_listed(entry) for entry in shown],
    }


def _listed(entry: Head) -> dict[str, Any]:
    said = {"title": entry.title, "description": _cut(entry.description), "source": entry.source}
    return {
        "key": entry.key,
        "kind": str(entry.kind),
        **{name: text for name, text in said.items() if text},
        "valueBytes": entry.value_bytes,
        "createdAt": _iso(entry),
    }


def read_entries(memory: AgentMemory, keys: list[str]) -> str:
    """``entries`` with whole values, and ``missing``. What does not fit beside the others any more is named with its
    size under ``tooLarge``; a value that alone is too large is its beginning, marked ``truncated``.
    """
    if len(keys) > MOST_READ:
        raise ToolTrouble(f"at most {MOST_READ} keys at once")
    entries: dict[str, Any] = {}
    missing: list[str] = []
    too_large: dict[str, int] = {}
    room = LONGEST_RESULT
    for key in dict.fromkeys(keys):
        entry = memory.get(key)
        if entry is None:
            missing.append(key)
            continue
        if len(entry.json) > room and entries:
            too_large[key] = entry.value_bytes
            continue
        entries[key] = entry.as_json()
        if len(entry.json) > room:
            entries[key] |= {"value": entry.json[:room], "truncated": True, "valueBytes": entry.value_bytes}
        room -= len(entry.json)
    return _shown({"entries": entries, "missing": missing} | ({"tooLarge": too_large} if too_large else {}))


def publish(memory: AgentMemory, asked: ToWrite, *, source: str) -> MemoryEntry:
    """Under ``shared:`` and nowhere else: results of steps and tasks are written by who did them."""
    key = memory_keys.shared(asked.key)
    if key == memory_keys.SHARED_PREFIX:
        raise ToolTrouble("key must not be blank")
    if len(as_json_text(asked.value).encode()) > LONGEST_VALUE:
        raise ToolTrouble(f"value may have at most {LONGEST_VALUE:,} bytes as JSON; publish the gist of it")
    if not memory.has(key) and memory.count() >= MOST_ENTRIES:
        raise ToolTrouble("the run's memory is full; write to a key that is there already")
    said = {"source": source, "title": asked.title, "description": asked.description}
    return memory.set(key, MemoryKind.SHARED, asked.value, **said)


def _iso(entry: Head) -> str:
    return entry.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _cut(text: str | None) -> str | None:
    return f"{text[: DESCRIPTION_SHOWN - 1]}…" if text and len(text) > DESCRIPTION_SHOWN else text


def _shown(answer: dict[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False)
