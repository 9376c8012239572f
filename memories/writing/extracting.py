"""Extraction of memories from turns in the background, and what the new ones replace.

An older memory that a new one corrects (a job left for another, a wrong date) no longer holds from then on, says so in
its history, and one click on the newer one's card brings it back. What "scratch that" takes back is forgotten softly.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memories.consent import vetoed
from memories.judging.corrections import only_takes_back, surest
from memories.judging.extraction.model import synthesize
from memories.judging.sentences import sentence_with
from memories.models import Extraction, Memory, Revision, Scope, SourceType
from memories.models.extraction import ExtractionStatus
from memories.models.memory import MemoryQuerySet
from memories.writing import changing, gate, refusal_counts
from memories.writing.announcing import announce_auto_saved
from memories.writing.changing import locked_row
from memories.writing.drafts import Draft, cut_at_word
from memories.writing.mined import (
    TurnText,
    candidate_of,
    candidates_of,
    completer_for,
    draft_of,
    load_message,
    load_turn,
    place_for,
    saved_in_turn,
    says_the_same,
)
from memories.writing.similar import nearest, rows_beside
from memories.writing.tombstones import WasForgotten
from memories.writing.versions import Stale, version_of
from memoryhub.errors import Conflict, Invalid, NotFound, SecretRefused, UnreadReply
from memoryhub.llm.errors import ModelError
from memoryhub.llm.registry import get_reader
from memoryhub.monitoring import tracing
from workspaces.access import role_in
from workspaces.index.embedding import Embedded, embed_texts
from workspaces.models import Role, User, Workspace
from workspaces.policy import Reach
from workspaces.quotas import QuotaReached

RECENT = 5  # of the same chat are looked at beside the nearest
MINED_WITHIN = timedelta(minutes=10)  # older messages have been extracted by then
FAR = 0.2  # cosine: "We moved to Leipzig" and "I live in Hamburg" are not near


def replaced_by(
    drafts: Sequence[Draft],
    embedded: Sequence[Embedded | None] | None,
    said: Sequence[str],
    *,
    said_at: datetime,
    now: datetime,
) -> dict[int, Memory]:
    """Return which older memory each of these cleaned drafts replaces, by the draft's number.

    Only a memory of the same person and scope, from before the messages ``said``, is replaced: extracting an old
    message again corrects nothing newer. If several drafts of a sentence match, the last one does. Embeds some fifteen
    texts a draft.
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
    """Return the memory that a message like "Scratch that." takes back: the last one extracted from the same turn, or
    from the message before if the same person wrote it, unless someone else changed, pinned or gave it a key.

    Uses the encoder. Raises Conflict while an earlier turn of the chat is still being extracted, since its memory may
    not be stored yet.
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
    """Filter to memories that this person wrote and may see, and that nobody else changed, pinned or gave a key."""
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
    """Return the memories that a correction may be about: the latest of the chat, then the nearest. They are the same
    person's, unchanged by others, and not from this turn.
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


logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 5
BACKOFF = timedelta(seconds=30)  # doubled with every attempt
SWEEP = 50
LEAST_OUTPUT = 200  # characters of an output that is worth mining


def queue_extraction(
    *, workspace: Workspace, user: User, chat_id: str, message_id: str, source_type: str, now: datetime
) -> Extraction:
    """Record that this turn is to be extracted, and enqueue it. A second call for the same turn does nothing."""
    extraction, made = Extraction.objects.get_or_create(
        message_id=message_id,
        source_type=source_type,
        defaults={"workspace": workspace, "user": user, "chat_id": chat_id, "next_attempt_at": now},
    )
    if made:
        hurry(extraction)
    return extraction


def queue_distillation(
    *,
    workspace: Workspace,
    user: User,
    chat_id: str,
    message_id: str,
    source_type: str,
    text: str,
    now: datetime,
) -> Extraction | None:
    """``queue_extraction`` for an output: of a tool call, a summary, long thinking. Short ones hold nothing: None.

    ``message_id`` is the public id under which the output is loaded later.
    """
    if len(text.strip()) < LEAST_OUTPUT:
        return None
    return queue_extraction(
        workspace=workspace,
        user=user,
        chat_id=chat_id,
        message_id=message_id,
        source_type=source_type,
        now=now,
    )


def hurry(extraction: Extraction) -> None:
    job = {"extraction_id": extraction.pk, "task_name": "extract"}
    transaction.on_commit(lambda: async_task("memories.tasks.extract_turn", **job))


def retry(extraction: Extraction, *, now: datetime) -> None:
    """Start a failed extraction again, with all its attempts."""
    Extraction.objects.filter(pk=extraction.pk).update(
        status=ExtractionStatus.PENDING, attempts=0, next_attempt_at=now, error="", finished_at=None
    )
    hurry(extraction)


def sweep(*, now: datetime) -> int:
    """Run what is due and no job took up (a lost job, a retry whose time has come); how many."""
    due = list(Extraction.objects.due(now).order_by("next_attempt_at").values_list("pk", flat=True)[:SWEEP])
    for pk in due:
        extract(pk, now=now)
    return len(due)


@tracing.span("memoryhub.extraction")
def extract(extraction_id: int, *, now: datetime) -> str:
    """Mine one turn. Killed in the middle it runs again: the saves and "done" are one transaction."""
    extraction = _claim(extraction_id, now)
    if extraction is None:
        return "nothing to do"
    try:
        turn = None if vetoed() else load_turn(extraction.message_id, extraction.source_type, extraction.user)
        if turn is None or place_for(extraction, turn) is None:
            return _store(extraction, "", [], None, now=now)
        complete = completer_for(turn, extraction.workspace, extraction.user, json=True)
        unread = partial(
            refusal_counts.note, UnreadReply(), extraction.workspace_id, extraction.source_type, now
        )
        name, candidates = candidates_of(turn, complete, faint=True, unread=unread)
        drafts = [draft_of(extraction, turn, name, candidate) for candidate in candidates]
        return _store(extraction, name, [each for each in drafts if each is not None], turn, now=now)
    except Exception as error:  # any failure is shown in the admin and tried again
        _failed(extraction, error, now)
        return f"failed: {type(error).__name__}"


def _claim(extraction_id: int, now: datetime) -> Extraction | None:
    """Count the attempt before making it, so that a turn that kills its worker is given up in the end."""
    with transaction.atomic():
        extraction = (
            Extraction.objects.select_for_update(of=("self",))
            .select_related("workspace__connection", "user")
            .filter(pk=extraction_id, status=ExtractionStatus.PENDING)
            .first()
        )
        if extraction is None:
            return None
        if extraction.attempts >= MAX_ATTEMPTS:
            _give_up(extraction, "Its worker ended in the middle, several times.", now)
            return None
        extraction.attempts += 1
        extraction.next_attempt_at = now + timedelta(seconds=settings.JOB_TIMEOUT)
        extraction.save(update_fields=["attempts", "next_attempt_at"])
    return extraction


@dataclass(frozen=True)
class _Read:
    """The drafts to store and everything that needed a model, so that the transaction waits for none."""

    said: list[tuple[Draft, Embedded | None, Memory | None]]  # with what it takes the place of
    by_tool: list[tuple[Memory, Embedded | None]]
    refused: int
    taken_back: Memory | None


def _read(extraction: Extraction, drafts: list[Draft], turn: TurnText | None, now: datetime) -> _Read:
    cleaned = _cleaned(drafts, now)
    by_tool = saved_in_turn(cleaned[0].source_message_id) if cleaned else []
    texts = [(draft.content, draft.source_excerpt) for draft in cleaned] + [(m.content, "") for m in by_tool]
    places = [draft.workspace for draft in cleaned] + [memory.workspace for memory in by_tool]
    vectors = embed_texts(texts, [Reach.here(place) for place in places]) or [None] * len(texts)
    for draft, embedded in zip(cleaned, vectors, strict=False):
        if embedded is not None:
            gate.read_ahead(draft, embedded, now=now)
    said = [text for role, text in turn.messages if role == "user"] if turn and not turn.is_output else []
    said_at = (turn.said_at if turn else None) or now
    replaced = replaced_by(cleaned, vectors, said, said_at=said_at, now=now)
    unsure = all(draft.source_details.get("faint") for draft in cleaned)
    return _Read(
        [
            (draft, vectors[number], replaced.get(number))
            for number, draft in enumerate(cleaned)
            if number in replaced or not draft.source_details.get("faint")
        ],
        list(zip(by_tool, vectors[len(cleaned) :], strict=True)),
        len(drafts) - len(cleaned),
        taken_back(turn, extraction, now=now) if turn and unsure else None,
    )


def _store(
    extraction: Extraction, extractor: str, drafts: list[Draft], turn: TurnText | None, *, now: datetime
) -> str:
    read = _read(extraction, drafts, turn, now)
    with transaction.atomic():
        row = Extraction.objects.select_for_update().filter(pk=extraction.pk).first()
        if row is None:
            return "its chat was forgotten"
        if row.status != ExtractionStatus.PENDING:
            return "another worker was first"
        saved = _saved(read, now)
        if read.taken_back is not None and turn is not None and turn.said_by is not None:
            take_back(read.taken_back, said_by=turn.said_by, now=now)
        stored = [result.memory for result in saved if result.created]
        row.status, row.extractor, row.error, row.finished_at = ExtractionStatus.DONE, extractor, "", now
        row.stored_count, row.refused_count = len(stored), read.refused + len(read.said) - len(saved)
        row.duplicate_count = len(saved) - len(stored)
        logger.debug(
            "Extraction %s by %s: %s stored, %s refused", row.pk, extractor, len(stored), row.refused_count
        )
        counted = {"memoryhub.stored": len(stored), "memoryhub.refused": row.refused_count}
        tracing.note({"memoryhub.extractor": extractor, **counted})
        row.save()
        announce_auto_saved(stored, chat_id=extraction.chat_id)
    return f"stored {len(stored)}"


def _saved(read: _Read, now: datetime) -> list[gate.Saved]:
    """Store the drafts. Return the results of those that the gate accepted."""
    saved = []
    for draft, vectors, replaced in read.said:
        with suppress(WasForgotten, QuotaReached):
            if known := says_the_same(draft, vectors, read.by_tool, now=now):
                result = gate.Saved(known, created=False, duplicate=True)
            else:
                with refusal_counts.counted(draft.workspace.pk, draft.source_type, now):
                    result = gate.save_embedded(draft, vectors, by=None, now=now)
            saved.append(result)
            if replaced is not None and result.memory.is_live:
                supersede(replaced, by=result.memory, now=now)
    return saved


def _cleaned(drafts: list[Draft], now: datetime) -> list[Draft]:
    """Without those that are refused, which are counted."""
    cleaned = []
    for draft in drafts:
        with (
            suppress(SecretRefused, Invalid),
            refusal_counts.counted(draft.workspace.pk, draft.source_type, now),
        ):
            cleaned.append(draft.cleaned())
    return cleaned


def _failed(extraction: Extraction, error: Exception, now: datetime) -> None:
    logger.warning(
        "Extraction %s failed (attempt %s): %s", extraction.pk, extraction.attempts, type(error).__name__
    )
    # Errors of models are sentences of ours; others may quote stored text and are named by their kind only.
    reason = str(error) if isinstance(error, ModelError) else f"{type(error).__name__} while extracting"
    if extraction.attempts >= MAX_ATTEMPTS:
        _give_up(extraction, reason, now)
        return
    wait = BACKOFF * 2 ** (extraction.attempts - 1)
    Extraction.objects.filter(pk=extraction.pk, status=ExtractionStatus.PENDING).update(
        error=reason[:500], next_attempt_at=now + wait
    )


def _give_up(extraction: Extraction, reason: str, now: datetime) -> None:
    Extraction.objects.filter(pk=extraction.pk, status=ExtractionStatus.PENDING).update(
        status=ExtractionStatus.FAILED, error=reason[:500], finished_at=now
    )


def rerun(memory: Memory, *, by: User | None, now: datetime) -> None:
    """Queue making a memory's summary, and its content if that was synthesized, again from its source message.

    Nothing happens if somebody edits the memory before that. Conflict if it has no source message.
    """
    if not memory.source_message_id:
        raise Conflict(_("This memory has no source message to extract from."), code="no_source")
    job = {"memory_id": memory.pk, "by_id": by.pk if by else None, "version": version_of(memory)}
    transaction.on_commit(
        lambda: async_task("memories.tasks.rerun_extraction", task_name="rerun extraction", **job)
    )


def refresh(memory: Memory, *, by: User | None, now: datetime, version: str = "") -> str:
    """The work of ``rerun``: may wait for a model. Says what it did. Reads only what the person who asks may see.

    Nothing to a memory that is no more in this ``version`` (left out: as it is given here).
    """
    turn = load_message(memory.source_message_id, by)
    if turn is None:
        return "its source message is gone"
    if turn.is_personal and memory.owner_id is None:
        return "its source message is personal, and others read the memory"
    complete = completer_for(turn, memory.workspace, by)
    changes: dict[str, Any] = {}
    name, candidates = candidates_of(turn, complete)
    if found := candidate_of(memory, candidates, turn.messages[0][1]):
        changes["summary"] = found.text
    if complete is not None and memory.source_details.get("synthesize"):
        changes["content"] = cut_at_word(synthesize(complete, turn.messages[0][1]))
    if not changes:
        return f"{name} found nothing to say"
    try:
        seen = {version or version_of(memory)}
        gate.edit_memory(memory, by=by, now=now, made_from=memory.source_message_id, seen=seen, **changes)
    except (NotFound, WasForgotten):
        return "it was forgotten in the meantime"
    except SecretRefused:
        return f"{name} made what may not be stored"
    except Stale:
        return "somebody edited it in the meantime"
    return f"{name} refreshed {' and '.join(sorted(changes))}"
