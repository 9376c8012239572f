"""Outbox of a workspace's webhooks: events are recorded in the transaction in which they happen.

So a rolled-back event is sent to nobody, and a committed one to everybody, even if a process dies: the rows are there.
What text goes along is read at the moment that it is sent (``text_of``): no delivery holds a word that somebody wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import connection, transaction
from django.utils import timezone
from django_q.tasks import async_task

from memoryhub.database.queries import Ready
from workspaces.models import Webhook, WebhookDelivery, Workspace

TextLoader = Callable[[Workspace, str], Mapping[str, Any] | None]
_loaders: dict[str, TextLoader] = {}
_ONE_JOB = "webhooks.job"
# Asked at every save: nearly always there is none.
_ENABLED = Ready(
    lambda workspace: Webhook.objects.filter(workspace_id=workspace, disabled_at=None), workspace=int
)


def register_text(kind: str, loader: TextLoader) -> None:
    """Register the loader of a ``kind``'s text ("memory") for webhooks: None if it is gone, or not everybody's."""
    _loaders[kind] = loader


def text_of(workspace: Workspace, kind: str, about: str) -> Mapping[str, Any] | None:
    return _loaders[kind](workspace, about)


def emit(workspace_id: int, event: str, abouts: Sequence[str], *, action: str) -> None:
    """Note for each webhook that wants to know of it that ``event`` happened to these (public ids), and queue telling
    them. In the caller's transaction; one small query where nobody wants to know.
    """
    hooks = [hook for hook in _ENABLED.all(workspace=workspace_id) if event in hook.events]
    now = timezone.now()
    told = [
        WebhookDelivery(
            webhook=hook, event=event, about=about, action=action, created_at=now, next_attempt_at=now
        )
        for hook in hooks
        for about in abouts
    ]
    WebhookDelivery.objects.bulk_create(told, batch_size=1000)
    # Those that fail are tried once in a while, and nobody waits for them.
    if any(hook.failing_since is None for hook in hooks):
        queue_sending()


def queue_sending() -> None:
    """After the running transaction, once for all that is noted in it."""
    if not any(waiting[1] is queue_one for waiting in connection.run_on_commit):
        transaction.on_commit(queue_one)


def queue_one() -> None:
    """Unless a job is queued or runs, which looks again before it ends (``release``): however slow receivers are, they
    hold one worker. A mark that a killed process left ends by itself.
    """
    if cache.add(_ONE_JOB, True, settings.JOB_TIMEOUT):
        async_task("workspaces.tasks.tell_webhooks", task_name="tell webhooks")


def hold() -> None:
    """The job has begun: from now on it has the whole of its time."""
    cache.set(_ONE_JOB, True, settings.JOB_TIMEOUT)


def release() -> None:
    """Let each event from now on queue a job; earlier ones are the caller's to look for after this."""
    cache.delete(_ONE_JOB)
