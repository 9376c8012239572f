"""Using the admin as its pages are used: what asks first is answered."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.test import Client


def run_action(client: Client, page: str, action: str, *rows: Any, **more: Any) -> HttpResponse:
    """Choose an action for these rows of a list, and say yes on the page that asks. The list that comes of it."""
    chosen = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    asked: Any = client.post(page, chosen)
    if asked.status_code != 200 or "confirmed" not in (asked.context or {}):
        return client.get(asked["Location"]) if asked.status_code == 302 else asked  # type: ignore[return-value]
    answer = {"action": action, "_selected_action": [rows[0].pk], "confirmed": asked.context["confirmed"]}
    return client.post(page, answer, follow=True)  # type: ignore[return-value]


def said(response: Any) -> list[str]:
    """The sentences above a page."""
    return [str(message) for message in response.context["messages"]]
