"""What extraction proposes to the write gate, and how a model's reply and a conversation are read safely."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from memories.judging.duplicates import normalise

MAX_CANDIDATES = 8
MAX_WORDS = 25
MAX_TEXT = 400  # characters; words without an end are no statement
MAX_CONVERSATION = 12_000  # characters of a conversation that a model is shown
KINDS = ("preference", "fact", "instruction", "decision", "event")
DEFAULT_IMPORTANCE = 0.5

_MAX_REPLY = 50_000
_MAX_STARTS = 200
_LIST_KEYS = ("candidates", "memories", "items", "facts")


@dataclass(frozen=True)
class Candidate:
    """One durable statement that may become a memory. `details` says how it was found, for the memory's source."""

    text: str
    kind: str = "fact"
    importance: float = DEFAULT_IMPORTANCE
    details: dict[str, Any] = field(default_factory=dict)


def parse_candidates(reply: str) -> list[Candidate]:
    """Read the candidates from a model's reply: a JSON list of {text, kind, importance}, alone or in a code fence or
    prose, bare or as the one list of an object. Anything else gives an empty list; it is never guessed at.

    An entry whose fields have the wrong type, or whose text is longer than 25 words, is dropped: a cut statement
    could say something else. An unknown kind becomes "fact".
    """
    for entries in _lists_in(reply[:_MAX_REPLY]):
        if any(isinstance(entry, dict) for entry in entries):
            return keep_best(candidate for entry in entries if (candidate := _candidate(entry)))
    return []


def keep_best(candidates: Iterator[Candidate] | Sequence[Candidate]) -> list[Candidate]:
    """Drop repeated statements and all but the eight most important, in the order they came."""
    unique: dict[str, Candidate] = {}
    for candidate in candidates:
        key = normalise(candidate.text)
        if key not in unique or candidate.importance > unique[key].importance:
            unique[key] = candidate
    best = sorted(unique.values(), key=lambda candidate: -candidate.importance)[:MAX_CANDIDATES]
    return [candidate for candidate in unique.values() if candidate in best]


def render_conversation(messages: Sequence[tuple[str, str]], limit: int | None = MAX_CONVERSATION) -> str:
    """Return the (role, text) messages as data for a model: user and assistant only, the last 12,000 characters.
    With a limit of None all of it.

    Every line carries the role of its message, so no text can forge a turn, and angle brackets are escaped, so none
    can end the block.
    """
    lines: list[str] = []
    for role, text in messages:
        if role in ("user", "assistant"):
            lines += [
                f"{role}: {html.escape(line.strip(), quote=False)}"
                for line in text.splitlines()
                if line.strip()
            ]
    kept: list[str] = []
    room = sum(map(len, lines)) + len(lines) if limit is None else limit
    for line in reversed(lines):
        role, _, text = line.partition(": ")
        if len(line) + 1 > room:
            tail = text[len(text) - max(room - len(role) - 4, 0) :]
            if tail:
                kept.append(f"{role}: …{tail}")
            break
        kept.append(line)
        room -= len(line) + 1
    return "<conversation>\n" + "\n".join(reversed(kept)) + "\n</conversation>"


def _lists_in(reply: str) -> Iterator[list[Any]]:
    """Every JSON list that stands in the reply, or in an object in it, in order."""
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_MAX_STARTS):
        starts = [at for at in (reply.find("[", position), reply.find("{", position)) if at >= 0]
        if not starts:
            return
        position = min(starts)
        try:
            value, end = decoder.raw_decode(reply, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        if isinstance(value, dict):
            value = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), [value])
        yield value
        position = end


def _candidate(entry: object) -> Candidate | None:
    if not isinstance(entry, dict):
        return None
    text, kind, importance = (
        entry.get("text"),
        entry.get("kind", "fact"),
        entry.get("importance", DEFAULT_IMPORTANCE),
    )
    if not isinstance(text, str) or not isinstance(kind, str):
        return None
    if isinstance(importance, bool) or not isinstance(importance, int | float) or math.isnan(importance):
        return None
    text = " ".join(text.split()).replace("\x00", "")
    if not text or len(text) > MAX_TEXT or len(text.split()) > MAX_WORDS:
        return None
    kind = kind.strip().lower()
    return Candidate(text, kind if kind in KINDS else "fact", min(1.0, max(0.0, float(importance))))
