"""Finding memories across workspaces, for moderation. Recall's search starts from one person and ranks."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.postgres.search import SearchQuery
from django.db.models import Max, QuerySet

from memories.models import Memory
from memories.writing.indexed import CONFIG
from memoryhub.database.queries import EXACT_COUNT_UP_TO
from memoryhub.ids import PATTERN
from workspaces.admin_kit.base import rows_by_id

PARTS_AMONG_NEWEST = 20_000
HELP = (
    "Words or their beginnings, or an id (mem_, ws_, chat_, msg_, usr_). What no word begins with is looked for "
    f"inside the text of the newest {PARTS_AMONG_NEWEST:,}."
)
ID_FIELDS = {
    "mem": "public_id",
    "ws": "workspace__public_id",
    "chat": "source_chat_id",
    "msg": "source_message_id",
    "usr": "author__public_id",
}


def search_memories(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """The rows that match, in the order they had. An id is exact; all words match, by their beginnings.

    Only these rows are asked: whether others have a word would show in which way is taken.
    """
    if not text or PATTERN.fullmatch(text):
        return rows_by_id(rows, text, ID_FIELDS)
    words = re.findall(r"\w+", text)[:12]
    if words:
        # Only word characters get between the quotes, so nothing in the text can be an operator.
        query = SearchQuery(" & ".join(f"'{word}':*" for word in words), config=CONFIG, search_type="raw")
        found = _some_keys(rows.filter(search=query))
        if len(found) > EXACT_COUNT_UP_TO:
            return rows.filter(search=query)
        if found:
            return rows.filter(pk__in=found)
    newest = Memory.objects.aggregate(newest=Max("pk"))["newest"] or 0
    parts = rows.filter(pk__gt=newest - PARTS_AMONG_NEWEST, content__icontains=text)
    return rows.filter(pk__in=_some_keys(parts))


def _some_keys(rows: QuerySet[Any]) -> list[int]:
    """The keys of the first matches, without an order of dates.

    The planner takes every beginning of a word for a common one and would walk all memories by date to find the
    few that have it. Keys first, it asks the word index.
    """
    return list(rows.order_by().values_list("pk", flat=True)[: EXACT_COUNT_UP_TO + 1])
