"""A receipt for every answer: what was recalled, used, left out and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Prefetch, Subquery, prefetch_related_objects

from memories.models import Memory, Receipt, ReceiptItem
from memories.models.receipt import Strength
from memories.recalling import relevance
from memories.recalling.mentions import mentioned
from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import Recall
from memoryhub.errors import NotFound
from workspaces.models import User, Workspace

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


def split_recall(found: Recall, *, threshold: float, limit: int) -> list[tuple[bool, str]]:
    """For each recalled item in order: whether it is used, and else why not.

    ``threshold`` is of the score; where relevance is known, ``RECALL_THRESHOLD`` is of that.
    """
    verdicts: list[tuple[bool, str]] = []
    used = 0
    for item in found.items:
        if not matters(item, threshold):
            verdicts.append((False, _why_not(item)))
        elif used >= limit:
            verdicts.append((False, OVER_LIMIT))
        else:
            used += 1
            verdicts.append((True, ""))
    return verdicts


def only_first(verdicts: Sequence[tuple[bool, str]]) -> list[tuple[bool, str]]:
    """Leave out all that is used but the first."""
    first = next((at for at, (used, _why) in enumerate(verdicts) if used), 0)
    return [
        (False, OVER_LIMIT) if used and at > first else (used, why) for at, (used, why) in enumerate(verdicts)
    ]


def matters(item: Recalled, threshold: float) -> bool:
    """Whether it is to go before the model, room permitting."""
    if item.relevance is None:
        return item.score >= threshold
    return item.relevance.value >= settings.RECALL_THRESHOLD


def _why_not(item: Recalled) -> str:
    """Return why a memory is below the threshold: the one reason without which it would be used."""
    found = item.relevance
    if found is not None and found.if_current >= settings.RECALL_THRESHOLD:
        return NO_LONGER_HOLDS if item.memory.replaced_by_id is None else REPLACED
    if found is not None and found.if_asked >= settings.RECALL_THRESHOLD:
        return NOTHING_ASKED
    return BELOW_THRESHOLD


def strength(item: Recalled, threshold: float) -> str:
    """As a receipt keeps it: empty where it does not matter, or where its relevance is unknown."""
    if item.relevance is None or not matters(item, threshold):
        return ""
    return Strength.STRONG if item.relevance.value >= relevance.STRONG else Strength.RELATED


def store_receipt(
    message_id: str,
    found: Recall,
    verdicts: list[tuple[bool, str]],
    *,
    workspace: Workspace,
    user: User,
    threshold: float,
    profile: Sequence[Recalled] = (),
) -> Receipt:
    """Keep what a turn recalled with its answer; a retried answer gets a new receipt in place of the old.

    Behind it stands what was withheld and would have been used, which its person alone is shown, and the lines of the
    ``profile`` that were given. What was forgotten for good since it was recalled is left out.
    """
    withheld = [(item, (False, OTHERS_READ)) for item in found.withheld if matters(item, threshold)]
    asked = found.search.query if found.search else ""
    lines = {item.memory.pk: (item, (True, "")) for item in profile}
    recalled = zip(found.items, verdicts, strict=True)
    pairs = [pair for pair in (*recalled, *withheld) if pair[0].memory.pk not in lines]
    pairs += lines.values()
    with transaction.atomic():
        there = _hold([item.memory for item, _ in pairs])
        kept = [pair for pair in pairs if pair[0].memory.pk in there]
        drop_receipt(message_id)
        receipt = Receipt.objects.create(
            message_id=message_id,
            workspace=workspace,
            user=user,
            ranking=found.ranking,
            threshold=threshold,
            degraded=found.degraded,
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
                mentions=mentioned(asked, item.memory.content),
                used=used,
                reason=reason,
                in_profile=item.memory.pk in lines,
            )
            for position, (item, (used, reason)) in enumerate(kept, start=1)
        )
    return receipt


def drop_receipt(message_id: str) -> None:
    Receipt.objects.filter(message_id=message_id).delete()


def _hold(memories: list[Memory]) -> set[int]:
    """Which of these rows are there; they stay until the running transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [[each.pk for each in memories], [each.workspace_id for each in memories]])
        return {row[0] for row in cursor.fetchall()}


def receipts_for(message_ids: Iterable[str], user: User) -> dict[str, Receipt]:
    """The receipts of these answers by message id, their items with what this person may still see.

    An item whose memory the reader may not see (somebody's personal one) or that was deleted is left out, and
    leaves no gap: positions count what is left.
    """
    own = Workspace.objects.filter(default_of=user).values("pk")
    receipts = list(
        Receipt.objects.filter(message_id__in=list(message_ids), workspace__memberships__user=user).annotate(
            home=Subquery(own)
        )
    )
    # What was recalled for them lies there, or in their own workspace.
    there = {receipt.workspace_id for receipt in receipts} | {receipt.home for receipt in receipts}
    visible = Memory.objects.visible_to(user).filter(deleted_at=None, workspace__in=there)
    items = ReceiptItem.objects.filter(memory__in=visible, memory__workspace__in=there)
    items = items.select_related(
        "memory", "memory__workspace", "memory__author", "memory__edited_by", "memory__imported_by"
    )
    prefetch_related_objects(receipts, Prefetch("items", queryset=items))
    for receipt in receipts:
        for position, item in enumerate(receipt.items.all(), start=1):
            item.position = position
    return {receipt.message_id: receipt for receipt in receipts}


def for_everyone(memory_ids: Sequence[str]) -> set[str]:
    """Those of these memories that nobody has for themselves alone. One query, none for none."""
    if not memory_ids:
        return set()
    shared = Memory.objects.filter(public_id__in=memory_ids, owner=None)
    return set(shared.values_list("public_id", flat=True))


def receipt_for(message_id: str, user: User) -> Receipt | None:
    """The receipt of one answer, None where the person may not read that answer."""
    # By name: who may read a message is a rule of the app above this one, which must not be imported here.
    chats = apps.get_model("chat", "Chat").objects.visible_to(user).live()
    answers = apps.get_model("chat", "Message").objects.filter(chat__in=chats, public_id=message_id)
    if not answers.readable_by(user).exists():
        return None
    return receipts_for([message_id], user).get(message_id)


def mark_not_relevant(item_id: int, user: User, *, value: bool = True, now: datetime) -> ReceiptItem:
    """A person says a recalled memory had nothing to do with the question. Theirs to say about their own turns."""
    item = (
        ReceiptItem.objects.filter(
            pk=item_id, receipt__user=user, memory__in=Memory.objects.visible_to(user).filter(deleted_at=None)
        )
        .select_related("memory", "receipt")
        .first()
    )
    if item is None:
        raise NotFound()
    item.not_relevant = value
    item.save(update_fields=["not_relevant"])
    return item
