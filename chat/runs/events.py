"""Events of a run: recorded in the database, published, and followed by pages and clients."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

from chat.live_answers import in_thread
from chat.models.runs import Run, RunEvent
from memoryhub import pubsub
from memoryhub.database import queries
from memoryhub.errors import NotFound
from workspaces.access import get_workspace
from workspaces.models import User


def run_channel(run_id: str) -> str:
    return f"run:{run_id}"


def record_status(run: Run, *, now: datetime) -> None:
    """Record and publish the run's new status."""
    record_events(run, [RunEvent(run_id=run.pk, kind="run", data={"status": run.status}, at=now)])


_TELL = """
WITH stored AS (
    INSERT INTO chat_runevent (run_id, step, kind, data, at)
    SELECT %(run)s::bigint, * FROM jsonb_to_recordset(%(happened)s::jsonb)
        AS event (step text, kind text, data jsonb, at timestamptz)
)
SELECT pg_notify(%(channel)s, payload) FROM jsonb_array_elements_text(%(payloads)s::jsonb) AS payload
"""


def record_events(run: Run, happened: Sequence[RunEvent]) -> None:
    """Store and publish events, in order. One statement for all, since events are half of a step's writes."""
    if not happened:
        return
    rows = [{"step": e.step, "kind": e.kind, "data": e.data, "at": e.at.isoformat()} for e in happened]
    kinds = dict.fromkeys(event.kind for event in happened)
    channel = run_channel(run.public_id)
    told = [pubsub.payload(channel, kind) for kind in kinds]
    parameters = {"run": run.pk, "happened": json.dumps(rows), "payloads": json.dumps(told)}
    queries.rows(_TELL, parameters | {"channel": pubsub.NOTIFY_CHANNEL}, binary=False)


POLL = 2.0  # seconds between queries without a notification
# Events queried again, since concurrent events may be committed in another order than their ids.
OVERLAP = 100
MOST_AT_ONCE = 500


async def follow_run(user: User, workspace_id: str, run: Run, *, after: int) -> AsyncGenerator[str, None]:
    """Yield the run's events after this id as server-sent events. Raises NotFound once the user may not see it."""
    sent: set[int] = set()
    async with pubsub.subscription(run_channel(run.public_id)) as listening:
        while True:
            seen_from = max(after, max(sent, default=0) - OVERLAP)
            new_events, is_over = await in_thread(_new_events, user.pk, workspace_id, run.pk, seen_from)
            fresh = [event for event in new_events if event.pk not in sent]
            for event in fresh:
                data = {"step": event.step or None, "at": event.at.isoformat(), **event.data}
                yield f"id: {event.pk}\nevent: {event.kind}\ndata: {json.dumps(data)}\n\n"
                sent.add(event.pk)
            if fresh:
                continue
            if is_over:
                yield "event: done\ndata: {}\n\n"
                return
            await listening.get(POLL)


def _new_events(user_pk: int, workspace_id: str, run_pk: int, after: int) -> tuple[list[RunEvent], bool]:
    """Return the events after this id, and whether the run is over. Raises NotFound if it is not visible any more."""
    user = User.objects.filter(pk=user_pk, is_active=True).first()
    if user is None:
        raise NotFound
    get_workspace(user, workspace_id)
    run = Run.objects.visible_to(user).filter(pk=run_pk).first()
    if run is None:
        raise NotFound
    return list(run.events.filter(pk__gt=after)[:MOST_AT_ONCE]), run.is_over
