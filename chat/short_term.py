"""Short-term memory: what this chat and the person's other chats are about just now. Trouble here costs no turn."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils.timesince import timesince
from django.utils.translation import override

from chat.models import SUMMARY_LENGTH, Chat, Message, MessageRole, ShortTermMemory
from chat.text import BYTES_PER_TOKEN, escape, prompt_text
from memories.drafts import UNSTORABLE, cut_at_word
from memories.secret_filter import find_secret
from memoryhub.errors import Conflict, Invalid, SecretRefused
from memoryhub.llm.base import Message as Prompt
from workspaces.access import require
from workspaces.models import Role, User

logger = logging.getLogger(__name__)
TOOL_NAME = "update_short_term_memory"
LEAST_ROOM = 2048  # tokens of a prompt
OTHERS_SHARE = 0.15  # of that room, for other chats
KEPT = timedelta(hours=12)
KEPT_WITH_SUMMARY = timedelta(hours=24)
SNIPPETS, SNIPPET_LENGTH = 4, 200  # of a chat without a summary: its last messages, and characters of each

# The person asks for something to be kept for good: a hint at the short-term tool would compete with that.
LONG_TERM = re.compile(
    r"\b(?:remember|memori[sz]e|(?:don'?t|do not|never) forget|(?:keep|bear) (?:\w+ ){0,3}in mind"
    r"|(?:make|take) (?:a )?note|note (?:this |that |it )?down|(?:save|store|keep) (?:this|that|it)"
    r"|(?:add|save|store) .{1,60}\bto (?:\w+ )?memory|for (?:the )?future|from now on"
    r"|merke? dir|vergiss nicht|souviens-toi|retiens que|n'oublie pas|recuerda que|no olvides)\b",
    re.IGNORECASE,
)
RECALLING = re.compile(
    r"\b(?:do|did|can|could|will) (?:you|we|i) (?:still )?remember\b|\bremember (?:what|when|who|where|which|how)\b|"
    r"\bi (?:don'?t|can'?t|do not|cannot) remember\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ShortTerm:
    """What a turn is shown: items in the person's role before the question, and a directive of lower priority."""

    items: tuple[Prompt, ...] = ()
    directive: str = ""


def short_term_for(question: Message, user: User, *, can_update: bool, room: int, now: datetime) -> ShortTerm:
    """Other chats, this chat's summary, the hint at the tool, each where its conditions hold. Never raises.

    ``can_update`` says that the model is offered the tool in this turn, ``room`` how many tokens a prompt may have:
    other chats get a share of it, and a small model is shown nothing, since every line costs it time and attention.
    """
    if room < LEAST_ROOM:
        return ShortTerm()
    try:
        with transaction.atomic():
            return _gather(question, user, can_update=can_update, room=room, now=now)
    except Exception:
        logger.exception("Short-term memory failed; the turn goes on without it")
        return ShortTerm()


def _gather(question: Message, user: User, *, can_update: bool, room: int, now: datetime) -> ShortTerm:
    chat = question.chat
    items = []
    if others := other_chats(chat, user, now=now):
        longest = int(room * OTHERS_SHARE * BYTES_PER_TOKEN / len(others))
        lines = [_line(entry, longest, now) for entry in others]
        items.append("\n".join([prompt_text("short_term_others"), *lines]))
    own = live_memory(chat, now=now)
    summary = own.summary if own else ""
    if summary:
        items.append(f"{prompt_text('short_term_own')}\n{escape(summary)}")
    if can_update and not wants_long_term(question.content):
        items.append(_expanded("short_term_hint"))
    first = can_update and not summary and _has_enough_messages(question)
    return ShortTerm(
        tuple(Prompt("user", item) for item in items), _expanded("short_term_first") if first else ""
    )


def _expanded(name: str) -> str:
    return prompt_text(name).replace("{short_term_memory_tool}", TOOL_NAME)


def wants_long_term(text: str) -> bool:
    """Whether the person asks for something to be remembered for good. Asking what is remembered is not that."""
    return bool(LONG_TERM.search(RECALLING.sub(" ", text)))


def _has_enough_messages(question: Message) -> bool:
    least = settings.SHORT_TERM_MIN_MESSAGES
    said = Message.objects.filter(chat_id=question.chat_id, pk__lte=question.pk).exclude(content="")
    return len(said.values_list("pk")[:least]) >= least


@dataclass(frozen=True)
class Entry:
    """Another chat as a turn sees it: its summary, or where there is none its last messages."""

    chat: Chat
    summary: str
    touched_at: datetime
    said: Sequence[Message] = field(default=())


def live_memory(chat: Chat, *, now: datetime) -> ShortTermMemory | None:
    return ShortTermMemory.objects.filter(chat=chat, expires_at__gt=now).first()


def other_chats(chat: Chat, user: User, *, now: datetime) -> list[Entry]:
    """Up to three other chats that this person may see, the one touched last first.

    Those of the same workspace, and of all their workspaces if they chose so. Private chats only where their
    workspace allows it, and then to their own person alone. Two queries, and one for each chat without a summary.
    """
    seen = Chat.objects.visible_to(user).live().filter(is_temporary=False)
    seen = seen.filter(Q(is_private=False) | Q(workspace__private_short_term=True))
    if not user.short_term_everywhere:
        seen = seen.filter(workspace_id=chat.workspace_id)
    rows = (
        ShortTermMemory.objects.filter(expires_at__gt=now, chat__in=seen)
        .exclude(chat=chat)
        .select_related("chat__workspace")
        .order_by("-touched_at", "-id")[: settings.SHORT_TERM_OTHER_CHATS]
    )
    entries = [
        Entry(row.chat, row.summary, row.touched_at, () if row.summary else _last_said(row.chat, now))
        for row in rows
    ]
    return [entry for entry in entries if entry.summary or entry.said]


def _last_said(chat: Chat, now: datetime) -> list[Message]:
    """The latest messages of turns that were taken with memory on, oldest first."""
    with_memory = Q(memory_enabled=True) | Q(answers__memory_enabled=True)
    said = chat.messages.filter(with_memory, created_at__gt=now - KEPT).exclude(content="").distinct()
    return list(said.order_by("-pk")[:SNIPPETS])[::-1]


def _line(entry: Entry, longest: int, now: datetime) -> str:
    """One chat on one line: title, age, and what it is about in at most ``longest`` characters."""
    with override("en"):
        age = timesince(entry.touched_at, now, depth=1).replace("\xa0", " ")
    title = escape(entry.chat.title or "Untitled")
    about = escape(cut_at_word(entry.summary, longest)) or " / ".join(
        f"{'User' if message.role == MessageRole.USER else 'Assistant'}: "
        f"{escape(cut_at_word(' '.join(message.content.split()), SNIPPET_LENGTH))}"
        for message in entry.said
    )
    return f"- {title} ({'just now' if age.startswith('0') else f'{age} ago'}): {about}"


def touch(chat: Chat, *, now: datetime) -> None:
    """A turn with memory on has ended here: the chat is recent once more. Never raises."""
    try:
        with transaction.atomic():
            row, made = ShortTermMemory.objects.select_for_update().get_or_create(
                chat=chat, defaults={"touched_at": now, "expires_at": now + KEPT}
            )
            if not made:
                if row.expires_at <= now:  # what the chat was about then is over
                    row.summary, row.summarised_by, row.summarised_in, row.summarised_at = "", None, "", None
                _keep(row, now)
                row.save()
    except DatabaseError:
        logger.exception("A chat's short-term memory could not be touched")


def set_summary(chat: Chat, summary: str, *, by: User, now: datetime, answer: str = "") -> ShortTermMemory:
    """Write the chat's running summary; an empty one takes it away. Editors only.

    ``answer`` says that the model writes it, in which answer: once in each, else Conflict. Raises Invalid or
    SecretRefused for a text that may not be stored.
    """
    require(chat.role, Role.EDITOR)  # type: ignore[attr-defined]  # annotated by get_chat
    if chat.is_temporary:
        raise Conflict("Nothing of a temporary chat is kept.")
    summary = _clean(summary)
    with transaction.atomic():
        row, _ = ShortTermMemory.objects.select_for_update().get_or_create(
            chat=chat, defaults={"touched_at": now, "expires_at": now + KEPT}
        )
        if answer and row.summarised_in == answer:
            raise Conflict("The summary was written in this answer already.", code="once")
        row.summary, row.summarised_at = summary, now if summary else None
        row.summarised_by, row.summarised_in = None if answer else by, answer
        _keep(row, now)
        row.save()
    return row


def _keep(row: ShortTermMemory, now: datetime) -> None:
    row.touched_at = now
    row.expires_at = now + (KEPT_WITH_SUMMARY if row.summary else KEPT)


def _clean(summary: str) -> str:
    if UNSTORABLE.search(summary):
        raise Invalid(fields={"summary": "has a character that cannot be stored (NUL or half of a pair)"})
    summary = summary.replace("\r\n", "\n").strip()
    if len(summary) > SUMMARY_LENGTH:
        raise Invalid(
            fields={"summary": f"may have at most {SUMMARY_LENGTH:,} characters, and has {len(summary):,}"}
        )
    if find_secret(summary):
        raise SecretRefused(fields={"summary": "looks like a credential"})
    return summary


def drop_expired(*, now: datetime) -> int:
    """Take away what is over; how many."""
    return ShortTermMemory.objects.filter(expires_at__lte=now).delete()[0]
