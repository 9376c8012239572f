"""Tools of steps: their definition, and the three tools by which every step reads and writes the run's memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from chat.runs.run_entries import Head, MemoryEntry, MemoryKind, RunEntries, as_json_text, memory_keys
from chat.tools.base import Arguments, ToolTrouble, at_most, read_arguments, schema_of
from memoryhub.llm.base import Speaker, Tool

A = TypeVar("A", bound=Arguments)
LONGEST_RESULT = 24_000  # characters of one call's result


KEPT = AfterValidator(lambda text: text.replace("\x00", ""))  # the database cannot store NUL
Word = Annotated[str, KEPT]


@dataclass(frozen=True)
class StepTool:
    """A tool that a step's model can call.

    ``call`` takes the model's arguments as JSON text, and a key of the call that stays the same if the call is
    repeated. It returns the result, and raises ToolTrouble or a DomainError.
    """

    tool: Tool
    call: Callable[[str, str], str]
    speaker: Speaker  # the author of the result
    is_repeatable: bool = True  # whether repeating a call has no further effect

    @property
    def name(self) -> str:
        return self.tool.name


def step_tool(
    name: str,
    description: str,
    takes: type[A],
    act: Callable[[A, str], str],
    *,
    speaker: Speaker = Speaker.RUN,
    is_repeatable: bool = True,
) -> StepTool:
    tool = Tool(name, description, schema_of(takes))
    return StepTool(
        tool, lambda arguments, key: act(read_arguments(takes, arguments), key), speaker, is_repeatable
    )


MOST_LISTED = 200
MOST_READ = 50  # keys per call
MOST_ENTRIES = 2_000  # entries of a run's memory
LONGEST_VALUE = 16_000  # bytes per published value
DESCRIPTION_SHOWN = 240  # characters of a description in a list
LONGEST_KEY = 200

OnAccess = Callable[[str, dict[str, Any]], None]


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value or None


SomeTexts = Annotated[list[Word] | None, BeforeValidator(_as_list)]
Kinds = Annotated[
    list[Literal["task_result", "step_result", "input", "shared"]] | None, BeforeValidator(_as_list)
]


class ToList(Arguments):
    kind: Kinds = None
    key_prefix: Word = ""
    sources: SomeTexts = None


class ToRead(Arguments):
    keys: Annotated[list[Word], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)]
    offset: Annotated[int, Field(ge=0)] = 0
    length: Annotated[int, Field(ge=1)] | None = None


class ToWrite(Arguments):
    nullable = frozenset({"value"})

    key: Annotated[str, at_most(LONGEST_KEY), KEPT]
    value: Any
    title: Annotated[str, at_most(200)] | None = None
    description: Annotated[str, at_most(1000)] | None = None


def memory_tools(
    memory: RunEntries, *, source: str, on_access: OnAccess, room: Callable[[], int] = lambda: LONGEST_RESULT
) -> tuple[StepTool, ...]:
    """Return the three tools that list, read and write entries of the run's memory.

    ``source`` is the id of the step. ``on_access`` is called for each access, with keys or a count, never with values.
    ``room`` returns the maximum bytes of a result, which cannot be cut, because it would no longer be valid JSON.
    """

    def listed(arguments: ToList, _: str) -> str:
        answer = list_entries(memory, arguments, room())
        on_access("list", {"returned": answer["returned"]})
        return _shown(answer)

    def read(arguments: ToRead, _: str) -> str:
        on_access("read", {"keys": arguments.keys[:MOST_READ]})
        return read_entries(memory, arguments, room())

    def write(arguments: ToWrite, _: str) -> str:
        entry = publish(memory, arguments, source=source)
        on_access("write", {"keys": [entry.key]})
        return _shown({"ok": True, "key": entry.key, "kind": entry.kind, "createdAt": _iso(entry)})

    return (
        step_tool(
            "memory_list",
            "What the run's memory holds, without values; newest 200.",
            ToList,
            listed,
        ),
        step_tool(
            "memory_read",
            "Get whole values, or a page of one.",
            ToRead,
            read,
        ),
        step_tool("memory_write", "Publish under shared:<key>.", ToWrite, write),
    )


def list_entries(memory: RunEntries, arguments: ToList, room: int = LONGEST_RESULT) -> dict[str, Any]:
    """Return the newest matching entries, at most 200 and ``room`` bytes, oldest first and without values."""
    total, newest = memory.newest(
        MOST_LISTED, kind=arguments.kind, key_prefix=arguments.key_prefix, sources=arguments.sources
    )
    shown = [_listed(entry) for entry in newest]
    left = room - _size({"total": total, "returned": len(shown), "truncated": False, "entries": []})
    sizes = [_size(entry) + len(", ") for entry in shown]
    first = len(shown)
    while first and left >= sizes[first - 1]:
        first -= 1
        left -= sizes[first]
    shown = shown[first:]
    return {"total": total, "returned": len(shown), "truncated": len(shown) < total, "entries": shown}


def _listed(entry: Head) -> dict[str, Any]:
    metadata = {"title": entry.title, "description": _cut(entry.description), "source": entry.source}
    return {
        "key": entry.key,
        "kind": str(entry.kind),
        **{name: text for name, text in metadata.items() if text},
        "valueBytes": entry.value_bytes,
        "createdAt": _iso(entry),
    }


def read_entries(memory: RunEntries, arguments: ToRead, room: int = LONGEST_RESULT) -> str:
    """Return JSON with whole values under ``entries``, and with the requested keys that do not exist under ``missing``.

    The JSON has at most ``room`` bytes. Values that do not fit are listed with their sizes under ``tooLarge``. If only
    one key exists, and its value is too large or ``offset`` or ``length`` is given, a part of the value's JSON text is
    returned. ``nextOffset`` is then where to continue. Raises ToolTrouble for more than 50 keys.
    """
    keys = list(dict.fromkeys(arguments.keys))
    if len(keys) > MOST_READ:
        raise ToolTrouble(f"at most {MOST_READ} keys at once")
    known = {key: entry for key in keys if (entry := memory.get(key)) is not None}
    answer: dict[str, Any] = {
        "entries": {},
        "missing": [key[:LONGEST_KEY] for key in keys if key not in known],
    }
    if len(known) == 1:
        [(key, entry)] = known.items()
        whole = {**answer, "entries": {key: entry.as_json()}}
        is_paged = arguments.offset > 0 or arguments.length is not None
        return (
            _shown(whole) if _size(whole) <= room and not is_paged else _page(answer, entry, arguments, room)
        )
    too_large = {key: entry.value_bytes for key, entry in known.items()}
    left = room - _size({**answer, "tooLarge": too_large})
    for key, entry in known.items():
        size = _size({key: entry.as_json()})
        if size <= left:
            answer["entries"][key] = entry.as_json()
            left -= size
            del too_large[key]
    return _shown(answer | ({"tooLarge": too_large} if too_large else {}))


def _page(answer: dict[str, Any], entry: MemoryEntry, arguments: ToRead, room: int) -> str:
    """Return the part of a value's JSON text that was requested, or as much of it as fits into ``room`` bytes."""
    text, length = entry.json[arguments.offset :], min(arguments.length or room, room)
    while True:
        piece = text[:length]
        end = arguments.offset + len(piece)
        paged = {
            **entry.as_json(),
            "value": piece,
            "valueBytes": entry.value_bytes,
            "offset": arguments.offset,
            "totalLength": len(entry.json),
            "truncated": end < len(entry.json),
        }
        if paged["truncated"]:
            paged["nextOffset"] = end
        whole = {**answer, "entries": {entry.key: paged}}
        over = _size(whole) - room
        if over <= 0 or not piece:
            return _shown(whole)
        length = max(0, len(piece) - max(100, over // 4))


def publish(memory: RunEntries, arguments: ToWrite, *, source: str) -> MemoryEntry:
    """Store an entry under ``shared:``, since other keys belong to results of steps and tasks. Raises ToolTrouble."""
    key = memory_keys.shared(arguments.key)
    if key == memory_keys.shared(""):
        raise ToolTrouble("key must not be blank")
    if len(as_json_text(arguments.value).encode()) > LONGEST_VALUE:
        raise ToolTrouble(f"value may have at most {LONGEST_VALUE:,} bytes as JSON; publish the gist of it")
    earlier = memory.get(key)
    if earlier is None and memory.count() >= MOST_ENTRIES:
        raise ToolTrouble("the run's memory is full; write to a key that is there already")
    about = {"title": arguments.title, "description": arguments.description}
    if earlier is not None:  # omitted fields keep their value
        about = {name: getattr(earlier, name) if text is None else text for name, text in about.items()}
    return memory.set(key, MemoryKind.SHARED, arguments.value, source=source, **about)


def _iso(entry: Head) -> str:
    return entry.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _cut(text: str | None) -> str | None:
    return f"{text[: DESCRIPTION_SHOWN - 1]}…" if text and len(text) > DESCRIPTION_SHOWN else text


def _shown(answer: dict[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False)


def _size(answer: dict[str, Any]) -> int:
    """Return the length of the JSON text of ``answer`` in bytes."""
    return len(_shown(answer).encode(errors="replace"))
