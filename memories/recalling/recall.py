"""Recall, which finds the memories relevant to a query, and receipts, which record what was recalled for an answer."""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Prefetch, Subquery, prefetch_related_objects
from django.utils.translation import gettext as _

from memories.models import Memory, Receipt, ReceiptItem
from memories.models.recall import Strength
from memories.recalling import overview, relevance
from memories.recalling.loading import mark_accessed
from memories.recalling.overview import Overview
from memories.recalling.question import read_question
from memories.recalling.ranked_search import RankedSearch, Recalled, Scored, texts_embedded_for
from memories.recalling.ranking import RANKINGS, WEIGHTS, Weights
from memories.recalling.relevance import Relevance
from memories.recalling.shared_words import mentioned
from memoryhub.database.replicas import read
from memoryhub.errors import Invalid, NotFound
from memoryhub.llm.bundled_embedder import MULTILINGUAL
from memoryhub.monitoring import metrics, tracing
from workspaces.data_policy import Caller, DataPolicy
from workspaces.index import embedding
from workspaces.index.hybrid_search import area_within
from workspaces.models import Agent, User, Workspace

logger = logging.getLogger(__name__)
MAX_LIMIT = 50
QUERY_LENGTH = 4000  # characters of a query that are embedded and matched
SEMANTIC_THRESHOLD = 0.30  # default minimum cosine of the semantic ranking


@dataclass(frozen=True)
class Recall:
    items: list[Recalled] = field(default_factory=list)
    ranking: str = "hybrid"
    degraded: str = ""  # why recall fell back to words, empty when it did not
    withheld: list[Recalled] = field(default_factory=list)  # personal memories that ``policy`` excluded
    search: RankedSearch | None = None  # for loading more memories; None if nothing was found
    overview: Overview | None = None  # set if the items are an overview

    @property
    def more(self) -> int:
        """Return how many further memories the overview has."""
        return max(0, self.overview.total - len(self.items)) if self.overview else 0


@tracing.span("memoryhub.recall")
def recall(
    query: str,
    workspace: Workspace,
    user: User,
    limit: int = 5,
    offset: int = 0,
    ranking: str = "hybrid",
    threshold: float | None = None,
    weights: Weights = WEIGHTS,
    exact: bool = False,
    agent: Agent | None = None,
    *,
    policy: DataPolicy,
    now: datetime,
    withheld: int = 0,
    floor: bool = False,
    noted: bool = True,
    as_of: datetime | None = None,
    lines: int = 0,
) -> Recall:
    """Return the memories that are relevant to the query and that the user may see, ranked, with their scores.

    ``agent`` includes the memories of that assistant. ``limit`` is at most 50. A blank query or a limit below 1 returns
    nothing and embeds nothing. Scores below ``threshold`` are left out; the default is SEMANTIC_THRESHOLD for
    ``semantic`` and none for other rankings. Other ``weights``, and ``exact`` (without an index), are for measuring.

    ``policy`` says who will read the results, and whether they leave this machine. If personal memories are left out
    only because other people read the results, up to ``withheld`` of them are in ``Recall.withheld``, for the user.

    ``floor`` leaves out memories that are not relevant, other than those found by words alone. For a query for an
    overview, which only the bundled embedder recognizes, up to ``lines`` memories of it are returned from ``offset``.

    Memories that are no longer valid come last and are not relevant, unless the query asks about the past; where
    relevance is unknown, they are left out. ``as_of`` recalls the memories that were valid at that time. ``noted``
    marks the recalled memories as accessed.

    If the embedder or the vector search fails, only words are searched, and ``Recall.degraded`` says why. Raises
    NotFound if the user is not a member, and Invalid for an unknown ranking.
    """
    if ranking not in RANKINGS:
        raise Invalid(fields={"ranking": _("must be one of %s") % ", ".join(RANKINGS)})
    where = area_within(replace(policy, personal=True), workspace, user, agent)
    withheld = 0 if policy.personal or not where.personal else withheld
    where = replace(where, personal=where.personal and policy.personal)
    query = _clean_query(query)
    if not query or limit < 1:
        return Recall(ranking=ranking)
    began, until = time.perf_counter(), offset + min(limit, MAX_LIMIT)
    search = RankedSearch(query, workspace, user, agent, where, now, until, weights, exact, as_of)
    recall_result = read(
        user.pk, lambda: _found(search, ranking, threshold, slice(offset, until), floor, withheld, lines)
    )
    if noted:
        mark_accessed([item.memory for item in recall_result.items], now)
    _count(recall_result, time.perf_counter() - began)
    return recall_result


def find_listed(
    query: str,
    workspace: Workspace,
    user: User,
    *,
    limit: int = MAX_LIMIT,
    agent: Agent | None = None,
    policy: DataPolicy,
    now: datetime,
) -> list[Recalled]:
    """Return the memories for a list that a person searches, best first. They are not marked as accessed."""
    how: dict[str, Any] = {"limit": limit, "agent": agent, "policy": policy, "now": now}
    recall_result = recall(query, workspace, user, noted=False, **how)
    if recall_result.degraded:
        return recall_result.items
    return [item for item in recall_result.items if relevance.is_shown(item.score, item.relevance)]


def _found(
    search: RankedSearch,
    ranking: str,
    threshold: float | None,
    part: slice,
    floor: bool,
    withheld: int,
    lines: int,
) -> Recall:
    scored, degraded = _ranked_above(search, ranking, threshold)
    first = scored[: relevance.LOOKED_AT]
    judged = search.judge(first)
    if not judged:
        scored = search.holding(scored)
    else:
        parts = dict(first)
        order = relevance.in_order({key: sum(each.values()) for key, each in first}, judged)
        scored = [(key, parts[key]) for key in order] + scored[relevance.LOOKED_AT :]
        shown = slice(part.start, part.start + lines)
        if lines and (new_overview := _overview(search, scored, judged, shown)):
            return new_overview
        if part.stop > relevance.LOOKED_AT:
            judged = search.judge(scored[: part.stop]) | judged
    items = search.load(scored[part], judged)
    if floor and not degraded:
        # Programs and models search for a single word as people do in a list: a name, a subject.
        passes = relevance.is_shown if relevance.is_one_word(search.query) else relevance.is_found
        items = [item for item in items if passes(item.score, item.relevance)]
    own = search.own(ranking, degraded, withheld) if withheld else []
    return Recall(items, ranking, degraded, own, search)


def _overview(
    search: RankedSearch, scored: list[Scored], judged: Mapping[int, Relevance], part: slice
) -> Recall | None:
    """Return the overview that the query asks for, or None, also about the past or a topic without relevant memory."""
    is_long = len(search.query) > overview.LONGEST_MESSAGE
    if search.asked is None or search.as_of is not None or search.asks_past or is_long:
        return None
    in_doubt = any(each.value >= relevance.STRONG for each in judged.values())
    kind = overview.kind_of(search.asked[MULTILINGUAL], in_doubt=in_doubt)
    if not kind:
        return None
    if kind == overview.TOPIC:
        answers = {key for key, each in judged.items() if each.value >= overview.TOPIC_RELEVANCE}
        if not answers:
            return None
        vectors, mean = search.multilingual_vectors(key for key, _ in scored)
        keys, total = overview.of_topic(search.asked[MULTILINGUAL], vectors, mean, answers), 0
    else:
        keys, total = overview.of_everything(
            kind,
            search.workspace,
            search.user,
            search.agent,
            search.where,
            [key for key, each in judged.items() if each.value >= settings.RECALL_THRESHOLD],
            search.now,
        )
    parts = dict(scored)
    items = search.load([(key, parts.get(key, {})) for key in keys[part]], judged)
    if not items:
        return None
    items = [replace(item, is_brief=True) for item in items]
    return Recall(items, search=search, overview=Overview(kind, max(0, total - part.start)))


def _count(recall_result: Recall, seconds: float) -> None:
    ranking, degraded, items = recall_result.ranking, bool(recall_result.degraded), len(recall_result.items)
    metrics.count_recall(ranking, degraded, seconds)
    logger.debug("%s found by %s in %.1f ms", items, ranking, seconds * 1000)
    tracing.add_attributes(
        {"memoryhub.ranking": ranking, "memoryhub.degraded": degraded, "memoryhub.items": items}
    )


def _ranked_above(search: RankedSearch, ranking: str, threshold: float | None) -> tuple[list[Scored], str]:
    """Return the memories that score ``threshold`` or more, best first, and why only words were searched, or ""."""
    if threshold is None and ranking == "semantic":
        threshold = SEMANTIC_THRESHOLD
    scored, degraded = search.ranked(ranking)
    says_something = ranking == "hybrid" or not degraded  # a threshold of cosines does not apply to words
    if threshold is not None and says_something:
        scored = [(pk, parts) for pk, parts in scored if sum(parts.values()) >= threshold]
    return scored, degraded


def recall_for(caller: Caller, query: str, **how: Any) -> Recall:
    who: dict[str, Any] = {"agent": caller.agent, "policy": caller.policy, "now": caller.now}
    return recall(query, caller.workspace, caller.person, **who, **how)


def prefetch_query_vector(query: str, *, now: datetime) -> None:
    """Start embedding a query in the background, for a ``recall`` with the default ranking that will follow soon."""
    query = _clean_query(query)
    if query:
        embedding.embed_ahead(texts_embedded_for(query, read_question(query, now), WEIGHTS.gist))


def _clean_query(query: str) -> str:
    return query.replace("\x00", " ").strip()[:QUERY_LENGTH]


def with_newer(recall_result: Recall) -> Recall:
    """If a newer memory may replace a recalled one, put it before that, scored at least as high. At most one query."""
    linked = [
        each.memory
        for each in recall_result.items
        if each.memory.newer and each.memory.replaced_by_id is None  # type: ignore[attr-defined]
    ]
    keys = {memory.newer: memory.pk for memory in linked}  # type: ignore[attr-defined]
    if not keys or recall_result.search is None:
        return recall_result
    loaded = recall_result.search.load([(pk, {}) for pk in keys])
    newer = {keys[each.memory.pk]: each.memory for each in loaded}
    there = {item.memory.pk: item for item in recall_result.items}
    items: dict[int, Recalled] = {}
    for item in recall_result.items:
        memory = newer.get(item.memory.pk)
        if memory is not None and memory.pk not in items and memory.place == item.memory.place:
            own = there.get(memory.pk, replace(item, memory=memory))
            known = [each for each in (own.relevance, item.relevance) if each is not None]
            score = max(own.score, item.score)
            items[memory.pk] = replace(own, score=score, relevance=max(known, default=None))
        items.setdefault(item.memory.pk, item)
    return replace(recall_result, items=list(items.values()))


BELOW_THRESHOLD = "below the threshold"
NOTHING_ASKED = "the message asks for nothing"
NO_LONGER_HOLDS = "no longer holds"
REPLACED = "replaced by a newer one"
OVER_LIMIT = "over the limit"
NO_ROOM = "no room in the model's context"
OTHERS_READ = "others read this chat"
_HOLD = (
    "SELECT id FROM memories_memory WHERE id = ANY(%s) AND workspace_id = ANY(%s) ORDER BY id FOR KEY SHARE"
)


def split_recall(recall_result: Recall, *, threshold: float, limit: int) -> list[tuple[bool, str]]:
    """Decide for each recalled item whether the model gets it. Return (used, reason if not used) for each, in order."""
    verdicts: list[tuple[bool, str]] = []
    used = 0
    for item in recall_result.items:
        if not matters(item, threshold):
            verdicts.append((False, _why_not(item)))
        elif used >= limit:
            verdicts.append((False, OVER_LIMIT))
        else:
            used += 1
            verdicts.append((True, ""))
    return verdicts


def only_first(verdicts: Sequence[tuple[bool, str]]) -> list[tuple[bool, str]]:
    """Return the verdicts of ``split_recall`` with all used items after the first changed to OVER_LIMIT."""
    first = next((at for at, (used, _why) in enumerate(verdicts) if used), 0)
    return [
        (False, OVER_LIMIT) if used and at > first else (used, why) for at, (used, why) in enumerate(verdicts)
    ]


def matters(item: Recalled, threshold: float) -> bool:
    """Return whether the item's relevance, or its score where that is unknown, is high enough for the model."""
    if item.relevance is None:
        return item.score >= threshold
    return item.relevance.value >= settings.RECALL_THRESHOLD


def _why_not(item: Recalled) -> str:
    """Return why an item is not relevant enough."""
    item_relevance = item.relevance
    if item_relevance is None:
        return BELOW_THRESHOLD
    is_over = item_relevance.is_over and item_relevance.if_asked >= settings.RECALL_THRESHOLD
    if is_over or item_relevance.if_current >= settings.RECALL_THRESHOLD:
        return NO_LONGER_HOLDS if item.memory.replaced_by_id is None else REPLACED
    return NOTHING_ASKED if item_relevance.if_asked >= settings.RECALL_THRESHOLD else BELOW_THRESHOLD


def strength(item: Recalled, threshold: float) -> str:
    """Return the ``Strength`` to store in a receipt, or "" for an item of unknown or too low relevance."""
    if item.relevance is None or not matters(item, threshold):
        return ""
    return Strength.STRONG if item.relevance.value >= relevance.STRONG else Strength.RELATED


def store_receipt(
    message_id: str,
    recall_result: Recall,
    verdicts: list[tuple[bool, str]],
    *,
    workspace: Workspace,
    user: User,
    threshold: float,
    profile: Sequence[Recalled] = (),
) -> Receipt:
    """Store a receipt: what was recalled for an answer. It replaces an earlier receipt of the same answer.

    ``verdicts`` are those of ``split_recall``. The receipt lists the recalled memories, then relevant withheld ones,
    which only their owner sees, and then the ``profile`` memories that the model received.
    """
    withheld = [(item, (False, OTHERS_READ)) for item in recall_result.withheld if matters(item, threshold)]
    query = recall_result.search.query if recall_result.search else ""
    lines = {item.memory.pk: (item, (True, "")) for item in profile}
    recalled = zip(recall_result.items, verdicts, strict=True)
    pairs = [pair for pair in (*recalled, *withheld) if pair[0].memory.pk not in lines]
    pairs += lines.values()
    with transaction.atomic():
        there = _lock_existing([item.memory for item, _ in pairs])
        existing_pairs = [pair for pair in pairs if pair[0].memory.pk in there]
        drop_receipt(message_id)
        receipt = Receipt.objects.create(
            message_id=message_id,
            workspace=workspace,
            user=user,
            ranking=recall_result.ranking,
            threshold=threshold,
            degraded=recall_result.degraded,
        )
        ReceiptItem.objects.bulk_create(
            ReceiptItem(
                receipt=receipt,
                memory=item.memory,
                position=position,
                score=item.score,
                score_parts={name: round(value, 4) for name, value in item.parts.items()},
                strength=strength(item, threshold),
                content=item.memory.content,
                mentions=mentioned(query, item.memory.content),
                used=used,
                reason=reason,
                in_profile=item.memory.pk in lines,
            )
            for position, (item, (used, reason)) in enumerate(existing_pairs, start=1)
        )
    return receipt


def drop_receipt(message_id: str) -> None:
    Receipt.objects.filter(message_id=message_id).delete()


def _lock_existing(memories: list[Memory]) -> set[int]:
    """Lock the rows of these memories until commit. Return the primary keys of those that still exist."""
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [[each.pk for each in memories], [each.workspace_id for each in memories]])
        return {row[0] for row in cursor.fetchall()}


def receipts_for(message_ids: Iterable[str], user: User) -> dict[str, Receipt]:
    """Return the receipts of these answers by message id, with the items whose memory the user may see."""
    own = Workspace.objects.filter(default_of=user).values("pk")
    rows = Receipt.objects.filter(message_id__in=list(message_ids), workspace__memberships__user=user)
    receipts = list(rows.annotate(home=Subquery(own)))
    # The memories of a receipt belong to its workspace or to the user's own workspace.
    there = {receipt.workspace_id for receipt in receipts} | {receipt.home for receipt in receipts}
    visible = Memory.objects.visible_to(user).filter(workspace__in=there)
    items = ReceiptItem.objects.filter(memory__in=visible, memory__workspace__in=there)
    items = items.select_related(
        "memory", "memory__workspace", "memory__author", "memory__edited_by", "memory__imported_by"
    )
    stands = Exists(Memory.objects.filter(pk=OuterRef("memory")).standing())
    prefetch_related_objects(receipts, Prefetch("items", items.annotate(stands=stands)))
    for receipt in receipts:
        for position, item in enumerate(receipt.shown, start=1):
            item.position = position
    return {receipt.message_id: receipt for receipt in receipts}


def for_everyone(memory_ids: Sequence[str]) -> set[str]:
    """Return those of the ids that belong to memories that are not personal. At most one query."""
    shared = Memory.objects.filter(public_id__in=memory_ids, owner=None)
    return set(shared.values_list("public_id", flat=True))


def receipt_for(message_id: str, user: User) -> Receipt | None:
    """Return the receipt of an answer, or None if there is none or the user may not read the answer."""
    # By name, because chat defines who may read a message and memories must not import chat.
    chats = apps.get_model("chat", "Chat").objects.visible_to(user).live()
    answers = apps.get_model("chat", "Message").objects.filter(chat__in=chats, public_id=message_id)
    if not answers.readable_by(user).exists():
        return None
    return receipts_for([message_id], user).get(message_id)


def mark_not_relevant(item_id: int, user: User, *, value: bool) -> ReceiptItem:
    """Record whether the user judged a recalled memory not relevant.

    Raises NotFound for the receipts of others, and if the user may not see the memory.
    """
    memories = Memory.objects.visible_to(user).filter(deleted_at=None)
    items = ReceiptItem.objects.filter(pk=item_id, receipt__user=user, memory__in=memories)
    item = items.select_related("memory", "receipt").first()
    if item is None:
        raise NotFound()
    item.not_relevant = value
    item.save(update_fields=["not_relevant"])
    return item
