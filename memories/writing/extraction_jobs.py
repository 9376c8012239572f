"""Background extraction of memories from chat turns, and replacement of the older memories that they correct.

A new memory can correct an older one ("We moved to Leipzig"), which then ends. A message such as "scratch that"
soft-deletes the last memory.
"""

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

from memories.access import vetoed
from memories.judging.corrections import find_replaced, only_takes_back
from memories.judging.extraction.with_language_model import synthesize
from memories.judging.sentences import sentence_with
from memories.models import Extraction, Memory, Revision, Scope, SourceType
from memories.models.extraction import ExtractionStatus
from memories.models.memory import MemoryQuerySet
from memories.writing import changing, gate, tombstones
from memories.writing.changing import Stale, announce_auto_saved, locked_row, version_of
from memories.writing.decide import nearest, rows_beside
from memories.writing.drafts import Draft, cut_at_word
from memories.writing.drafts_from_turns import (
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
from memories.writing.tombstones import WasForgotten
from memoryhub import pubsub
from memoryhub.errors import Conflict, Invalid, NotFound, SecretRefused, UnreadReply
from memoryhub.llm.errors import ModelError
from memoryhub.llm.registry import get_reader
from memoryhub.monitoring import tracing
from workspaces.access import role_in
from workspaces.data_policy import DataPolicy
from workspaces.index.embedding import Embedded, embed_texts
from workspaces.models import Role, User, Workspace
from workspaces.quotas import QuotaReached

RECENT = 5  # latest memories of the chat that are compared in addition to the nearest ones
MINED_WITHIN = timedelta(minutes=10)  # by this time after a message, its memories have been extracted
FAR = 0.2  # minimum cosine; low, because "We moved to Leipzig" is not near to "I live in Hamburg"


def replaced_by(
    drafts: Sequence[Draft],
    embedded: Sequence[Embedded | None] | None,
    user_texts: Sequence[str],
    *,
    said_at: datetime,
    now: datetime,
) -> dict[int, Memory]:
    """Return the older memories that the cleaned drafts replace, by the index of the draft.

    ``user_texts`` are the person's messages, sent at ``said_at``. Only older memories of the same person and scope are
    replaced. If several drafts come from one sentence, the last one replaces. Costs about fifteen embeddings per draft.
    """
    encoder = get_reader()
    replaced: dict[int, tuple[int, Memory]] = {}
    for number, draft in enumerate(drafts):
        sentence = sentence_with(draft.content, user_texts)
        if not sentence or encoder is None or draft.waits_for_review or draft.author is None:
            continue
        if not _may_write(draft.author, draft.workspace, draft.scope):
            continue
        olds = _beside(draft, embedded[number] if embedded else None, said_at=said_at, now=now)
        at = find_replaced([old.content for old in olds], sentence, encoder)
        if at is not None:
            replaced[olds[at].pk] = number, olds[at]
    return dict(replaced.values())


def taken_back(turn: TurnText, extraction: Extraction, *, now: datetime) -> Memory | None:
    """Return the memory that a message such as "Scratch that." takes back, or None. Uses the encoder.

    It is the last memory extracted from the same message, or from the previous one if the same person wrote that.
    Raises Conflict while an earlier turn of the chat is still being extracted.
    """
    encoder, person = get_reader(), turn.said_by
    if encoder is None or person is None or not turn.user_texts:
        return None
    if not only_takes_back(turn.user_texts[-1], encoder):
        return None
    earlier = Extraction.objects.filter(chat_id=extraction.chat_id, pk__lt=extraction.pk)
    if earlier.filter(status=ExtractionStatus.PENDING).exists():
        raise Conflict(_("An earlier message is still being read."))
    meant = [each for each in (turn.user_message_id, turn.said_before) if each]
    noticed = Memory.objects.filter(source_message_id__in=meant).exclude(source_type=SourceType.USER)
    memory = _changed_only_by(noticed, person, now).select_related("workspace").order_by("-pk").first()
    return memory if memory and _may_write(person, memory.workspace, memory.scope) else None


def take_back(memory: Memory, *, said_by: User, now: datetime) -> None:
    """Soft-delete the memory that ``taken_back`` returned, unless it has changed since. Call this in a transaction."""
    try:
        locked = locked_row(memory, deleted=False)
    except NotFound:
        return
    same = Memory.objects.filter(pk=locked.pk, content_hash=memory.content_hash)
    if _changed_only_by(same, said_by, now).exists() and _may_write(said_by, locked.workspace, locked.scope):
        gate.delete_memory(locked, by=None, now=now)


def _changed_only_by(memories: MemoryQuerySet, person: User, now: datetime) -> MemoryQuerySet:
    """Filter to live memories without pin and key that only ``person``, who wrote and may see them, has changed."""
    own = memories.live(now).visible_to(person).filter(author=person, pinned=False, key=None)
    return own.exclude(_changed_by_others(person))


def _changed_by_others(person: User | None) -> Exists:
    """Return the condition that somebody other than this person has changed a memory."""
    others = Revision.objects.filter(memory=OuterRef("pk"), by__isnull=False)
    return Exists(others.exclude(by=person))


def supersede(older: Memory, *, by: Memory, now: datetime) -> None:
    """Let the memory ``by`` replace an older one. If that is pinned or has a key, only link it.

    Do nothing if ``by`` replaces another one already, because Undo restores only one.
    """
    try:
        locked = locked_row(older, deleted=False)
    except NotFound:  # deleted in the meantime, so nothing is left to replace
        return
    if locked.pk == by.pk or by.replaces.exclude(pk=locked.pk).exists():
        return
    by.may_replace = locked
    by.save(update_fields=["may_replace"])
    if not locked.pinned and locked.key is None:
        changing.replace(locked, newer=by, by=None, now=now)


def _may_write(person: User, workspace: Workspace, scope: str) -> bool:
    role = role_in(person, workspace)
    return scope == Scope.USER or (role is not None and Role(role).allows(Role.EDITOR))


def _beside(draft: Draft, embedded: Embedded | None, *, said_at: datetime, now: datetime) -> list[Memory]:
    """Return the memories that a draft may correct: the latest ones of its chat, then those with the nearest vectors.

    They are by the same person, not changed by others, and come from other messages.
    """
    own = rows_beside(draft, now).not_over(now).exclude(_changed_by_others(draft.author))
    own = own.filter(author=draft.author, updated_at__lte=said_at + MINED_WITHIN)
    if draft.source_message_id:
        own = own.exclude(source_message_id=draft.source_message_id)
    near = [pk for pk, _ in nearest(embedded, draft, now=now, least=FAR)] if embedded else []
    latest = own.filter(source_chat_id=draft.source_chat_id) if draft.source_chat_id else own.none()
    candidates = [*latest.order_by("-pk")[:RECENT], *own.filter(pk__in=near)]
    return list({memory.pk: memory for memory in candidates}.values())


logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 5
BACKOFF = timedelta(seconds=30)  # doubled with every attempt
SWEEP = 50
LEAST_OUTPUT = 200  # minimum characters of an output worth extracting from


def queue_extraction(
    *, workspace: Workspace, user: User, chat_id: str, message_id: str, source_type: str, now: datetime
) -> Extraction:
    """Store that a turn is to be extracted, and queue the job. A second call for the same turn does nothing."""
    extraction, created = Extraction.objects.get_or_create(
        message_id=message_id,
        source_type=source_type,
        defaults={"workspace": workspace, "user": user, "chat_id": chat_id, "next_attempt_at": now},
    )
    if created:
        enqueue(extraction)
    return extraction


def queue_distillation(*, text: str, **turn: Any) -> Extraction | None:
    """Queue the extraction of an output, such as a tool result, of at least ``LEAST_OUTPUT`` characters.

    ``message_id`` is the public id by which the output is loaded later.
    """
    return queue_extraction(**turn) if len(text.strip()) >= LEAST_OUTPUT else None


def enqueue(extraction: Extraction) -> None:
    job = {"extraction_id": extraction.pk, "task_name": "extract"}
    transaction.on_commit(lambda: async_task("memories.tasks.extract_turn", **job))


def retry(extraction: Extraction, *, now: datetime) -> None:
    """Restart a failed extraction with its full number of attempts. Its last error stays visible until it succeeds."""
    Extraction.objects.filter(pk=extraction.pk).update(
        status=ExtractionStatus.PENDING, attempts=0, next_attempt_at=now, finished_at=None
    )
    enqueue(extraction)


def sweep(*, now: datetime) -> int:
    """Run due extractions: those whose retry is due, and those whose job was lost. Return their number."""
    due = list(Extraction.objects.due(now).order_by("next_attempt_at").values_list("pk", flat=True)[:SWEEP])
    for pk in due:
        extract(pk, now=now)
    return len(due)


@tracing.span("memoryhub.extraction")
def extract(extraction_id: int, *, now: datetime) -> str:
    """Extract memories from one turn. Return the outcome for the job log.

    The memories and the status are stored in one transaction, so that an interrupted job can run again.
    """
    extraction = _claim(extraction_id, now)
    if extraction is None:
        return "nothing to do"
    try:
        turn = None if vetoed() else load_turn(extraction.message_id, extraction.source_type, extraction.user)
        if turn is None or place_for(extraction, turn) is None:
            return _store(extraction, "", [], None, now=now)
        complete = completer_for(turn, extraction.workspace, extraction.user, json=True)
        unread = partial(
            tombstones.count_refusals, [UnreadReply()], extraction.workspace_id, extraction.source_type, now
        )
        name, candidates = candidates_of(turn, complete, faint=True, unread=unread)
        drafts = [draft_of(extraction, turn, name, candidate) for candidate in candidates]
        return _store(extraction, name, [each for each in drafts if each is not None], turn, now=now)
    except Exception as error:  # every failure is shown in the admin and retried
        _failed(extraction, error, now)
        return f"failed: {type(error).__name__}"


def _claim(extraction_id: int, now: datetime) -> Extraction | None:
    """Return the extraction with the attempt counted first, in case it crashes its worker, or None if none is due."""
    with transaction.atomic():
        rows = Extraction.objects.select_for_update(of=("self",)).select_related(
            "workspace__connection", "user"
        )
        extraction = rows.filter(pk=extraction_id, status=ExtractionStatus.PENDING).first()
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
    """The results of the models for a turn, computed before the transaction, so that it does not wait for a model."""

    said: list[tuple[Draft, Embedded | None, Memory | None]]  # each with the memory it replaces
    by_tool: list[tuple[Memory, Embedded | None]]
    refused: int
    taken_back: Memory | None


def _read(extraction: Extraction, drafts: list[Draft], turn: TurnText | None, now: datetime) -> _Read:
    cleaned = _cleaned(drafts, now)
    by_tool = saved_in_turn(cleaned[0].source_message_id) if cleaned else []
    texts = [(draft.content, draft.source_excerpt) for draft in cleaned] + [(m.content, "") for m in by_tool]
    places = [draft.workspace for draft in cleaned] + [memory.workspace for memory in by_tool]
    vectors = embed_texts(texts, [DataPolicy.here(place) for place in places]) or [None] * len(texts)
    for draft, embedded in zip(cleaned, vectors, strict=False):
        if embedded is not None:
            gate.read_ahead(draft, embedded, now=now)
    user_texts = turn.user_texts if turn else []
    said_at = (turn.said_at if turn else None) or now
    replaced = replaced_by(cleaned, vectors, user_texts, said_at=said_at, now=now)
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
        if row.error:
            _redraw_chat(extraction)
        row.status, row.extractor, row.error, row.finished_at = ExtractionStatus.DONE, extractor, "", now
        row.stored_count, row.refused_count = len(stored), read.refused + len(read.said) - len(saved)
        row.duplicate_count = len(saved) - len(stored)
        logger.debug(
            "Extraction %s by %s: %s stored, %s refused", row.pk, extractor, len(stored), row.refused_count
        )
        counted = {"memoryhub.stored": len(stored), "memoryhub.refused": row.refused_count}
        tracing.add_attributes({"memoryhub.extractor": extractor, **counted})
        row.save()
        announce_auto_saved(stored, chat_id=extraction.chat_id)
    return f"stored {len(stored)}"


def _saved(read: _Read, now: datetime) -> list[gate.Saved]:
    """Store the drafts. Return the results of those that were not refused."""
    saved = []
    for draft, vectors, replaced in read.said:
        with suppress(WasForgotten, QuotaReached):
            if known := says_the_same(draft, vectors, read.by_tool, now=now):
                result = gate.Saved(known, created=False, duplicate=True)
            else:
                with tombstones.counted(draft.workspace.pk, draft.source_type, now):
                    result = gate.save_embedded(draft, vectors, by=None, now=now)
            saved.append(result)
            if replaced is not None and result.memory.is_live:
                supersede(replaced, by=result.memory, now=now)
    return saved


def _cleaned(drafts: list[Draft], now: datetime) -> list[Draft]:
    """Return the drafts cleaned, without those that are refused, which are counted in the statistics."""
    cleaned = []
    for draft in drafts:
        with (
            suppress(SecretRefused, Invalid),
            tombstones.counted(draft.workspace.pk, draft.source_type, now),
        ):
            cleaned.append(draft.cleaned())
    return cleaned


def _failed(extraction: Extraction, error: Exception, now: datetime) -> None:
    logger.warning(
        "Extraction %s failed (attempt %s): %s", extraction.pk, extraction.attempts, type(error).__name__
    )
    # Messages of ModelError are written here. Other errors may quote stored text, so only their type is shown.
    reason = str(error) if isinstance(error, ModelError) else f"{type(error).__name__} while extracting"
    if extraction.attempts >= MAX_ATTEMPTS:
        _give_up(extraction, reason, now)
        return
    wait = BACKOFF * 2 ** (extraction.attempts - 1)
    Extraction.objects.filter(pk=extraction.pk, status=ExtractionStatus.PENDING).update(
        error=reason[:500], next_attempt_at=now + wait
    )
    if not extraction.error:
        _redraw_chat(extraction)


def _give_up(extraction: Extraction, reason: str, now: datetime) -> None:
    Extraction.objects.filter(pk=extraction.pk, status=ExtractionStatus.PENDING).update(
        status=ExtractionStatus.FAILED, error=reason[:500], finished_at=now
    )
    _redraw_chat(extraction)


def _redraw_chat(extraction: Extraction) -> None:
    """Reload the chat in the person's open pages, which show a notice while the turn's memories are not saved."""
    data = {"workspace_id": extraction.workspace.public_id, "chat_id": extraction.chat_id}
    pubsub.publish(f"user:{extraction.user.public_id}", "chat.changed", data)


def rerun(memory: Memory, *, by: User | None, now: datetime) -> None:
    """Queue a job that runs ``refresh``. Raises Conflict if the memory has no source message."""
    if not memory.source_message_id:
        raise Conflict(_("This memory has no source message to extract from."), code="no_source")
    job = {"memory_id": memory.pk, "by_id": by.pk if by else None, "version": version_of(memory)}
    transaction.on_commit(
        lambda: async_task("memories.tasks.rerun_extraction", task_name="rerun extraction", **job)
    )


def refresh(memory: Memory, *, by: User | None, now: datetime, version: str = "") -> str:
    """Compute a memory's summary, and its content if that was synthesized, again from the source message.

    Reads only what the person ``by`` may see. Changes nothing if the memory no longer has this ``version`` (default:
    its current one). Return the outcome as text for the job log.
    """
    turn = load_message(memory.source_message_id, by)
    if turn is None:
        return "its source message is gone"
    if turn.is_personal and memory.owner_id is None:
        return "its source message is personal, and others read the memory"
    complete = completer_for(turn, memory.workspace, by)
    changes: dict[str, Any] = {}
    name, candidates = candidates_of(turn, complete)
    if candidate := candidate_of(memory, candidates, turn.messages[0][1]):
        changes["summary"] = candidate.text
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
