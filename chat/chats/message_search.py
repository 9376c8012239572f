"""Messages that say something about a query, best first, among the chats that a person may see.

By their words: how much of the query's weight stands in a message, a word weighing more the fewer messages of those
chats have it. Its score is that of any text that is found by words alone (``workspaces.index.scores``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from django.db import connection

from chat.models import Chat, Message, MessageStatus, PersonalUse
from memories.recalling.workspace_search import Found
from memoryhub.llm.errors import ModelNotLocal
from workspaces.index.scores import FLOOR, excerpt, score_of
from workspaces.models import User, Workspace
from workspaces.policy import Reach

LONGEST = 400  # characters of a query that are looked at
NEWEST = 2_000  # of the messages with any of the words, these are looked at
COUNTED_AT_MOST = 20_000  # of the messages: beyond, what a word weighs hardly moves

# A word of the query is its stem, and stands wherever a word begins so. The sum keeps the planner from reading all the
# newest messages instead, as in ``chat.chats.chat_search``.
_CANDIDATES = r"""
WITH terms AS MATERIALIZED (
    SELECT (row_number() OVER ())::int AS number,
           ('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || ''':*')::tsquery AS term
    FROM unnest(to_tsvector('english', %(query)s))
), found AS MATERIALIZED (
    SELECT message_id, words FROM chat_messagewords
    WHERE words @@ (%(place)s::tsquery && (SELECT string_agg(term::text, ' | ')::tsquery FROM terms))
    ORDER BY message_id + 0 DESC LIMIT %(most)s
)
SELECT message_id, ARRAY(SELECT number FROM terms WHERE words @@ term), (SELECT count(*) FROM terms) FROM found
"""


def find_messages(
    query: str, workspace: Workspace, user: User, *, limit: int, reach: Reach, private_chats: bool
) -> list[Found]:
    """Of this workspace's chats what the person may read; of their private ones only with ``private_chats``, and
    nothing personal where others read along; never of temporary chats, nor what an edit set aside. Four queries.
    """
    if reach.leaves and workspace.local_only:
        raise ModelNotLocal
    query = " ".join(query.replace("\x00", " ")[:LONGEST].split())
    chats = Chat.objects.visible_to(user).live().filter(workspace=workspace, is_temporary=False)
    if not private_chats or not reach.personal:
        chats = chats.filter(is_private=False)
    said = Message.objects.current().filter(chat__in=chats).exclude(status=MessageStatus.STREAMING)
    said = said.readable_by(user)
    if not reach.personal:
        said = said.filter(personal=PersonalUse.NONE)
    if reach.leaves:
        said = said.filter(stays_here=False)
    matched, terms = _candidates(query, workspace)
    visible = set(said.filter(pk__in=matched).values_list("pk", flat=True))
    if not visible or limit < 1:
        return []
    weights = _weights({pk: matched[pk] for pk in visible}, terms, len(said.values("pk")[:COUNTED_AT_MOST]))
    scores = {
        pk: score_of(None, sum(weights[term] for term in matched[pk]) / sum(weights.values()))
        for pk in visible
    }
    best = sorted((pk for pk in visible if scores[pk] >= FLOOR), key=lambda pk: (-scores[pk], -pk))[:limit]
    rows = said.select_related("chat", "author", "imported_by").in_bulk(best)
    return [_shown(rows[pk], scores[pk], query) for pk in best if pk in rows]


def _candidates(query: str, workspace: Workspace) -> tuple[dict[int, list[int]], int]:
    """Of whoever's messages in this workspace which of the query's words each has, and how many words there are."""
    given: dict[str, str | int] = {"query": query, "place": f"'at:{workspace.pk}'", "most": NEWEST}
    with connection.cursor() as cursor:
        cursor.execute(_CANDIDATES, given)
        rows = cursor.fetchall()
    return {key: numbers for key, numbers, _terms in rows}, rows[0][2] if rows else 0


def _weights(matched: Mapping[int, list[int]], terms: int, among: int) -> dict[int, float]:
    """Of each word how rare it is (the idf of BM25), counted among what the person may see and nothing else."""
    weights = {}
    for term in range(1, terms + 1):
        having = sum(term in numbers for numbers in matched.values())
        weights[term] = math.log(1 + (max(among, having) - having + 0.5) / (having + 0.5))
    return weights


def _shown(message: Message, score: float, query: str) -> Found:
    return Found(
        "message",
        message.public_id,
        excerpt(message.content, query),
        score,
        message.created_at,
        str(message.chat),
        chat_id=message.chat.public_id,
        personal=message.chat.is_private or message.personal != PersonalUse.NONE,
        stays_here=message.stays_here,
        is_imported=message.is_imported,
        imported_by=message.imported_by,
        written_by=message.written_by,
    )
