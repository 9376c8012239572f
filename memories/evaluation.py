"""How good recall is on questions whose answers are known: hit@k, recall@k, MRR and the time it takes."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection
from pgvector import HalfVector

from memories import words
from memories.drafts import Draft, cut_at_word
from memories.gate import save_memory
from memories.recall import recall
from memoryhub.llm.registry import get_embedder
from workspaces.models import User, Workspace

BEFORE, AFTER = 2, 1  # the neighbours a remembered message is stored with


@dataclass(frozen=True)
class Conversation:
    """One line of the file: what was said, and questions with the ids of the memories that answer them."""

    name: str
    memories: list[dict[str, Any]]
    queries: list[dict[str, Any]]


class Malformed(Exception):
    """The file is not what it should be; the message names the line and what is wrong with it."""


@dataclass
class Score:
    """What one ranking found. ``ranks``: for each query the 1-based places of its relevant memories that were found."""

    seconds: list[float] = field(default_factory=list)
    ranks: list[list[int]] = field(default_factory=list)
    relevant: list[int] = field(default_factory=list)

    def hit(self, k: int) -> float:
        return _mean([any(rank <= k for rank in ranks) for ranks in self.ranks])

    def recall(self, k: int) -> float:
        pairs = zip(self.ranks, self.relevant, strict=True)
        return _mean([sum(rank <= k for rank in ranks) / total for ranks, total in pairs])

    def mrr(self) -> float:
        return _mean([1 / min(ranks) if ranks else 0.0 for ranks in self.ranks])

    def milliseconds(self, percentile: float) -> float:
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(percentile * len(ordered)))] if ordered else 0.0


def read_conversations(path: Path) -> Iterator[Conversation]:
    """One conversation a line: ``{"name", "memories": [{"id", "text", "at", "source"?}], "queries": [{"text",
    "relevant"}]}``. Raises Malformed, naming the line."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                data = json.loads(line)
                memories, queries = list(data["memories"]), list(data["queries"])
                known = {memory["id"] for memory in memories}
                for memory in memories:
                    datetime.fromisoformat(memory["at"])
                    if not isinstance(memory["text"], str):
                        raise ValueError("a memory's text must be text")
                for query in queries:
                    if not set(query["relevant"]) <= known or not query["relevant"]:
                        raise ValueError("a query's relevant ids must be among the memories'")
                    if not isinstance(query["text"], str):
                        raise ValueError("a query's text must be text")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise Malformed(f"line {number}: {type(error).__name__}: {error}") from None
            yield Conversation(str(data.get("name", number)), memories, queries)


def load_conversation(
    conversation: Conversation, workspace: Workspace, user: User, progress: Callable[[], None]
) -> dict[int, str]:
    """Store every memory through the gate, near-duplicates too; the file's id by database key.

    A memory's ``source`` is its excerpt, as capture stores it. One without is a message, remembered as it was said:
    its excerpt is its neighbours, two before and one after.
    """
    ids = {}
    texts = [memory["text"] for memory in conversation.memories]
    for number, memory in enumerate(conversation.memories):
        neighbours = "\n".join(texts[max(0, number - BEFORE) : number + AFTER + 1])
        draft = Draft(
            content=cut_at_word(memory["text"]),
            workspace=workspace,
            author=user,
            source_excerpt=memory.get("source", neighbours),
            source_type="import",
        )
        said_at = datetime.fromisoformat(memory["at"])
        ids[save_memory(draft, by=user, now=said_at, dedupe="create").memory.pk] = memory["id"]
        progress()
    return ids


def evaluate(
    conversation: Conversation,
    ids: dict[int, str],
    workspace: Workspace,
    user: User,
    ranking: str,
    depth: int,
    score: Score,
    progress: Callable[[], None],
) -> None:
    """Ask every question once. The question's moment is the day after the last thing that was said."""
    now = max(datetime.fromisoformat(memory["at"]) for memory in conversation.memories) + timedelta(days=1)
    for query in conversation.queries:
        began = time.perf_counter()
        found = _ask(query["text"], workspace, user, ranking, depth, now)
        score.seconds.append(time.perf_counter() - began)
        relevant = set(query["relevant"])
        score.ranks.append([rank for rank, pk in enumerate(found, 1) if ids.get(pk) in relevant])
        score.relevant.append(len(relevant))
        progress()


def _ask(
    text: str, workspace: Workspace, user: User, ranking: str, depth: int, now: datetime
) -> Sequence[int]:
    if ranking == "bm25":
        params = {"workspace": workspace.pk, "user": user.pk, "places": [workspace.pk, -user.pk]}
        return list(words.bm25(text, params, depth))
    if ranking == "vector":
        return _by_vector(text, workspace, depth)
    # No threshold: the question is what order a ranking gives, not where it stops.
    found = recall(text, workspace, user, limit=depth, ranking=ranking, threshold=-10.0, now=now)
    return [item.memory.pk for item in found.items]


def _by_vector(text: str, workspace: Workspace, depth: int) -> list[int]:
    """The baseline others ship: the statement's own vector, nearest first, nothing else."""
    embedder = get_embedder()
    if embedder is None:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT memory_id FROM memories_memoryembedding WHERE place = %s AND live AND model = %s "
            "ORDER BY coalesce(statement, embedding) <=> %s LIMIT %s",
            [workspace.pk, embedder.name, HalfVector(embedder.embed([text])[0]).to_text(), depth],
        )
        return [row[0] for row in cursor.fetchall()]


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0
