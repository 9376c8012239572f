"""What the new memories of a turn take the place of: a job left for another, a date said wrong, "scratch that".

The older one is forgotten softly, says so in its history, and comes back with one click: the newer one's card has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memories.judging.corrections import surest
from memories.judging.extraction.sentences import sentence_with
from memories.models import Memory
from memories.models.memory import RevisionAction
from memories.writing import gate
from memories.writing.changing import locked_row
from memories.writing.doubles import rows_beside
from memories.writing.drafts import Draft
from memories.writing.similar import nearest
from memoryhub.errors import NotFound
from memoryhub.llm.reader import get_reader
from workspaces.index.embedding import Embedded

RECENT = 5  # of the same chat are looked at beside the nearest
FAR = 0.2  # cosine: "We moved to Leipzig" and "I live in Hamburg" are not near


def replaced_by(
    drafts: Sequence[Draft], embedded: Sequence[Embedded | None] | None, said: Sequence[str], *, now: datetime
) -> dict[int, Memory]:
    """Which older memory each of these cleaned drafts takes the place of, by the draft's number.

    Only what the same person said in the same place, as the messages ``said`` correct it. Reads some fifteen texts a
    draft; the last draft of a sentence has it.
    """
    encoder = get_reader()
    found: dict[int, tuple[int, Memory]] = {}
    for number, draft in enumerate(drafts):
        sentence = sentence_with(draft.content, said)
        if not sentence or encoder is None or draft.waits_for_review:
            continue
        olds = _beside(draft, embedded[number] if embedded else None, now)
        at = surest([old.content for old in olds], sentence, encoder)
        if at is not None:
            found[olds[at].pk] = number, olds[at]
    return dict(found.values())


def supersede(older: Memory, *, by: Memory, now: datetime) -> None:
    """``by`` is linked to the older one, which is forgotten: but for one that is pinned or has a key, which somebody
    put there, and asks. Part of a transaction.
    """
    try:
        locked = locked_row(older, deleted=False)
    except NotFound:  # forgotten at this very moment: nothing is left to replace
        return
    if locked.pk == by.pk:
        return
    is_sure = not locked.pinned and locked.key is None
    details = by.source_details | ({"replaced": locked.public_id} if is_sure else {})
    by.may_replace, by.source_details = locked, details
    by.save(update_fields=["may_replace", "source_details"])
    if is_sure:
        gate.delete_memory(locked, by=None, now=now, action=RevisionAction.REPLACE)


def _beside(draft: Draft, embedded: Embedded | None, now: datetime) -> list[Memory]:
    """What may be meant: the latest of the chat, then the nearest; of the same person, and of no part of this turn."""
    own = rows_beside(draft, now).filter(author=draft.author)
    if draft.source_message_id:
        own = own.exclude(source_message_id=draft.source_message_id)
    close = nearest(embedded, draft.place, now=now, least=FAR) if embedded else []
    near = [stored.pk for stored, _cosine in close]
    latest = (
        own.filter(source_chat_id=draft.source_chat_id).order_by("-pk")
        if draft.source_chat_id
        else own.none()
    )
    known = {memory.pk: memory for memory in [*latest[:RECENT], *own.filter(pk__in=near)]}
    return list(known.values())
