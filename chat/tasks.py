"""Background jobs of chats."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from chat.answers.state import close_abandoned
from chat.chats import forgetting, sharing
from chat.exchange import import_run
from chat.models import Chat, Message, MessageStatus
from chat.prompting.short_term import drop_expired
from chat.rendering.rendered import store_html
from chat.runs import worker
from chat.turns import program_turns
from chat.turns.compaction import compact
from chat.turns.titles import write_title
from memoryhub.jobs import job
from workspaces.models import User

TEMPORARY_KEPT = timedelta(hours=24)


@job
def run_import(*, import_id: int) -> str:
    """Look through an import, or store it, for half a job's time; it queues itself again until it is done."""
    return import_run.advance(import_id, seconds=settings.JOB_TIMEOUT / 2)


@job
def work_on_runs() -> str:
    """Do what is ready of all runs, for half a job's time; it queues itself again while something is left."""
    return f"{worker.work(seconds=settings.JOB_TIMEOUT / 2)} steps"


@job
def compact_chat(*, answer_id: int, user_id: int) -> str:
    """Summarise the older messages of the chat that this answer belongs to, for the person whose turn it was."""
    chats = ("chat__workspace__connection", "chat__connection", "chat__agent")
    answer = Message.objects.select_related(*chats).filter(pk=answer_id, chat__deleted_at=None).first()
    user = User.objects.filter(pk=user_id).first()
    if answer is None or user is None:
        return "the answer is gone, or its person"
    return compact(answer, user, now=timezone.now())


@job
def title_chat(*, answer_id: int, user_id: int) -> str:
    """Have the chat of this answer named by the model of the person whose turn it was. A second time it has a name."""
    chats = ("chat__workspace__connection", "chat__connection", "chat__created_by", "reply_to")
    answer = Message.objects.select_related(*chats).filter(pk=answer_id, chat__deleted_at=None).first()
    user = User.objects.filter(pk=user_id).first()
    if answer is None or user is None:
        return "the answer is gone, or its person"
    return write_title(answer, user, now=timezone.now())


@job
def render_answers(*, message_ids: list[int]) -> str:
    """Make and keep the HTML of answers that a page showed without. A second time it finds nothing to do."""
    return f"{store_html(message_ids)} answers rendered"


@job
def sweep() -> str:
    """Run every minute: close answers whose process is gone, drop temporary chats a day after their last message, take
    up imports and runs without a job, delete programs' turns after extraction, delete expired links, and purge what
    was deleted long ago.
    """
    now = timezone.now()
    streaming = Message.objects.filter(status=MessageStatus.STREAMING)
    closed = sum(close_abandoned(answer, now=now) for answer in streaming)
    drop_expired(now=now)
    dropped, _ = Chat.objects.filter(is_temporary=True, active_at__lt=now - TEMPORARY_KEPT).delete()
    imports = import_run.sweep(now=now)
    worker.sweep(now=now)
    program_turns.sweep(now=now)
    sharing.sweep(now=now)
    purged = forgetting.purge(now=now, seconds=settings.JOB_TIMEOUT / 6)
    return f"{closed} abandoned answers, {dropped} temporary rows, {imports} imports, {purged} chats purged"
