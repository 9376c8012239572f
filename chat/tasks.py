"""Background jobs of chats."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from chat import forgetting
from chat.actions import close_abandoned
from chat.models import Chat, Message, MessageStatus
from memoryhub.jobs import job

TEMPORARY_KEPT = timedelta(hours=24)


@job
def sweep() -> str:
    """Every minute: close answers whose process is gone, drop temporary chats a day after their last message, and
    purge what was deleted long ago.
    """
    now = timezone.now()
    streaming = Message.objects.filter(status=MessageStatus.STREAMING)
    closed = sum(close_abandoned(answer, now=now) for answer in streaming)
    dropped, _ = Chat.objects.filter(is_temporary=True, active_at__lt=now - TEMPORARY_KEPT).delete()
    purged = forgetting.purge(now=now, seconds=settings.JOB_TIMEOUT / 6)
    return f"{closed} abandoned answers, {dropped} temporary rows, {purged} chats purged"
