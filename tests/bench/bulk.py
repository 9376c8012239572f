"""Bulk inserts by SQL, for measuring and for reading query plans; they bypass the write rules."""

from django.db import connection

from workspaces.models import User, Workspace

WORKSPACES = 50
RARE = 20  # rows of each kind that waits for a decision

# Row n: 1 % forgotten, 1 % expired, and RARE each without vector, failed and linked to an older one.
_MEMORIES = """
INSERT INTO memories_memory (
    public_id, workspace_id, scope, author_id, content, category, tags, importance, pinned, expires_at,
    source_type, source_chat_id, source_message_id, source_excerpt, source_details, content_hash,
    embedding_failed_at, created_at, updated_at, deleted_at, search, review, secret_rules)
SELECT 'mem_' || substr(md5('memory' || n), 1, 24), (%(workspaces)s::bigint[])[1 + n %% %(count)s], 'workspace',
    %(author)s, text,
    (ARRAY['fact', 'preference', 'decision', 'event', NULL, 'instruction', 'recipe'])[1 + n %% 7], '{}', 0.5,
    n %% 100 = 3, CASE WHEN n %% 100 = 2 THEN now() - interval '1 day' END,
    (ARRAY['user', 'auto_chat', 'model', 'user', 'auto_chat', 'zotero'])[1 + n %% 6],
    'chat_' || substr(md5('chat' || n / 10), 1, 24), 'msg_' || substr(md5('message' || n), 1, 24),
    repeat('somebody said something around it ', 20), '{}', md5(text),
    CASE WHEN n %% (%(rows)s / %(rare)s) = 5 THEN now() END,
    now() - make_interval(mins => %(rows)s - n), now(),
    CASE WHEN n %% 100 = 1 THEN now() END,
    to_tsvector('english', text), '', 0
FROM (SELECT n, 'Note ' || n || ': the ' || (ARRAY['kettle', 'bicycle', 'garden', 'piano'])[1 + n %% 4]
             || ' number ' || md5(n::text) || ' belongs to the '
             || (ARRAY['red', 'green', 'blue'])[1 + n %% 3] || ' house' AS text
      FROM generate_series(1, %(rows)s) n) texts
"""
_LINKS = """
UPDATE memories_memory m SET may_replace_id = older.id FROM memories_memory older
WHERE m.id %% (%(rows)s / %(rare)s) = 7 AND older.id = m.id - 1
"""
_VECTORS = """
INSERT INTO workspaces_passagevector (kind, ref, place, model, dimension, live, embedding)
SELECT 1, id, workspace_id, %(model)s, 384, deleted_at IS NULL,
    array_fill(0.05::real, ARRAY[384])::halfvec
FROM memories_memory WHERE id %% (%(rows)s / %(rare)s) <> 9
"""
_MESSAGES = """
INSERT INTO chat_message (
    public_id, chat_id, role, content, status, error_code, error, memory_enabled, model, attempt, stop_requested,
    other_chats, personal, stays_here, created_at)
SELECT 'msg_' || substr(md5('message' || n), 1, 24), %(chat)s, (ARRAY['user', 'assistant'])[1 + n %% 2],
    repeat('A long answer about kettles. ', 40), 'done', '', '', false, '', 1, false,
    '{}', '', false, now()
FROM generate_series(1, %(rows)s) n
"""


def insert_memories(rows: int, *, author: User, model: str | None) -> list[Workspace]:
    """Insert ``rows`` memories spread over 50 workspaces, nearly all with a vector of ``model``."""
    names = [Workspace(name=f"Workspace {number}") for number in range(WORKSPACES)]
    workspaces = Workspace.objects.bulk_create(names)
    parameters = {
        "workspaces": [workspace.pk for workspace in workspaces],
        "count": WORKSPACES,
        "author": author.pk,
        "rows": rows,
        "rare": RARE,
        "model": model,
    }
    with connection.cursor() as cursor:
        cursor.execute(_MEMORIES, parameters)
        cursor.execute(_LINKS, parameters)
        if model is not None:
            cursor.execute(_VECTORS, parameters)
        cursor.execute("ANALYZE memories_memory, workspaces_passagevector")
    return workspaces


def insert_messages(rows: int, *, chat_id: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_MESSAGES, {"rows": rows, "chat": chat_id})
        cursor.execute("ANALYZE chat_message")
