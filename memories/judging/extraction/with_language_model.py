"""Extraction of candidates for memories by a language model: the prompts, the parsing and the checks of its reply."""

import functools
import html
import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from memories.judging.duplicates import normalise
from memories.judging.extraction.grounding import names_in, says_nothing
from memoryhub.llm.errors import ModelError
from memoryhub.llm.output_parsing import MOST_REPAIRED, repaired_object, whole_entries, without_thoughts

MAX_CANDIDATES = 8
MAX_WORDS = 25
MAX_TEXT = 400  # characters; a longer text is no statement
MAX_CONVERSATION = 12_000  # characters of a conversation that a model receives
KINDS = ("preference", "fact", "instruction", "decision", "event")
DEFAULT_IMPORTANCE = 0.5

_MAX_REPLY = 50_000
_MAX_STARTS = 200
MOST_NAMES = 3  # maximum number of names per statement
LONGEST_NAME = 60  # characters
_LIST = re.compile(r"\[\s*[{\]\"]")
_TEXTS = ("text", "content", "memory")  # the names that models use for the statement
_IMPORTANCES = {"low": 0.3, "medium": DEFAULT_IMPORTANCE, "high": 0.8}
_BETWEEN = re.compile(r"[\s,]*")  # separates two objects of a list without brackets


@dataclass(frozen=True)
class Candidate:
    """A lasting statement that may become a memory. `details` says how it was found, and is stored with its source."""

    text: str
    kind: str = "fact"
    importance: float = DEFAULT_IMPORTANCE
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Cut:
    """The complete entries of a JSON list that was cut off."""

    entries: list[Any]


def parse_candidates(reply: str, unread: Callable[[], None] | None = None) -> list[Candidate]:
    """Return the candidates in a model's reply.

    They are read from the last JSON list of {text, kind, importance} or, if there is none, of strings. The list may be
    in a code fence, in prose or in an object. Malformed JSON is repaired, and of a list that was cut off the complete
    entries are used. If there is no list, or no valid entry in it, the result is empty and ``unread`` is called.
    """
    lists = list(_lists_in(without_thoughts(reply)[:_MAX_REPLY]))
    records = next((entries for entries in reversed(lists) if not _is_strings(entries)), None)
    if records is None and lists:
        records = [{"text": text} for text in lists[-1]]
    candidates = keep_best([candidate for entry in records or () if (candidate := _candidate(entry))])
    if unread and (records is None or (records and not candidates)):
        unread()
    return candidates


def keep_best(candidates: Iterator[Candidate] | Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates without repetitions and at most the eight most important, in their given order."""
    unique: dict[str, Candidate] = {}
    for candidate in candidates:
        key = normalise(candidate.text)
        if key not in unique or candidate.importance > unique[key].importance:
            unique[key] = candidate
    best = sorted(unique.values(), key=lambda candidate: -candidate.importance)[:MAX_CANDIDATES]
    return [candidate for candidate in unique.values() if candidate in best]


def one_line(text: str) -> str:
    """Return the text on one line with angle brackets escaped, for a prompt."""
    return html.escape(" ".join(text.split()), quote=False)


def render_conversation(
    messages: Sequence[tuple[str, str]], limit: int | None = MAX_CONVERSATION, *, tag: str = "conversation"
) -> str:
    """Return the last ``limit`` characters of (role, text) messages as a block of text for a prompt.

    Every line begins with the role of its message, and angle brackets are escaped, so a text can neither imitate
    another message nor end the block.
    """
    lines: list[str] = []
    for role, text in messages:
        if role in ("user", "assistant"):
            stripped = filter(None, map(str.strip, text.splitlines()))
            lines += [f"{role}: {html.escape(line, quote=False)}" for line in stripped]
    last_lines: list[str] = []
    room = sum(map(len, lines)) + len(lines) if limit is None else limit
    for line in reversed(lines):
        role, _, text = line.partition(": ")
        if len(line) + 1 > room:
            tail = text[len(text) - max(room - len(role) - 4, 0) :]
            if tail:
                last_lines.append(f"{role}: …{tail}")
            break
        last_lines.append(line)
        room -= len(line) + 1
    return f"<{tag}>\n" + "\n".join(reversed(last_lines)) + f"\n</{tag}>"


def _lists_in(reply: str) -> Iterator[list[Any]]:
    """Yield the lists of objects or of strings, and empty lists, in the reply, also those inside an object.

    Consecutive objects form a list too, unless a list before them was cut off.
    """
    row: list[Any] = []
    is_cut, ends = False, 0
    for value, start, end in _values_in(reply):
        if isinstance(value, _Cut):
            is_cut, row = True, []
            yield value.entries or [None]  # an empty list would mean that there is nothing to remember
        elif isinstance(value, list):
            row = []
            if not value or _is_strings(value) or any(isinstance(entry, dict) for entry in value):
                yield value
        else:
            lists = [inner for inner in value.values() if isinstance(inner, list)]
            objects = [inner for inner in value.values() if isinstance(inner, dict) and _text_of(inner)]
            has_text = any(name in value for name in _TEXTS) and not objects
            if len(lists) == 1 and not has_text:
                row = []
                yield lists[0]
            elif objects and len(objects) == len(value):
                row = []
                yield objects
            elif has_text and not is_cut:
                follows = bool(row) and _BETWEEN.fullmatch(reply, ends, start)
                row = [*row, value] if follows else [value]
                yield row
        ends = end


def _values_in(reply: str) -> Iterator[tuple[Any, int, int]]:
    """Yield each JSON list or object in the reply, repaired if necessary, with its start and end."""
    decoder = json.JSONDecoder()
    position = repaired = 0
    for _ in range(_MAX_STARTS):
        starts = [at for at in (reply.find("[", position), reply.find("{", position)) if at >= 0]
        if not starts:
            return
        position = min(starts)
        try:
            value, end = decoder.raw_decode(reply, position)
        except (ValueError, RecursionError):
            repaired += 1
            if repaired > MOST_REPAIRED:
                return
            if _LIST.match(reply, position):
                entries, list_end = whole_entries(reply, position)
                value, end = (_Cut(entries), position + 1) if list_end is None else (entries, list_end)
            elif reply[position] == "{" and (read := repaired_object(reply, position)) and _text_of(read[0]):
                value, end = read
            else:
                position += 1
                continue
        yield value, position, end
        position = end


def _is_strings(entries: list[Any]) -> bool:
    return bool(entries) and all(isinstance(entry, str) for entry in entries)


def _text_of(entry: dict[str, Any]) -> object:
    return next((entry[name] for name in _TEXTS if name in entry), None)


def _candidate(entry: object) -> Candidate | None:
    if not isinstance(entry, dict):
        return None
    text, kind = _text_of(entry), entry.get("kind")
    importance = _number(entry.get("importance"))
    if not isinstance(text, str) or not isinstance(kind, str | None) or importance is None:
        return None
    text = " ".join(text.split()).replace("\x00", "")
    if not re.search(r"\w", text) or len(text) > MAX_TEXT or len(text.split()) > MAX_WORDS:
        return None
    kind = (kind or "").strip().lower()
    about = _about(entry.get("about"), text)
    return Candidate(
        text,
        kind if kind in KINDS else "fact",
        min(1.0, max(0.0, importance)),
        {"about": about} if about else {},
    )


def _about(names: object, text: str) -> list[str]:
    """Return the names in a model's reply, which can be any JSON value, that occur in ``text``, at most MOST_NAMES."""
    values = names if isinstance(names, list) else []
    words = dict.fromkeys(" ".join(name.split()) for name in values if isinstance(name, str))
    return [name for name in words if 1 < len(name) <= LONGEST_NAME and name in text][:MOST_NAMES]


def _number(value: object) -> float | None:
    """Return the importance in a model's reply as a number, or None if it is none. It may be outside 0 to 1.

    Null gives DEFAULT_IMPORTANCE. The words low, medium and high, and numbers in a string, are accepted.
    """
    if value is None:
        return DEFAULT_IMPORTANCE
    if isinstance(value, str):
        if (word := value.strip().lower()) in _IMPORTANCES:
            return _IMPORTANCES[word]
        try:
            value = float(value.strip().replace(",", "."))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    return float(value)


Complete = Callable[[list[dict[str, str]]], str]

_PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
MAX_EARLIER = 4_000  # characters of the messages before a turn in the prompt
_MAX_SYNTHESIZED = 12_000  # characters of a message to rewrite
_FENCE = re.compile(r"^```\w*\s*|\s*```$")
_LABEL = re.compile(
    r"^(?:statement|memory|rewritten(?: statement)?|answer|output|result)\s*:\s*", re.IGNORECASE
)
_REFUSAL = re.compile(
    r"^(?:i['\u2019]?m sorry|i am sorry|sorry|as an ai|i can(?:no|['\u2019])t|i am unable|i['\u2019]?m "
    r"unable|here is|here['\u2019]s|sure|"
    r"certainly|none|null|n/a|no statement)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True)
class Around:
    """The context of a turn: earlier messages, the date, the speaker's name, and memories saved from the turn."""

    earlier: Sequence[tuple[str, str]] = ()
    said_on: date | None = None
    speaker: str = ""
    saved: Sequence[str] = ()


def extract_with_model(
    complete: Complete,
    messages: Sequence[tuple[str, str]],
    around: Around | None = None,
    unread: Callable[[], None] | None = None,
) -> list[Candidate]:
    """Return the statements about the user that a model finds in the (role, text) messages.

    If the reply is not the required JSON, the result is empty and ``unread`` is called. Statements copied from the
    prompt's examples are dropped. If the user wrote only courtesies, the model is not called.
    """
    around = around or Around()
    user_texts = [text for role, text in messages if role == "user" and text.strip()]
    if all(says_nothing(text, around.earlier) for text in user_texts):
        return []
    prompt = _prompt("extract")
    candidates = parse_candidates(_reply(complete, "extract", _prompt_data(messages, around)), unread)
    known = "\n".join(text for _role, text in (*around.earlier, *messages))
    return [candidate for candidate in candidates if not _is_example(candidate.text, prompt, known)]


def _reply(complete: Complete, prompt: str, data: str) -> str:
    return complete([{"role": "system", "content": _prompt(prompt)}, {"role": "user", "content": data}])


def _prompt_data(messages: Sequence[tuple[str, str]], around: Around) -> str:
    """Return the turn and its context as data for the prompt. The context is shortened to the space the turn leaves."""
    turn = render_conversation(messages)
    parts = [f"Today is {around.said_on:%A}, {around.said_on.isoformat()}."] if around.said_on else []
    if around.speaker:
        parts.append(f"The user is called {one_line(around.speaker)}.")
    room = min(MAX_EARLIER, MAX_CONVERSATION - len(turn))
    if around.earlier and room > 100:
        parts.append(render_conversation(around.earlier, room, tag="earlier"))
    if around.saved:
        lines = "\n".join(f"- {one_line(text)}" for text in around.saved)
        parts.append(f"<saved>\n{lines}\n</saved>")
    return "\n".join([*parts, turn])


def _is_example(text: str, prompt: str, conversation: str) -> bool:
    """Return whether a statement has a name from the prompt's examples that does not occur in the conversation."""
    copied = names_in(text) & _names_of_examples(prompt)
    return bool(copied and copied - {word.casefold() for word in _WORD.findall(conversation)})


@functools.cache
def _names_of_examples(prompt: str) -> frozenset[str]:
    return frozenset(names_in(prompt[prompt.index("Examples") :]))


def distil_with_model(
    complete: Complete, text: str, unread: Callable[[], None] | None = None
) -> list[Candidate]:
    """Return the statements that a model finds in a text no person wrote, such as a summary or a tool result.

    ``unread`` is called if its reply is not the required JSON. The result is then empty.
    """
    if not text.strip():
        return []
    return parse_candidates(_reply(complete, "distil", render_conversation([("assistant", text)])), unread)


def synthesize(complete: Complete, text: str) -> str:
    """Return a message rewritten by the model as one statement of at most 25 words, or unchanged if that fails."""
    return _rewritten(complete, "synthesize", [("user", text[:_MAX_SYNTHESIZED])]) or text


def propose(complete: Complete, messages: Sequence[tuple[str, str]]) -> str:
    """Return one statement worth remembering from a question and its answer, given as (role, text), or ""."""
    return _rewritten(complete, "propose", messages)


def _rewritten(complete: Complete, prompt: str, messages: Sequence[tuple[str, str]]) -> str:
    text = "\n".join(text for _role, text in messages)
    if not text.strip():
        return ""
    reply = _reply(complete, prompt, render_conversation(messages))
    statement = _LABEL.sub("", _FENCE.sub("", reply.strip()).strip()).strip().strip("\"'“”").strip()
    absurd = (
        not statement
        or "\n" in statement
        or len(statement.split()) > MAX_WORDS
        or statement[0] in "{[<"
        or _REFUSAL.match(statement)
        or not set(_WORD.findall(statement.casefold())) & set(_WORD.findall(text.casefold()))
    )
    return "" if absurd else statement


@functools.cache
def _prompt(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


logger = logging.getLogger(__name__)


def statement_of(text: str, complete: Complete | None) -> str | None:
    """Return the text rewritten by the model as one statement, or None if there is no model or it fails."""
    if complete is None:
        return None
    try:
        statement = synthesize(complete, text)
    except ModelError as error:
        logger.warning("A text to remember was not rewritten: %s", error.code)
        return None
    return None if statement == text else statement
