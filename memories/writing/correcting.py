"""What the new memories of a turn take the place of: a job left for another, a date said wrong, "scratch that".

The older one no longer holds from then on, says so in its history, and holds again with one click: the newer one's
card has it. What "scratch that" takes back is forgotten softly.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from memories.judging.corrections import only_takes_back, surest
from memories.judging.extraction.sentences import sentence_with
from memories.models import Extraction, Memory, Revision, Scope, SourceType
from memories.models.extraction import ExtractionStatus
from memories.models.memory import MemoryQuerySet
from memories.writing import changing, gate
from memories.writing.changing import locked_row
from memories.writing.drafts import Draft
from memories.writing.mined import TurnText
from memories.writing.similar import nearest, rows_beside
from memoryhub.errors import Conflict, NotFound
from memoryhub.llm.reader import get_reader
from workspaces.access import role_in
from workspaces.index.embedding import Embedded
from workspaces.models import Role, User, Workspace

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


def taken_back(turn: TurnText, extraction: Extraction, *, now: datetime) -> Memory | None:
    """What "Scratch that." alone takes back: the last that was noticed in the same turn, or in the message before if
    the same person said it, and that nobody else changed, pinned or gave a key. Asks the encoder.

    Raises Conflict while an earlier turn of the chat is still mined: what is meant may not be kept yet.
    """
    encoder, person = get_reader(), turn.said_by
    said = [text for role, text in turn.messages if role == "user"]
    if encoder is None or person is None or turn.is_output or not said:
        return None
    if not only_takes_back(said[-1], encoder):
        return None
    earlier = Extraction.objects.filter(chat_id=extraction.chat_id, pk__lt=extraction.pk)
    if earlier.filter(status=ExtractionStatus.PENDING).exists():
        raise Conflict(_("An earlier message is still being read."))
    meant = [each for each in (turn.user_message_id, turn.said_before) if each]
    noticed = Memory.objects.filter(source_message_id__in=meant).exclude(source_type=SourceType.USER)
    found = _nobody_elses(noticed, person, now).select_related("workspace").order_by("-pk").first()
    return found if found and _may_write_at(person, found.workspace, found.scope) else None


def take_back(memory: Memory, *, said_by: User, now: datetime) -> None:
    """Forget what ``taken_back`` found, unless since then somebody changed, pinned, keyed or forgot it, or the person
    may not write here any more. Part of a transaction.
    """
    try:
        locked = locked_row(memory, deleted=False)
    except NotFound:
        return
    same = Memory.objects.filter(pk=locked.pk, content_hash=memory.content_hash)
    if _nobody_elses(same, said_by, now).exists() and _may_write_at(said_by, locked.workspace, locked.scope):
        gate.delete_memory(locked, by=None, now=now)


def _nobody_elses(memories: MemoryQuerySet, person: User, now: datetime) -> MemoryQuerySet:
    """Of these what this person said and sees, and nobody else changed, pinned or gave a key."""
    others = Revision.objects.filter(memory=OuterRef("pk"), by__isnull=False).exclude(by=person)
    own = memories.live(now).visible_to(person).filter(author=person, pinned=False, key=None)
    return own.exclude(Exists(others))


def supersede(older: Memory, *, by: Memory, now: datetime) -> None:
    """``by`` is linked to the older one, which no longer holds: but for one that is pinned or has a key, which
    somebody put there, and asks. It takes the place of one only, which its Undo brings back. Part of a transaction.
    """
    try:
        locked = locked_row(older, deleted=False)
    except NotFound:  # forgotten at this very moment: nothing is left to replace
        return
    if locked.pk == by.pk or by.replaces.exclude(pk=locked.pk).exists():
        return
    by.may_replace = locked
    by.save(update_fields=["may_replace"])
    if not locked.pinned and locked.key is None:
        changing.replace(locked, newer=by, by=None, now=now)


def _may_write(draft: Draft) -> bool:
    return draft.author is not None and _may_write_at(draft.author, draft.workspace, draft.scope)


def _may_write_at(person: User, workspace: Workspace, scope: str) -> bool:
    role = role_in(person, workspace)
    return scope == Scope.USER or (role is not None and Role(role).allows(Role.EDITOR))


def _beside(draft: Draft, embedded: Embedded | None, *, said_at: datetime, now: datetime) -> list[Memory]:
    """What may be meant: the latest of the chat, then the nearest; of the same person, whose words nobody else has
    changed, and of no part of this turn.
    """
    others = Revision.objects.filter(memory=OuterRef("pk"), by__isnull=False).exclude(by=draft.author)
    own = (
        rows_beside(draft, now)
        .not_over(now)
        .filter(author=draft.author, updated_at__lte=said_at + MINED_WITHIN)
    )
    own = own.exclude(Exists(others))
    if draft.source_message_id:
        own = own.exclude(source_message_id=draft.source_message_id)
    close = nearest(embedded, draft, now=now, least=FAR) if embedded else []
    near = [stored.pk for stored, _cosine in close]
    latest = (
        own.filter(source_chat_id=draft.source_chat_id).order_by("-pk")
        if draft.source_chat_id
        else own.none()
    )
    known = {memory.pk: memory for memory in [*latest[:RECENT], *own.filter(pk__in=near)]}
    return list(known.values())
