"""Turns of API clients, which keep the conversation themselves and send it whole each time.

The text of such a turn is stored until memories have been extracted. Then a fingerprint remains, so that a repeated
turn is not extracted again.
"""

import json
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils.crypto import salted_hmac

from chat.models import PassingTurn
from memories.judging.extraction.speaker import Provenance, Source
from memories.models import Extraction, Memory, SourceType
from memories.models.extraction import ExtractionStatus
from memories.models.memory import MemoryQuerySet
from memories.writing.drafts import cut_at_word
from memories.writing.drafts_from_turns import TurnText
from memories.writing.extraction_jobs import queue_extraction
from memoryhub.database.queries import PreparedQuery
from memoryhub.ids import LENGTH
from memoryhub.llm.base import Speaker
from workspaces.data_policy import Caller
from workspaces.models import Membership, User
from workspaces.models.language_models import Connection

PREFIX = "turn_"
SAID = 5  # messages stored per turn, including the question
MOST_WORDS = 10_000  # words stored of what the model was shown
TEXT_LENGTH = 32_000  # characters per message, as in a chat
EXCERPT_LENGTH = 1_000  # characters per message
ANSWERED_WITHIN = timedelta(minutes=15)  # after that the request or the client's tool call is considered lost
MARKED = timedelta(hours=24)  # how long fingerprints are kept; a turn repeated later is extracted again
SWEPT = 200


def _saved(conversation: str, user: int, now: datetime) -> MemoryQuerySet:
    rows = Memory.objects.visible_to(User(pk=user)).live(now).filter(source_chat_id=conversation)
    return rows.order_by("-created_at", "-pk").only("public_id")


_SAVED = PreparedQuery(_saved, conversation=str, user=int, now=datetime)


@dataclass(frozen=True)
class Said:
    """A conversation up to and including its question. ``lines`` are (role, text) pairs, the question last."""

    lines: Sequence[tuple[str, str]]

    @property
    def question(self) -> str:
        return self.lines[-1][1]


@dataclass(frozen=True)
class Shown:
    """The words in a prompt that the user did not write. ``more``: there are others, unknown or beyond the limit."""

    words: Set[str] = frozenset()
    more: bool = False


def conversation_id(caller: Caller, conversation: Said) -> str:
    """Return an id for all turns of a conversation, derived from its first user message, as clients send none."""
    first = next(text for role, text in conversation.lines if role == "user")
    return "conv_" + _hash("conversation", caller, first)[:LENGTH]


def begin(
    caller: Caller, conversation: Said, shown: Shown, *, used: Sequence[str], connection: Connection | None
) -> PassingTurn | None:
    """Record a turn of an API client before its answer is sent. Two queries.

    Return None for a repeated request whose turn has already ended. ``used``: ids of the recalled memories.
    """
    defaults = {
        "workspace": caller.workspace,
        "user": caller.person,
        "connection": connection,
        "conversation": conversation_id(caller, conversation),
        "said": [[role, cut_at_word(text, TEXT_LENGTH)] for role, text in conversation.lines[-SAID:]],
        "shown": sorted(shown.words)[:MOST_WORDS],
        "shown_more": shown.more or len(shown.words) > MOST_WORDS,
        "memory_ids": list(used),
        "created_at": caller.now,
    }
    mark = _hash("turn", caller, *(part for line in conversation.lines for part in line))
    turn, created = PassingTurn.objects.get_or_create(fingerprint=mark, defaults=defaults)
    if not created and turn.ended_at is not None:
        return None
    if not created:  # another round of the turn, with the results of the client's tools
        words = {*turn.shown, *shown.words}  # the answer may also draw on an earlier round
        turn.shown, turn.memory_ids = sorted(words)[:MOST_WORDS], list({*turn.memory_ids, *used})
        turn.shown_more = turn.shown_more or shown.more or len(words) > MOST_WORDS
        turn.save(update_fields=["shown", "shown_more", "memory_ids"])
    return turn


def end(turn_pk: int, answer: str, *, is_over: bool, now: datetime) -> None:
    """Append the model's answer to an open turn. If ``is_over``, also end the turn and queue extraction."""
    open_one = PassingTurn.objects.filter(pk=turn_pk, ended_at=None).select_related("workspace", "user")
    with transaction.atomic():
        turn = open_one.select_for_update(of=("self",)).first()
        if turn is None:
            return
        turn.answer = cut_at_word("\n\n".join(filter(None, (turn.answer, answer))), TEXT_LENGTH)
        turn.ended_at = now if is_over else None
        turn.save(update_fields=["answer", "ended_at"])
        if is_over:
            queue_extraction(
                workspace=turn.workspace,
                user=turn.user,
                chat_id=turn.conversation,
                message_id=turn.public_id,
                source_type=SourceType.AUTO_CHAT,
                now=now,
            )


def load_passing(public_id: str) -> TurnText | None:
    """Return the turn's text for extraction; None if the text has been deleted."""
    turns = PassingTurn.objects.select_related("workspace__connection", "connection", "user")
    turn = turns.filter(public_id=public_id).first()
    if turn is None or not turn.said:
        return None
    readable = Memory.objects.filter(Q(owner=None) | Q(owner=turn.user), public_id__in=turn.memory_ids)
    elsewhere = Memory.objects.filter(public_id__in=turn.memory_ids).exclude(workspace=turn.workspace)
    shared = Membership.objects.filter(workspace=turn.workspace).exclude(user=turn.user).exists()
    return TurnText(
        (("user", turn.said[-1][1]), ("assistant", turn.answer)),
        turn.public_id,
        # An excerpt would show other members a conversation that they cannot open.
        "" if shared else _excerpt(turn),
        is_personal=_may_be_personal(turn),
        said_by=turn.user,
        said_at=turn.created_at,
        earlier=tuple((role, text) for role, text in turn.said[:-1]),
        provenance=_provenance(turn, readable),
        stays_here=elsewhere.filter(workspace__local_only=True).exists(),
        connection=turn.connection,
        workspace=turn.workspace,
    )


def _may_be_personal(turn: PassingTurn) -> bool:
    """Return whether the model may have seen personal data: in memories, an earlier answer or the client's text."""
    shared = Memory.objects.filter(owner=None, public_id__in=turn.memory_ids)
    answered_before = any(role == "assistant" for role, _text in turn.said)
    return answered_before or bool(turn.shown) or turn.shown_more or shared.count() < len(turn.memory_ids)


def _provenance(turn: PassingTurn, readable: MemoryQuerySet) -> Provenance:
    """Return who said what in this turn: the person's messages, recalled memories, and all other words of the request.

    Earlier answers are among the other words, because the client sends them and may have made them up.
    """
    user_sources = [Source(Speaker.PERSON, text) for role, text in reversed(turn.said) if role == "user"]
    recalled = [
        Source(Speaker.MEMORY, text, name) for name, text in readable.values_list("public_id", "content")
    ]
    words = [Source(Speaker.PROGRAM, " ".join(turn.shown), is_bag=True)] if turn.shown else []
    unseen = [Source(Speaker.PROGRAM, None)] if turn.shown_more else []
    return Provenance((*user_sources, *recalled, *words, *unseen))


def saved_from(conversation: str, user: User, *, now: datetime) -> list[str]:
    """Return the ids of current memories extracted from this conversation, newest first, at most 20. One query."""
    rows = _SAVED.all(limit=20, conversation=conversation, user=user.pk, now=now)
    return [memory.public_id for memory in rows]


def sweep(*, now: datetime) -> int:
    """Queue extraction of turns whose process died, and return how many. Delete texts that have been extracted from."""
    lost = PassingTurn.objects.filter(ended_at=None, created_at__lt=now - ANSWERED_WITHIN)
    pks = list(lost.values_list("pk", flat=True)[:SWEPT])
    for pk in pks:
        end(pk, "", is_over=True, now=now)
    pending = Extraction.objects.filter(status=ExtractionStatus.PENDING, message_id__startswith=PREFIX)
    mined = PassingTurn.objects.exclude(ended_at=None).exclude(public_id__in=pending.values("message_id"))
    mined.exclude(said=[]).update(said=[], shown=[], answer="", memory_ids=[])
    mined.filter(created_at__lt=now - MARKED).delete()
    return len(pks)


def _hash(purpose: str, caller: Caller, *texts: str) -> str:
    whole = json.dumps([caller.person.public_id, caller.workspace.public_id, *texts])
    return salted_hmac(f"passing {purpose}", whole, algorithm="sha256").hexdigest()


def _excerpt(turn: PassingTurn) -> str:
    """Return an excerpt like that of a chat: two messages before the question, the question and the answer."""
    lines: Iterable[tuple[str, str]] = [*map(tuple, turn.said[-3:]), ("assistant", turn.answer)]
    names = {"user": turn.user.get_username(), "assistant": "Assistant"}
    return "\n".join(f"{names[role]}: {cut_at_word(text, EXCERPT_LENGTH)}" for role, text in lines if text)
