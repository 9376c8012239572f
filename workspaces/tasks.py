"""Background jobs of workspaces."""

from __future__ import annotations

from django.utils import timezone

from memoryhub.jobs import job
from workspaces import audit
from workspaces.accounts import sessions
from workspaces.rest import once


@job
def sweep() -> str:
    """Every hour: delete what was kept for a time only."""
    now = timezone.now()
    notes, sign_ins, events = once.sweep(now=now), sessions.sweep(now=now), audit.prune(now=now)
    return f"{notes} notes of requests, {sign_ins} sign-ins, {events} events of the audit log deleted"
