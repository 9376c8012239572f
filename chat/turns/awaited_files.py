"""A message waits until the files that came with it are read: visibly, and not for long."""

from __future__ import annotations

import asyncio
import time

from django.conf import settings

from chat.answers.live import LiveAnswer
from chat.answers.threads import in_thread
from chat.models import Message
from chat.models.steps import Step, StepKind, StepOutcome
from chat.modes.steps import begin, end
from workspaces.documents.reading_jobs import with_shares
from workspaces.models import Document, DocumentStatus

POLL = 0.5  # seconds
INDEXED_WITHIN = 10.0  # seconds of the wait that are for vectors: until they are there, words find a file
UNREAD = (DocumentStatus.WAITING, DocumentStatus.READING)


async def wait_for_files(live: LiveAnswer) -> None:
    """Wait for the documents that the question names, at most ``FILE_WAIT_SECONDS``, with a step that tells which, and
    in the end which were not read. One query where none is named or all are ready.
    """
    step = await in_thread(_begin, live)
    if step is None:
        return
    began = read_at = time.monotonic()
    while not live.stop_requested.is_set():
        now, states = time.monotonic(), {each.status for each in await in_thread(_named, live)}
        if states & set(UNREAD):
            read_at = now
        elif DocumentStatus.INDEXING not in states or now - read_at >= INDEXED_WITHIN:
            break
        if now - began >= settings.FILE_WAIT_SECONDS:
            break
        await asyncio.sleep(POLL)
    await in_thread(_end, live, step)


def _named(live: LiveAnswer) -> list[Document]:
    question = Message.objects.filter(answers__pk=live.pk).values_list("only_documents", flat=True).first()
    return list(Document.objects.live().filter(public_id__in=question)) if question else []


def _begin(live: LiveAnswer) -> Step | None:
    if live.attempt > 1:
        Step.objects.filter(message_id=live.pk, kind=StepKind.READING).delete()
    unready = [each for each in _named(live) if each.status in (*UNREAD, DocumentStatus.INDEXING)]
    if not unready or (
        settings.FILE_WAIT_SECONDS == 0 and all(each.status not in UNREAD for each in unready)
    ):
        return None
    Message.objects.filter(pk=live.pk).update(has_thoughts=True)
    return begin(live, StepKind.READING, findings=_findings(unready))


def _end(live: LiveAnswer, step: Step) -> None:
    awaited = {found["document"] for found in step.findings}
    named = [each for each in _named(live) if each.public_id in awaited]
    step.findings = _findings(named)
    states = {each.status for each in named}
    if states & set(UNREAD):
        outcome = StepOutcome.TIMEOUT
    else:
        outcome = StepOutcome.ERROR if DocumentStatus.FAILED in states else StepOutcome.READ
    end(live, step, StepOutcome.STOPPED if live.stop_requested.is_set() else outcome)


def _findings(documents: list[Document]) -> list[dict[str, object]]:
    """By their ids: a title may be forgotten."""
    return [
        {"document": each.public_id, "status": each.status, "by_meaning": each.by_meaning}
        for each in with_shares(documents)
    ]
