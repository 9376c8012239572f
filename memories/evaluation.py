"""Evaluation of recall on questions with known answers: hit@k, recall@k, MRR and latency."""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext as _
from pgvector import HalfVector

from memories.indexing import MEMORIES
from memories.recalling.question import read_question
from memories.recalling.ranking import WEIGHTS, Weights
from memories.recalling.recall import recall
from memories.writing.bulk_save import save_cleaned
from memories.writing.drafts import Draft, cut_at_word
from memoryhub.errors import Invalid
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.registry import get_embedder
from workspaces.data_policy import DataPolicy
from workspaces.index.embedding import embed_query, embed_texts
from workspaces.index.hybrid_search import bm25, search_area
from workspaces.models import User, Workspace

BEFORE, AFTER = 2, 1  # number of neighbouring messages stored with a message
BATCH = 64  # memories embedded and stored at a time


@dataclass(frozen=True)
class Conversation:
    """A line of the evaluation file: memories, and queries with the ids of the memories that answer them."""

    name: str
    memories: list[dict[str, Any]]
    queries: list[dict[str, Any]]


class Malformed(Exception):
    """Raised for an invalid line of the evaluation file. The message names the line and the mistake."""


@dataclass(frozen=True)
class Line:
    """A row of the result table: a ranking with its weights, or a baseline (``bm25``, ``vector``)."""

    name: str
    ranking: str
    weights: Weights = WEIGHTS
    excerpts: bool = True  # whether the memories were stored with their excerpts


@dataclass
class Score:
    """The results of one row of the result table. Each list has one entry per query.

    ``ranks`` lists the ranks, counted from 1, at which memories that answer the query were found. ``relevant`` is the
    number of all memories that answer it.
    """

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


def milliseconds(seconds: Sequence[float], share: float) -> float:
    """Return the quantile ``share``, such as 0.95, of durations in seconds; 0 if there are none."""
    ordered = sorted(seconds)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def read_conversations(path: Path) -> Iterator[Conversation]:
    """Yield the conversations of a JSON Lines file, skipping blank lines.

    Each line is ``{"name", "memories": [{"id", "text", "at", "source"?}], "queries": [{"text", "relevant"}]}``. Raises
    Malformed, naming the line, if a line is invalid.
    """
    with path.open(encoding="utf-8") as lines:
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _conversation(json.loads(line), number)
        except UnicodeDecodeError:
            raise Malformed(_("Line %s or a later one is not UTF-8 text.") % (number + 1)) from None
        except json.JSONDecodeError as error:
            raise Malformed(
                _("Line %(number)s is not JSON: %(error)s") % {"number": number, "error": error}
            ) from None
        except ValueError as error:
            raise Malformed(_("Line %(number)s: %(error)s") % {"number": number, "error": error}) from None


def _conversation(data: Any, number: int) -> Conversation:
    """Validate a parsed line of the file. Raises ValueError saying what is wrong."""
    memories, queries = _objects(data, "memories"), _objects(data, "queries")
    known: set[str] = set()
    for memory in memories:
        identifier = _text(memory, "id", "a memory")
        _text(memory, "text", "a memory")
        if identifier in known:
            raise ValueError(f"two memories have the id {identifier!r}")
        known.add(identifier)
        said_at = _text(memory, "at", "a memory")
        if datetime.fromisoformat(said_at).tzinfo is None:
            raise ValueError(f"a memory's at has no time zone: {said_at!r}")
        if "source" in memory:
            _text(memory, "source", "a memory", may_be_blank=True)
    for query in queries:
        _text(query, "text", "a query")
        relevant = query.get("relevant")
        if not isinstance(relevant, list) or not relevant:
            raise ValueError("a query's relevant must be a list of memories' ids, not empty")
        if unknown := [identifier for identifier in relevant if identifier not in known]:
            raise ValueError(f"a query's relevant id {unknown[0]!r} is no memory's")
    return Conversation(str(data.get("name", number)), memories, queries)


def _objects(data: Any, name: str) -> list[dict[str, Any]]:
    entries = data.get(name) if isinstance(data, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(item, dict) for item in entries):
        raise ValueError(f"{name} must be a list of objects, not empty")
    return entries


def _text(item: dict[str, Any], name: str, whose: str, *, may_be_blank: bool = False) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not (may_be_blank or value.strip()):
        raise ValueError(f"{whose}'s {name} must be text")
    return value


def load_conversation(
    conversation: Conversation,
    workspace: Workspace,
    user: User,
    progress: Callable[[], None],
    *,
    excerpts: bool = True,
) -> dict[int, str]:
    """Store the memories of a conversation in the workspace. Return each one's id in the file by its primary key.

    Near-duplicates are stored as well. A memory's ``source`` is stored as its source excerpt. Without a ``source``, the
    memories before and after it are stored instead. Memories that are refused, such as those with a credential, are
    left out and cannot be found. ``progress`` is called after each memory.
    """
    ids: dict[int, str] = {}
    drafts = cleaned_drafts(conversation, workspace, user, excerpts=excerpts)
    while batch := list(islice(drafts, BATCH)):
        texts = [(draft.content, draft.source_excerpt) for _, _, draft in batch]
        vectors = embed_texts(texts, [DataPolicy.here(workspace)] * len(batch))
        # One call of save_cleaned stores memories of one time.
        for said_at, part in groupby(enumerate(batch), key=lambda numbered: numbered[1][1]):
            numbers, parts = zip(*part, strict=True)
            part_vectors = [vectors[number] if vectors else None for number in numbers]
            saved = save_cleaned(
                [draft for _, _, draft in parts], part_vectors, by=user, now=said_at, dedupe="create"
            )
            for (known_as, _said, _draft), stored in zip(parts, saved, strict=True):
                ids[stored.memory.pk] = known_as
                progress()
    return ids


def cleaned_drafts(
    conversation: Conversation, workspace: Workspace, user: User, *, excerpts: bool = True
) -> Iterator[tuple[str, datetime, Draft]]:
    """Yield each memory of the file as (id, time, cleaned draft)."""
    texts = [memory["text"] for memory in conversation.memories]
    for number, memory in enumerate(conversation.memories):
        neighbours = "\n".join(texts[max(0, number - BEFORE) : number + AFTER + 1])
        draft = Draft(
            content=cut_at_word(memory["text"]),
            workspace=workspace,
            author=user,
            source_excerpt=memory.get("source", neighbours) if excerpts else "",
            source_type="import",
        )
        with suppress(Invalid):  # refused, as in every other way of saving
            yield memory["id"], datetime.fromisoformat(memory["at"]), draft.cleaned()


def evaluate(
    conversation: Conversation,
    ids: dict[int, str],
    workspace: Workspace,
    user: User,
    scores: Mapping[Line, Score],
    depth: int,
    progress: Callable[[], None],
) -> list[float]:
    """Run every query once for each line of the result table, and add the results to ``scores``.

    ``depth`` is the number of memories to recall. Return how many seconds the embedding of each query took; this time
    is not included in the scores. Recall runs as if it were one day after the last memory.
    """
    now = max(datetime.fromisoformat(memory["at"]) for memory in conversation.memories) + timedelta(days=1)
    embedding = []
    for query in conversation.queries:
        began = time.perf_counter()
        _embed_ahead(query["text"], now)
        embedding.append(time.perf_counter() - began)
        relevant = set(query["relevant"])
        for line, score in scores.items():
            began = time.perf_counter()
            ranked_ids = _ask(query["text"], workspace, user, line, depth, now)
            score.seconds.append(time.perf_counter() - began)
            score.ranks.append([rank for rank, pk in enumerate(ranked_ids, 1) if ids.get(pk) in relevant])
            score.relevant.append(len(relevant))
        progress()
    return embedding


def _embed_ahead(text: str, now: datetime) -> None:
    """Embed the query, so that the time of the row that is run first does not include the embedding."""
    embedder = get_embedder()
    if embedder is not None:
        with suppress(EmbedderError):  # recall itself reports that it had no embedder
            embedder.embed_question([text, read_question(text, now).gist])


def _ask(text: str, workspace: Workspace, user: User, line: Line, depth: int, now: datetime) -> Sequence[int]:
    if line.ranking == "bm25":
        where = search_area(workspace.pk, user.pk)
        return list(bm25(MEMORIES, text, where.params, depth)) if where else []
    if line.ranking == "vector":
        return _by_vector(text, workspace, user, depth)
    # No threshold, because the order of a ranking is measured, not its cut-off. The transaction is rolled back,
    # so that a recall for one line does not count as an access for the next.
    with transaction.atomic():
        recall_result = recall(
            text,
            workspace,
            user,
            limit=depth,
            ranking=line.ranking,
            threshold=-10.0,
            now=now,
            weights=line.weights,
            policy=DataPolicy.here(workspace),
        )
        transaction.set_rollback(True)
    return [item.memory.pk for item in recall_result.items]


def _by_vector(text: str, workspace: Workspace, user: User, depth: int) -> list[int]:
    """Return the keys of the memories whose vectors are nearest to the query's; none if there is no embedder."""
    where = search_area(workspace.pk, user.pk)
    embedded = embed_query([text], where.active, local_only=where.local_only) if where else None
    if embedded is None:
        return []
    model, vectors = embedded
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT ref FROM workspaces_passagevector WHERE place = %s AND kind = 1 AND live AND model = %s "
            "ORDER BY coalesce(statement, embedding) <=> %s LIMIT %s",
            [workspace.pk, model, HalfVector(vectors[0]).to_text(), depth],
        )
        return [row[0] for row in cursor.fetchall()]


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0
