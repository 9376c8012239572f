"""Finding memories across workspaces, for moderation. Recall's search starts from one person and ranks."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.postgres.search import SearchQuery
from django.db.models import Max, QuerySet

from memories.models import Memory
from memories.words import CONFIG
from memoryhub.ids import PATTERN

PARTS_AMONG_NEWEST = 20_000
HELP = (
    f"Words or their beginnings, or an id (mem_, ws_, chat_, msg_, usr_). "
    f"What no word begins with is looked for inside the text of the newest {PARTS_AMONG_NEWEST:,}."
)
ID_FIELDS = {
    "mem": "public_id",
    "ws": "workspace__public_id",
    "chat": "source_chat_id",
    "msg": "source_message_id",
    "usr": "author__public_id",
}


def search_memories(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """The rows that match, in the order they had. An id is exact; all words match, by their beginnings."""
    text = text.strip()
    if not text:
        return rows
    if PATTERN.fullmatch(text):
        field = ID_FIELDS.get(text.split("_")[0])
        return rows.filter(**{field: text}) if field else rows.none()
    words = re.findall(r"\w+", text)[:12]
    if words:
        # Only word characters get between the quotes, so nothing in the text can be an operator.
        query = SearchQuery(" & ".join(f"'{word}':*" for word in words), config=CONFIG, search_type="raw")
        found = rows.filter(search=query)
        if found.order_by().exists():
            return found
    newest = Memory.objects.aggregate(newest=Max("pk"))["newest"] or 0
    return rows.filter(pk__gt=newest - PARTS_AMONG_NEWEST, content__icontains=text)
