"""Helpers that use the admin as its pages do, confirming actions that ask for confirmation."""

from typing import Any

from django.contrib.auth.models import Permission
from django.db import connection
from django.http import HttpResponse
from django.test import Client

from tests.factories import make_user


def staff(*codenames: str, **fields: Any) -> Client:
    client, user = Client(), make_user(is_staff=True, **fields)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return client


def run_action(client: Client, page: str, action: str, *rows: Any, **more: Any) -> HttpResponse:
    """Run an admin action on these rows and confirm it as its page does. Return the list page that follows."""
    chosen = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    asked: Any = client.post(page, chosen)
    if asked.status_code != 200 or "keys" not in (asked.context or {}):
        return client.get(asked["Location"]) if asked.status_code == 302 else asked  # type: ignore[return-value]
    answer = {"action": action, "_selected_action": asked.context["keys"], "confirmed": "yes"}
    return client.post(page, answer, follow=True)  # type: ignore[return-value]


def figures(response: Any) -> dict[str, Any]:
    """Return the figures of the first page by their labels."""
    return {figure.label: figure for group in response.context["groups"].values() for figure in group}


def said(response: Any) -> list[str]:
    """Return the messages shown above a page."""
    return [str(message) for message in response.context["messages"]]


def rows_scanned(statement: str) -> int:
    """Return how many rows of memories sequential scans of this statement really read."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + statement)
        nodes, read = [cursor.fetchone()[0][0]["Plan"]], 0
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] == "memories_memory":
            read += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return read
