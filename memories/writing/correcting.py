"""What the new memories of a turn take the place of: a job left for another, a date said wrong, "scratch that".

The older one is forgotten softly, says so in its history, and comes back with one click: the newer one's card has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef

from memories.judging.corrections import surest
from memories.judging.extraction.sentences import sentence_with
from memories.models import Memory, Revision, Scope
from memories.models.memory import RevisionAction
from memories.writing import gate
from memories.writing.changing import locked_row
from memories.writing.doubles import rows_beside
from memories.writing.drafts import Draft
from memories.writing.similar import nearest
from memoryhub.errors import NotFound
from memoryhub.llm.reader import get_reader
from workspaces.access import role_in
from workspaces.index.embedding import Embedded
from workspaces.models import Role

RECENT = 5  # of the same chat are looked at beside the nearest
MINED_WITHIN = timedelta(minutes=10)  # what was said before it is kept by then, though it was mined later
FAR = 0.2  # cosine: "We moved to Leipzig" and "I live in Hamburg" are not near


def replaced_by(
    drafts: Sequence[Draft],
    embedded: Sequence[Embedded | None] | None,
    said: Sequence[str],
    *,
    said_at: datetime,
    now: datetime,
) -> dict[int, Memory]:
    """Which older memory each of these cleaned drafts takes the place of, by the draft's number.

    Only what the same person, who may write here, said in the same place before the messages ``said`` correct it: an
    old message that is mined anew corrects nothing newer. Reads some fifteen texts a draft; the last draft of a
    sentence has it.
    """
    encoder = get_reader()
    found: dict[int, tuple[int, Memory]] = {}
    for number, draft in enumerate(drafts):
        sentence = sentence_with(draft.content, said)
        if not sentence or encoder is None or draft.waits_for_review or not _may_write(draft):
            continue
        olds = _beside(draft, embedded[number] if embedded else None, said_at=said_at, now=now)
        at = surest([old.content for old in olds], sentence, encoder)
        if at is not None:
            found[olds[at].pk] = number, olds[at]
    return dict(found.values())


def supersede(older: Memory, *, by: Memory, now: datetime) -> None:
    """``by`` is linked to the older one, which is forgotten: but for one that is pinned or has a key, which somebody
    put there, and asks. It takes the place of one only, which its Undo brings back. Part of a transaction.
    """
    try:
        locked = locked_row(older, deleted=False)
    except NotFound:  # forgotten at this very moment: nothing is left to replace
        return
    if locked.pk == by.pk or by.source_details.get("replaced", locked.public_id) != locked.public_id:
        return
    is_sure = not locked.pinned and locked.key is None
    details = by.source_details | ({"replaced": locked.public_id} if is_sure else {})
    by.may_replace, by.source_details = locked, details
    by.save(update_fields=["may_replace", "source_details"])
    if is_sure:
        gate.delete_memory(locked, by=None, now=now, action=RevisionAction.REPLACE)


def _may_write(draft: Draft) -> bool:
    if draft.author is None:
        return False
    role = role_in(draft.author, draft.workspace)
    return draft.scope == Scope.USER or (role is not None and Role(role).allows(Role.EDITOR))


def _beside(draft: Draft, embedded: Embedded | None, *, said_at: datetime, now: datetime) -> list[Memory]:
    """What may be meant: the latest of the chat, then the nearest; of the same person, whose words nobody else has
    changed, and of no part of this turn.
    """
    others = Revision.objects.filter(memory=OuterRef("pk"), by__isnull=False).exclude(by=draft.author)
    own = rows_beside(draft, now).filter(author=draft.author, updated_at__lte=said_at + MINED_WITHIN)
    own = own.exclude(Exists(others))
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
