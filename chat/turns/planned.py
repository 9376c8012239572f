"""Research whose plan has been looked at: the run goes on, and the answer it is for is written on in its place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from chat.agents.runs import resume_run
from chat.models import Message, MessageStatus
from chat.models.runs import Run, RunStatus
from chat.turns import earlier_versions
from chat.turns.retry import is_last, stream_again
from workspaces.models import User


def go_on_with(
    run: Run, *, by: User, now: datetime, plan: object = None, budget: Mapping[str, int] | None = None
) -> Run:
    """``resume_run`` for every door. Where the plan of a chat's last answer has waited, the answer waits for the report
    from now on; of any other answer the report is found with the run. Raises what ``resume_run`` raises.
    """
    answer = run.answer
    if answer is None or run.status != RunStatus.WAITING or answer.chat.deleted_at is not None:
        return resume_run(run, by=by, now=now, plan=plan, budget=budget)
    with transaction.atomic():
        earlier_versions.lock_conversation(answer.chat)
        locked = Message.objects.select_for_update(of=("self",)).select_related("chat").get(pk=answer.pk)
        resumed = resume_run(run, by=by, now=now, plan=plan, budget=budget)
        if locked.status != MessageStatus.STREAMING and is_last(locked):
            stream_again(locked, by=run.user_id, now=now)
    return resumed
