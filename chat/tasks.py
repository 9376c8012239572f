"""Background jobs of chats."""

from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from chat.chats import services, sharing
from chat.import_export import import_jobs
from chat.live_answers import close_abandoned
from chat.models import Chat, Message, MessageStatus
from chat.prompting.short_term_memory import drop_expired
from chat.rendering.stored_html import store_html
from chat.runs import worker
from chat.turns import client_turns
from chat.turns.compaction import compact
from chat.turns.titles import write_title
from memoryhub.jobs import job
from workspaces.models import User

TEMPORARY_KEPT = timedelta(hours=24)


@job
def run_import(*, import_id: int) -> str:
    """Check or store an import, for half the job timeout. The job queues itself again until the import has ended."""
    return import_jobs.advance(import_id, seconds=settings.JOB_TIMEOUT / 2)


@job
def work_on_runs() -> str:
    """Perform ready steps of all runs, for half the job timeout. The job queues itself again while steps remain."""
    return f"{worker.work(seconds=settings.JOB_TIMEOUT / 2)} steps"


@job
def compact_chat(*, answer_id: int, user_id: int) -> str:
    """Summarise the older messages of this answer's chat, with the model of the user whose turn it was."""
    return _with_answer(compact, answer_id, user_id)


@job
def title_chat(*, answer_id: int, user_id: int) -> str:
    """Name the chat of this answer, with the model of the user whose turn it was, unless the chat has a name."""
    return _with_answer(write_title, answer_id, user_id)


def _with_answer(work: Callable[..., str], answer_id: int, user_id: int) -> str:
    chat = ("chat__workspace__connection", "chat__connection", "chat__agent", "chat__created_by", "reply_to")
    answer = Message.objects.select_related(*chat).filter(pk=answer_id, chat__deleted_at=None).first()
    user = User.objects.filter(pk=user_id).first()
    if answer is None or user is None:
        return "the answer is gone, or its person"
    return work(answer, user, now=timezone.now())


@job
def render_answers(*, message_ids: list[int]) -> str:
    """Store the HTML of answers that were shown without stored HTML. Repeated jobs have no effect."""
    return f"{store_html(message_ids)} answers rendered"


@job
def sweep() -> str:
    """Clean up after interrupted and expired work. Runs every minute."""
    now = timezone.now()
    streaming = Message.objects.filter(status=MessageStatus.STREAMING)
    closed = sum(close_abandoned(answer, now=now) for answer in streaming)
    drop_expired(now=now)
    dropped, _ = Chat.objects.filter(is_temporary=True, active_at__lt=now - TEMPORARY_KEPT).delete()
    imports = import_jobs.sweep(now=now)
    worker.sweep(now=now)
    client_turns.sweep(now=now)
    sharing.sweep(now=now)
    purged = services.purge(now=now, seconds=settings.JOB_TIMEOUT / 6)
    return f"{closed} abandoned answers, {dropped} temporary rows, {imports} imports, {purged} chats purged"
