"""Receipts of answers: which memories were recalled, which were used, and why others were left out."""

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
    """Return for each recalled item, in order, whether it is used and, if not, why.

    ``threshold`` applies to the score. Where relevance is known, RECALL_THRESHOLD applies to the relevance instead.
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
    """Mark all used items except the first as over the limit."""
    first = next((at for at, (used, _why) in enumerate(verdicts) if used), 0)
    return [
        (False, OVER_LIMIT) if used and at > first else (used, why) for at, (used, why) in enumerate(verdicts)
    ]


def matters(item: Recalled, threshold: float) -> bool:
    """Return whether the item is relevant enough to be given to the model, if there is room."""
    if item.relevance is None:
        return item.score >= threshold
    return item.relevance.value >= settings.RECALL_THRESHOLD


def _why_not(item: Recalled) -> str:
    """Return why an item is not relevant enough: the reason without which it would be, or BELOW_THRESHOLD."""
    found = item.relevance
    if found is not None and found.if_current >= settings.RECALL_THRESHOLD:
        return NO_LONGER_HOLDS if item.memory.replaced_by_id is None else REPLACED
    if found is not None and found.if_asked >= settings.RECALL_THRESHOLD:
        return NOTHING_ASKED
    return BELOW_THRESHOLD


def strength(item: Recalled, threshold: float) -> str:
    """Return the strength for a receipt; empty if the item is not relevant enough or its relevance is unknown."""
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
    """Store what was recalled for an answer. The receipt of a retried answer replaces the old one.

    Its last items are the withheld memories that would have been used, which only their owner sees, and the ``profile``
    lines that the model received. Memories that were forgotten permanently since are left out.
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
    """Lock the rows of these memories until the transaction ends, and return the keys of those that still exist."""
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [[each.pk for each in memories], [each.workspace_id for each in memories]])
        return {row[0] for row in cursor.fetchall()}


def receipts_for(message_ids: Iterable[str], user: User) -> dict[str, Receipt]:
    """Return the receipts of these answers by message id, with the items that the user may see.

    Items whose memory was deleted or is another person's own are left out, and the positions of the others have no
    gaps.
    """
    own = Workspace.objects.filter(default_of=user).values("pk")
    receipts = list(
        Receipt.objects.filter(message_id__in=list(message_ids), workspace__memberships__user=user).annotate(
            home=Subquery(own)
        )
    )
    # The memories of a receipt belong to its workspace or to the user's own workspace.
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
    """Return the ids of those memories that are not personal. One query, none for an empty list."""
    if not memory_ids:
        return set()
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


def mark_not_relevant(item_id: int, user: User, *, value: bool = True, now: datetime) -> ReceiptItem:
    """Record that a recalled memory had nothing to do with the question.

    Raises NotFound unless the receipt is the user's own and the user may see the memory.
    """
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
