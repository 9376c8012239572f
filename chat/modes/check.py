"""Comparing an answer with what is in memory: which memories, what the model is asked, and how its reply is read."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from chat.models import Message, ToolCall
from chat.prompting.context import room_beside_answer
from chat.prompting.labels import category_label, imported_label
from chat.prompting.text import cut_to, escape, prompt_text, tokens
from memories.judging.extraction.candidates import render_conversation
from memories.models import Memory, ReceiptItem
from memories.recalling.ranking import injection_threshold
from memories.recalling.recall import recall
from memories.usage import count_live
from memories.writing.drafts import UNSTORABLE
from memoryhub.llm.base import Capabilities, Speaker
from memoryhub.llm.base import Message as PromptMessage
from memoryhub.llm.output_parsing import MOST_REPAIRED, repaired_object
from workspaces.models import User
from workspaces.policy import Reach

MOST_MEMORIES = 12
PORTIONS, PORTION_LENGTH = 6, 120  # of the answer, each looked up on its own; the least characters of one
MOST_FINDINGS = 8
LONGEST_CORRECTION = 1000  # characters
_STARTS = 50
_MARKS = re.compile(r"[*_`#>~|]+")


@dataclass(frozen=True)
class Verdict:
    """``findings``: quote, memory_id, agrees of each. The correction is empty unless something differs."""

    findings: list[dict[str, object]]
    correction: str

    @property
    def differs(self) -> bool:
        return any(not found["agrees"] for found in self.findings)


def memories_beside(answer: Message, text: str, user: User, *, reach: Reach, now: datetime) -> list[Memory]:
    """What this answer can be held against: what it was given, what its tools found, and what its own words recall.

    The last are what it may have missed: a question about a restaurant does not recall that its asker is vegetarian.
    ``reach`` as for ``recall``, whatever the answer was given.
    """
    given = ReceiptItem.objects.filter(receipt__message_id=answer.public_id, used=True)
    ids = list(given.order_by("position").values_list("memory__public_id", flat=True))
    for found in ToolCall.objects.filter(message=answer).values_list("memory_ids", flat=True):
        ids += found
    rows = Memory.objects.visible_to(user).live(now).filter(public_id__in=ids)
    if not reach.personal:
        rows = rows.filter(owner=None)
    by_id = {memory.public_id: memory for memory in rows}
    chosen = {memory_id: by_id[memory_id] for memory_id in ids if memory_id in by_id}
    workspace = answer.chat.workspace
    live = count_live(workspace, user, personal=reach.personal, now=now)
    threshold = injection_threshold(settings.RECALL_THRESHOLD, live)
    agent = answer.chat.agent
    recalled = [
        recall(portion, workspace, user, settings.RECALL_LIMIT, agent=agent, reach=reach, now=now)
        for portion in _portions(text)
    ]
    scored = [item for each in recalled for item in each.items if item.score >= threshold]
    for item in sorted(scored, key=lambda item: -item.score):
        chosen.setdefault(item.memory.public_id, item.memory)
    return list(chosen.values())[:MOST_MEMORIES]


def _portions(text: str) -> list[str]:
    """The answer's paragraphs and list entries, short ones together, at most six."""
    portions: list[str] = []
    longest = max(PORTION_LENGTH, len(text) // PORTIONS)
    for line in filter(None, map(str.strip, text.splitlines())):
        if (portions and len(portions[-1]) + len(line) < longest) or len(portions) == PORTIONS:
            portions[-1] += f"\n{line}"
        else:
            portions.append(line)
    return portions


def build_check(
    question: str, answer: str, memories: Sequence[Memory], capabilities: Capabilities
) -> tuple[list[PromptMessage], int]:
    """What the model is asked, and with how many of the memories; 0 where not even one fits beside the answer."""
    room = room_beside_answer(capabilities) - tokens(prompt_text("check"))
    said = render_conversation([("user", cut_to(question, room // 4)), ("assistant", answer)], limit=None)
    room -= tokens(said)
    lines: list[str] = []
    for number, memory in enumerate(memories, start=1):
        label = [category_label(memory) or "memory", f"{memory.created_at:%Y-%m-%d}", imported_label(memory)]
        line = f"{number}. ({', '.join(filter(None, label))}) {escape(memory.content)}"
        room -= tokens(line)
        if room < 0:
            break
        lines.append(line)
    asked = "\n".join(["<memories>", *lines, "</memories>", said])
    prompt = [
        PromptMessage("system", prompt_text("check"), speaker=Speaker.SYSTEM),
        PromptMessage("user", asked, speaker=Speaker.MEMORY),
    ]
    return prompt, len(lines)


def read_verdict(reply: str, answer: str, memories: Sequence[Memory]) -> Verdict | None:
    """The model's reply, checked: None where it is not the JSON asked for, even repaired. What it says is
    never guessed at.

    A statement about a memory that was not shown is dropped; a quote that does not stand in the answer is not
    shown as one. A correction without anything that differs is none.
    """
    for value in _objects_in(reply):
        statements, correction = value.get("statements"), value.get("correction", "")
        if isinstance(statements, list) and isinstance(correction, str | None):
            break
    else:
        return None
    read = (_finding(entry, answer, memories) for entry in statements)
    findings = sorted(filter(None, read), key=lambda found: bool(found["agrees"]))[:MOST_FINDINGS]
    verdict = Verdict(findings, "")
    text = UNSTORABLE.sub("", correction or "").strip()[:LONGEST_CORRECTION]
    return Verdict(findings, text) if verdict.differs else verdict


def _finding(entry: object, answer: str, memories: Sequence[Memory]) -> dict[str, object] | None:
    if not isinstance(entry, dict):
        return None
    number, agrees, quote = entry.get("memory"), entry.get("agrees"), entry.get("quote", "")
    if not isinstance(agrees, bool) or not isinstance(number, int) or not 1 <= number <= len(memories):
        return None
    quote = " ".join(html.unescape(quote).split()) if isinstance(quote, str) else ""
    stands = bool(_bare(quote)) and _bare(quote) in _bare(answer)
    quote = UNSTORABLE.sub("", quote)[:400] if stands else ""
    return {"quote": quote, "memory_id": memories[number - 1].public_id, "agrees": agrees}


def _bare(text: str) -> str:
    """Without what Markdown and line breaks make of the same words."""
    return " ".join(_MARKS.sub("", html.unescape(text)).casefold().split()).strip(" .…\"'“”")


def _objects_in(reply: str) -> Iterator[dict[str, object]]:
    decoder = json.JSONDecoder()
    position = repaired = 0
    for _ in range(_STARTS):
        position = reply.find("{", position)
        if position < 0:
            return
        try:
            value, end = decoder.raw_decode(reply, position)
        except (ValueError, RecursionError):
            repaired += 1
            if repaired > MOST_REPAIRED or not (read := repaired_object(reply, position)):
                position += 1
                continue
            value, end = read
        yield value
        position = end
