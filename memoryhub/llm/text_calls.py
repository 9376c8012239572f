"""Calls of tools that a model wrote as text, in the forms that common model families are trained on.

A whole answer that is one such call of an offered tool is a call. Anything else stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from memoryhub.llm.base import Delta, ToolCall
from memoryhub.llm.openai_replies import StreamedAnswer

MOST_HELD = 20_000  # characters of an answer that are held back because they may be a call
# What stands before and behind the JSON of a call: Qwen and Hermes, Mistral, Llama 3, fenced blocks, nothing at all.
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
    """Whether an answer that begins with this text may turn out to be a call."""
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
    """The call that the whole text is, of one of the tools with these names."""
    text = text.strip()
    opening = next(filter(text.startswith, _FORMS), None)
    if opening is None:
        return None
    inside = text if opening in {"{", "["} else text[len(opening) :].strip()
    for closing in _FORMS[opening]:
        inside = inside.removesuffix(closing).strip()
    return _call(_loaded(inside), names)


def _may_name(text: str) -> bool:
    """Whether JSON begins as a call does: with the name or the arguments of one."""
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


class HeldCall:
    """Holds back the text of a streamed answer for as long as it may be a call of one of the tools."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held: list[Delta] = []
        self._is_open = bool(names)

    def feed(self, delta: Delta | None) -> Delta | None:
        """What may be passed on by now. Thoughts pass; they are no part of the answer."""
        if delta is None or not self._is_open or not (delta.text or delta.retracts):
            return delta
        if delta.retracts:  # all before was a thought, also what is held back
            self._held, self._is_open = [], False
            return delta
        self._held.append(delta)
        if may_be_call("".join(each.text for each in self._held)):
            return Delta("", thought=delta.thought) if delta.thought else None
        self._is_open = False
        return self._all_held()

    def end(self, delta: Delta | None, answer: StreamedAnswer) -> Delta | None:
        """The rest of the answer; none of it where it was a call, which the answer then has."""
        rest = self.feed(delta)
        if not self._held:
            return rest
        if not answer.tool_calls and (
            call := call_in("".join(each.text for each in self._held), self._names)
        ):
            answer.take_call(call)
            return None
        return self._all_held()

    def _all_held(self) -> Delta | None:
        text, self._held = "".join(each.text for each in self._held), []
        return Delta(text) if text else None
