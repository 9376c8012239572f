"""Search of chats and messages.

It matches prefixes of words, in any language (``MessageWords``). If nothing matches, it looks for substrings in the
newest messages, for languages without spaces. Messages that an edit replaced are not searched. Messages are ranked by
how many of the query's words they contain; rare words count more (``workspaces.index.scores``).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from chat.models import Chat, ChatQuerySet, Message, MessageStatus, PersonalUse
from memories.recalling.workspace_search import Found
from memoryhub.database.queries import current_connection
from memoryhub.llm.errors import ModelNotLocal
from workspaces.data_policy import DataPolicy
from workspaces.index.scores import FLOOR, excerpt, score_of
from workspaces.models import User, Workspace

LONGEST = 200  # characters of a query that are used
NEWEST = 5_000  # limit of messages with the words; the newest are searched
PARTS_AMONG_NEWEST = 2_000  # limit of messages searched for parts of words
BEFORE, AFTER = 40, 110  # characters shown before and after a match

# Any query is safe, because Postgres parses it as words, each of which becomes a prefix. The workspace is one of the
# indexed words, so that the size of other workspaces does not matter. ``+ 0`` stops the planner from scanning by id.
WORDS = r"""
    SELECT message_id FROM chat_messagewords
    WHERE words @@ (%(places)s::tsquery && regexp_replace(
        plainto_tsquery('simple', %(question)s)::text, '''( & | <-> |$)', ''':*\1', 'g')::tsquery)
    AND numnode(plainto_tsquery('simple', %(question)s)) > 0
    ORDER BY message_id + 0 DESC LIMIT %(most)s
"""
_SAID = f"""
SELECT message.id FROM ({WORDS}) found JOIN chat_message message ON message.id = found.message_id
WHERE message.superseded_by_id IS NULL AND message.status <> 'streaming'
"""  # noqa: S608  constants only

Pieces = Sequence[tuple[str, bool]]  # a text split at its matches; True for a match


@dataclass(frozen=True)
class Match:
    """The newest matching message of a chat, with an excerpt of its text."""

    message_id: str
    pieces: Pieces
    is_imported: bool = False

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)

    @property
    def highlights(self) -> list[tuple[int, int]]:
        """Return the ranges of the matches in ``text``."""
        ranges, at = [], 0
        for text, is_found in self.pieces:
            if is_found:
                ranges.append((at, at + len(text)))
            at += len(text)
        return ranges


def matching(chats: ChatQuerySet, question: str, *, reader: User, within: Iterable[int]) -> ChatQuerySet:
    """Filter chats to those with all words of the search in the title or in one message that the reader may read.

    ``chats`` must be visible to the reader. ``within``: keys of their workspaces. At most three additional queries.
    """
    question = _without_nulls(question)
    titled = Q()
    for word in question.split():
        titled &= Q(title__icontains=word)
    messages = Message.objects.filter(pk__in=_messages_with(question, within)).readable_by(reader)
    by_words = chats.filter(titled | Q(pk__in=messages.values("chat")))
    if by_words.exists():
        return by_words
    return chats.filter(pk__in=_with_parts(chats, question, reader).values("chat"))


def matches_in(chats: Sequence[Chat], question: str, *, reader: User) -> dict[int, Match]:
    """Return each chat's newest message that matches the search, by the chat's primary key. At most three queries."""
    question = _without_nulls(question)
    here = Chat.objects.filter(pk__in=[chat.pk for chat in chats])
    keys = _messages_with(question, {chat.workspace_id for chat in chats})
    by_words = Message.objects.filter(pk__in=keys, chat__in=here).readable_by(reader)
    for messages in (by_words, _with_parts(here, question, reader)):
        newest = messages.order_by("chat_id", "-pk").distinct("chat_id")
        rows = newest.values_list("chat_id", "public_id", "content", "imported_at")
        matches = {
            chat: Match(message, pieces_of(content, question), imported_at is not None)
            for chat, message, content, imported_at in rows
        }
        if matches:
            return matches
    return {}


def pieces_of(text: str, question: str) -> Pieces:
    """Return an excerpt around the first match of a search query, as pairs of (text, whether it matches)."""
    words = {re.escape(word) for word in re.findall(r"\w+", _without_nulls(question))}
    either = "|".join(sorted(words, key=len, reverse=True))
    text = " ".join(text.split())
    if not words:
        return [(text[: BEFORE + AFTER], False)]
    begins = re.compile(rf"(?<!\w)(?:{either})", re.IGNORECASE)
    somewhere = re.compile(either, re.IGNORECASE)
    pattern = begins if begins.search(text) else somewhere
    first = pattern.search(text)
    start, end = _window(text, *(first.span() if first else (0, 0)))
    shown = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    pieces: list[tuple[str, bool]] = []
    at = 0
    for match in pattern.finditer(shown):
        pieces += [(shown[at : match.start()], False), (match[0], True)]
        at = match.end()
    return [piece for piece in [*pieces, (shown[at:], False)] if piece[0]]


def _window(text: str, begins: int, ends: int) -> tuple[int, int]:
    """Return start and end of the excerpt around a match, at spaces if possible."""
    start = max(0, begins - BEFORE)
    end = start + BEFORE + AFTER
    if start:
        start = text.find(" ", start - 1, begins) + 1 or start
    if end < len(text):
        blank = text.rfind(" ", ends, end + 1)
        end = blank if blank > 0 else end
    return start, end


def _messages_with(question: str, places: Iterable[int]) -> list[int]:
    """Return the keys of messages with the query's words in the workspaces ``places``. Does not check access."""
    at = " | ".join(f"'at:{place}'" for place in places)
    if not at:
        return []
    with current_connection().cursor() as cursor:
        cursor.execute(_SAID, {"places": at, "question": question, "most": NEWEST})
        return [key for (key,) in cursor.fetchall()]


def _with_parts(chats: QuerySet[Chat], question: str, reader: User) -> QuerySet[Message]:
    messages = Message.objects.current().filter(chat__in=chats.order_by()).readable_by(reader)
    messages = messages.exclude(status=MessageStatus.STREAMING)
    newest = messages.order_by("-pk").values("pk")[:PARTS_AMONG_NEWEST]
    matches = Message.objects.filter(pk__in=newest)
    for word in question.split():
        matches = matches.filter(content__icontains=word)
    return matches if question else matches.none()


def _without_nulls(question: str) -> str:
    return " ".join(question.replace("\x00", " ")[:LONGEST].split())


LONGEST_QUERY = 400  # characters of a query that are used
NEWEST_MESSAGES = 2_000  # limit of messages with any of the words; the newest are ranked
COUNTED_AT_MOST = 20_000  # limit for counting messages; above it the weights hardly change

# Each word of the query is stemmed and matches words with this prefix. ``+ 0`` stops the planner from scanning by id,
# as in ``WORDS``.
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
    query: str, workspace: Workspace, user: User, *, limit: int, policy: DataPolicy, private_chats: bool
) -> list[Found]:
    """Return the messages in this workspace that match best and that the user may read. Four queries.

    Leaves out temporary chats, replaced messages, private chats unless ``private_chats`` is set, and data that
    ``policy`` forbids. Raises ModelNotLocal if the workspace's data may not leave this machine.
    """
    if policy.leaves and workspace.local_only:
        raise ModelNotLocal
    query = " ".join(query.replace("\x00", " ")[:LONGEST_QUERY].split())
    chats = Chat.objects.visible_to(user).live().filter(workspace=workspace, is_temporary=False)
    if not private_chats or not policy.personal:
        chats = chats.filter(is_private=False)
    messages = Message.objects.current().filter(chat__in=chats).exclude(status=MessageStatus.STREAMING)
    messages = messages.readable_by(user)
    if not policy.personal:
        messages = messages.filter(personal=PersonalUse.NONE)
    if policy.leaves:
        messages = messages.filter(stays_here=False)
    matched, terms = _candidates(query, workspace)
    visible = set(messages.filter(pk__in=matched).values_list("pk", flat=True))
    if not visible or limit < 1:
        return []
    among = len(messages.values("pk")[:COUNTED_AT_MOST])
    weights = _weights({pk: matched[pk] for pk in visible}, terms, among)
    shares = {pk: sum(weights[term] for term in matched[pk]) / sum(weights.values()) for pk in visible}
    scores = {pk: score_of(None, share) for pk, share in shares.items()}
    best = sorted((pk for pk in visible if scores[pk] >= FLOOR), key=lambda pk: (-scores[pk], -pk))[:limit]
    rows = messages.select_related("chat", "author", "imported_by").in_bulk(best)
    return [_shown(rows[pk], scores[pk], query) for pk in best if pk in rows]


def _candidates(query: str, workspace: Workspace) -> tuple[dict[int, list[int]], int]:
    """Return the numbers of the words in each matching message, and how many words there are. Does not check access."""
    params: dict[str, str | int] = {"query": query, "place": f"'at:{workspace.pk}'", "most": NEWEST_MESSAGES}
    with current_connection().cursor() as cursor:
        cursor.execute(_CANDIDATES, params)
        rows = cursor.fetchall()
    return {key: numbers for key, numbers, _terms in rows}, rows[0][2] if rows else 0


def _weights(matched: Mapping[int, list[int]], terms: int, among: int) -> dict[int, float]:
    """Return the weight of each of the ``terms`` words: its BM25 idf over ``among`` messages that the user may see."""
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
