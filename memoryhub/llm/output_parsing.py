"""Parsing of model output other than the answer: reasoning, tool calls written as text, and slightly invalid JSON."""

import json
import re
from collections.abc import Collection
from typing import Any

import json_repair

from memoryhub.llm.base import Delta, ToolCall
from memoryhub.llm.openai_replies import StreamedAnswer

TAGS = ("think", "thinking", "thought", "reasoning")
_TAG_NAMES = "|".join(TAGS)
_OPENED = re.compile(rf"<(?:{_TAG_NAMES})>", re.IGNORECASE)
_OPENS = re.compile(rf"\s*<(?:{_TAG_NAMES})>\s*", re.IGNORECASE)
_CLOSES = re.compile(rf"\s*</(?:{_TAG_NAMES})>\s*", re.IGNORECASE)
_CLOSES_ALONE = re.compile(rf"^[ \t]*</(?:{_TAG_NAMES})>[ \t]*(?:\n\s*|\Z)", re.IGNORECASE | re.MULTILINE)
_LONGEST_TAG = max(map(len, TAGS)) + len("</>")
_LINE = 200  # characters of a line that are examined; a line with only a tag is shorter


def without_thoughts(text: str) -> str:
    """Return the answer without reasoning; empty if the reasoning never ends."""
    if opened := _OPENS.match(text):
        closed = _CLOSES.search(text, opened.end())
        return text[closed.end() :] if closed else ""
    closed = _CLOSES_ALONE.search(text)
    return text[closed.end() :] if closed and not _OPENED.search(text, 0, closed.start()) else text


class ThoughtSplitter:
    """A parser that separates reasoning from the answer in a stream. It holds back only text that may become a tag."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "start"  # then "thought", "gap" after it, and "plain"; "open" if no opening tag came
        self._said: list[str] = []  # text while "open"
        self._tail = ""  # its last line, with the line break before it

    def feed(self, text: str) -> Delta:
        """Add text. Return the part of it that is certain to be reasoning or answer by now."""
        text, self._held = self._held + text, ""
        if self._state == "start":
            if opened := _OPENS.match(text):
                self._state, text = "thought", text[opened.end() :]
            elif _may_be(text, "<"):
                self._held = text
                return Delta("")
            else:
                self._state = "open"
        if self._state == "thought":
            return self._thinking(text)
        if self._state == "gap":
            text = text.lstrip()
            self._state = "plain" if text else "gap"
        return self._open(text) if self._state == "open" else Delta(text)

    def end(self) -> Delta:
        """Return the text that is still held back when the stream ends."""
        held, self._held = self._held, ""
        if self._state == "thought":
            return Delta("", thought=held)
        return self._open(held, is_end=True) if self._state == "open" else Delta(held)

    def _thinking(self, text: str) -> Delta:
        if closed := _CLOSES.search(text):
            rest = text[closed.end() :]
            self._state = "plain" if rest else "gap"
            return Delta(rest, thought=text[: closed.start()])
        at = text.rfind("<", max(0, len(text) - _LONGEST_TAG))
        at = at if at >= 0 and _may_be(text[at:], "</") else len(text)
        at = len(text[:at].rstrip())  # whitespace before a closing tag belongs to the tag
        self._held = text[at:]
        return Delta("", thought=text[:at])

    def _open(self, text: str, *, is_end: bool = False) -> Delta:
        self._said.append(text)
        self._tail += text
        if _OPENED.search(self._tail):
            self._state = "plain"
            return Delta(text)
        closed = _CLOSES_ALONE.search(self._tail) if "\n" in self._tail or is_end else None
        if closed and (is_end or "\n" in closed[0]):
            full_text, rest = "".join(self._said), self._tail[closed.end() :]
            self._state = "plain" if rest else "gap"
            thought = full_text[: len(full_text) - len(self._tail) + closed.start()].rstrip()
            return Delta(rest, thought=thought, retracts=True)
        last = self._tail.rfind("\n") + 1
        tail = self._tail[max(0, last - 1) :]  # with the line break, so that ^ matches
        self._tail = tail if len(tail) <= _LINE else "." + tail[-_LINE:]
        return Delta(text)


def _may_be(text: str, opening: str) -> bool:
    """Return whether a text may be the beginning of a tag. ``opening`` is "<" or "</". Whitespace alone may be."""
    small = text.lstrip().lower()
    return any(f"{opening}{tag}>".startswith(small) for tag in TAGS)


# Tool calls that a model wrote as text, in the formats that common model families are trained on.
# Only an answer that consists of one call of an offered tool is treated as a call. Anything else stays text.

MOST_HELD = 20_000  # limit of characters held back because they may be a tool call
# Text before and after a call's JSON, by model family: Qwen and Hermes, Mistral, Llama 3, fenced blocks, none.
_FORMS = {
    "<tool_call>": ("</tool_call>",),
    "[TOOL_CALLS]": (),
    "<|python_tag|>": ("<|eom_id|>", "<|eot_id|>"),
    "```json": ("```",),
    "```tool_call": ("```",),
    "```tool_code": ("```",),
    "```": ("```",),
    "{": (),
    "[": (),
}
_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input")


def may_be_call(text: str) -> bool:
    """Return whether an answer that begins with this text may become a tool call."""
    text = text.lstrip()
    if len(text) > MOST_HELD:
        return False
    for opening in _FORMS:
        if opening.startswith(text):
            return True
        if text.startswith(opening):
            inside = text[len(opening) :].lstrip()
            if opening not in {"{", "["}:
                return not inside or inside[0] in "{["
            return _may_name(text)
    return False


def call_in(text: str, names: Collection[str]) -> ToolCall | None:
    """Return the tool call if the whole text is a call of a tool with one of these names; otherwise None."""
    text = text.strip()
    opening = next(filter(text.startswith, _FORMS), None)
    if opening is None:
        return None
    inside = text if opening in {"{", "["} else text[len(opening) :].strip()
    for closing in _FORMS[opening]:
        inside = inside.removesuffix(closing).strip()
    return _call(_loaded(inside), names)


def _may_name(text: str) -> bool:
    """Return whether JSON begins like a tool call, with its name or arguments."""
    inner = re.sub(r"[\s{\[]", "", text[:200])
    keys = (f'"{key}"' for key in (*_NAMES, *_ARGUMENTS, "type", "id"))
    return any(key.startswith(inner) or inner.startswith(key) for key in keys)


def _loaded(text: str) -> Any:
    for attempt in (text, text.replace("{{", "{").replace("}}", "}")):
        try:
            return json.loads(attempt)
        except (ValueError, RecursionError):
            continue
    return None


def _call(value: Any, names: Collection[str]) -> ToolCall | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
    if name not in names:
        return None
    arguments: Any = next((value[key] for key in _ARGUMENTS if key in value), {})
    if isinstance(arguments, str):
        arguments = _loaded(arguments)
    return (
        ToolCall("call_1", name, json.dumps(arguments, ensure_ascii=False))
        if isinstance(arguments, dict)
        else None
    )


class OutputParser:
    """A parser of a streamed answer that separates reasoning and holds back text while it may be a tool call."""

    def __init__(self, names: Collection[str]) -> None:
        """``names`` are the names of the offered tools."""
        self._names = names
        self._thoughts = ThoughtSplitter()
        self._held: list[Delta] = []
        self._is_open = bool(names)

    def feed(self, text: str) -> Delta | None:
        """Add text and return what can be passed on by now."""
        return self._passed(self._thoughts.feed(text))

    def end(self, answer: StreamedAnswer) -> Delta | None:
        """Return the rest of the answer. If the held text is a tool call, add it to ``answer`` and return None."""
        rest = self._passed(self._thoughts.end())
        if not self._held:
            return rest
        if not answer.tool_calls and (
            call := call_in("".join(each.text for each in self._held), self._names)
        ):
            answer.take_call(call)
            return None
        return self._all_held()

    def _passed(self, delta: Delta) -> Delta | None:
        """Return the part of ``delta`` that can be passed on. Reasoning always can, as it is not part of the answer."""
        if not self._is_open or not (delta.text or delta.retracts):
            return delta if delta.text or delta.thought or delta.retracts else None
        if delta.retracts:  # all previous text was reasoning, including the held-back text
            self._held, self._is_open = [], False
            return delta
        self._held.append(delta)
        if may_be_call("".join(each.text for each in self._held)):
            return Delta("", thought=delta.thought) if delta.thought else None
        self._is_open = False
        return self._all_held()

    def _all_held(self) -> Delta | None:
        text, self._held = "".join(each.text for each in self._held), []
        return Delta(text) if text else None


# Repair of slightly invalid JSON: a trailing comma, single quotes, a truncated list.
# Only complete values are read. A truncated list yields its complete entries, because half a statement could have
# another meaning.

MOST_REPAIRED = 20  # lists and objects per reply
_LONGEST_JSON = 4_000  # limit of a repaired object, in characters
_MOST_ENTRIES = 50
_DEEPEST = 6
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},"]', re.DOTALL)
_NAME = re.compile(r"\w{1,40}")


def repaired_object(
    text: str, start: int, *, longest: int = _LONGEST_JSON, deepest: int = _DEEPEST
) -> tuple[dict[str, Any], int] | None:
    """Return the object at ``start`` and its end, or None, limited to ``longest`` characters and ``deepest`` levels."""
    depth = 0
    for token in _TOKEN.finditer(text, start, start + longest):
        sign = token[0]
        depth += (sign in "{[") - (sign in "}]")
        if sign == '"' or depth > deepest:
            return None
        if depth == 0:
            value = _repaired(text[start : token.end()])
            return (value, token.end()) if isinstance(value, dict) else None
    return None


def whole_entries(text: str, start: int) -> tuple[list[Any], int | None]:
    """Return the complete objects or strings of the list at ``start``, and the list's end, or None if it is cut off."""
    entries: list[Any] = []
    waiting: str | None = None  # a string is complete once a comma or bracket follows
    position = start + 1
    while len(entries) < _MOST_ENTRIES and (token := _TOKEN.search(text, position, position + _LONGEST_JSON)):
        sign, position = token[0], token.end()
        if sign in "],":
            entries += [] if waiting is None else [json_or_none(waiting)]
            waiting = None
            if sign == "]":
                return entries, position
        elif sign == "{" and waiting is None and (repaired := repaired_object(text, token.start())):
            value, position = repaired
            entries.append(value)
        elif len(sign) > 1 and waiting is None:
            waiting = sign
        else:
            break
    return entries, None


def json_or_none(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _repaired(text: str) -> Any:
    try:
        value = json_repair.loads(text, strict=True)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not all(map(_NAME.fullmatch, value)):
        return None  # an invalid name is part of a text whose quotes were misread
    last = next(reversed(value.values()), None)
    is_open = isinstance(last, str) and " " in last and text[:-1].rstrip(" \r\n\t,")[-1] not in "\"'”"
    return None if is_open else value
