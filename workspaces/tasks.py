"""Background jobs of workspaces."""

from __future__ import annotations

from django.utils import timezone

from memoryhub.jobs import job
from workspaces import once


@job
def sweep() -> str:
    """Every hour: delete what was kept for a time only."""
    return f"{once.sweep(now=timezone.now())} notes of requests deleted"
