"""Short-term memory: the current topics of this chat and of the user's other chats. If it fails, the turn continues."""

import logging
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import override

from chat.chats.personal_memories import personal_in
from chat.models import SUMMARY_LENGTH, Chat, Message, MessageRole, MessageStatus, ShortTermMemory, was_reader
from chat.prompting.prompt_text import BYTES_PER_TOKEN, escape, named, prompt_text, text_of
from memories.judging.extraction.grounding import says_nothing
from memories.judging.secret_filter import find_secret
from memories.models import Revision
from memories.models.memory import RevisionAction
from memories.writing.drafts import UNSTORABLE, cut_at_word
from memoryhub.errors import Conflict, Invalid, SecretRefused
from memoryhub.llm.base import Message as PromptMessage
from memoryhub.llm.base import Speaker
from memoryhub.localization import grouped
from workspaces.access import require
from workspaces.data_policy import DataPolicy
from workspaces.models import Role, User


def live_memory(chat: Chat, reader: User, *, now: datetime) -> ShortTermMemory | None:
    """Return the chat's short-term memory unless it has expired or is personal from before ``reader`` could read the
    chat.
    """
    rows = ShortTermMemory.objects.filter(chat=chat, expires_at__gte=now)
    return rows.filter(Q(personal_at=None) | was_reader(reader, at="personal_at")).first()


def recent(
    chat: Chat, user: User, *, policy: DataPolicy, now: datetime
) -> tuple[ShortTermMemory | None, list[ShortTermMemory]]:
    """Return the short-term memory of this chat, and those of at most SHORT_TERM_OTHER_CHATS other chats, latest first.

    The other chats are visible to the user. They are in the same workspace, or in any workspace if the user chose so.
    ``policy``: data policy of the model that receives the texts. Left out are

    - private chats, unless the user created them and their workspace allows it;
    - local-only text, unless this workspace is local-only;
    - text that some readers of this chat may not read;
    - chats from which a memory was corrected or forgotten, because their text would contradict it.

    One query, and two more if this chat's summary is personal.
    """
    seen = Chat.objects.visible_to(user).live().filter(is_temporary=False)
    seen = seen.filter(Q(is_private=False) | Q(workspace__private_short_term=True))
    told = Q(personal_at=None) | was_reader(user, at="personal_at")
    if not chat.workspace.local_only:
        seen = seen.filter(workspace__local_only=False)
        told &= Q(stays_here=False)
    if not policy.personal:
        seen = seen.filter(is_private=False)
        told &= Q(personal_at=None)
    if not (policy.personal and user.short_term_everywhere):
        seen = seen.filter(workspace_id=chat.workspace_id)
    is_own = ExpressionWrapper(Q(chat_id=chat.pk), BooleanField())
    something = ~Q(summary="") | ~Q(last_said=[])
    fields = ("summary", "last_said", "touched_at", "personal_at", "stays_here")
    corrected = Revision.objects.filter(
        Q(action=RevisionAction.EDIT, before__has_key="content")
        | Q(action__in=(RevisionAction.REPLACE, RevisionAction.DELETE)),
        memory__source_chat_id=OuterRef("chat__public_id"),
        at__gte=now - KEPT_WITH_SUMMARY,
    )
    others = Q(chat__in=seen) & told & ~Exists(corrected)
    rows = list(
        ShortTermMemory.objects.filter(Q(chat_id=chat.pk) | others, something, expires_at__gte=now)
        .select_related("chat__workspace")
        .only(*fields, "chat__public_id", "chat__title", "chat__is_private", "chat__workspace__local_only")
        .order_by(is_own.desc(), "-touched_at", "-id")[: settings.SHORT_TERM_OTHER_CHATS + 1]
    )
    own = rows.pop(0) if rows and rows[0].chat_id == chat.pk else None
    if own is not None and not _is_shown_in(own, chat, user, policy):
        own = None
    return own, rows[: settings.SHORT_TERM_OTHER_CHATS]


def is_personal(row: ShortTermMemory, told_in: Chat) -> bool:
    """Return whether another chat's summary would be personal in ``told_in``: not all readers may read its chat."""
    is_elsewhere = row.chat.workspace_id != told_in.workspace_id
    return row.chat.is_private or is_elsewhere or row.personal_at is not None


def stays_here(row: ShortTermMemory, told_in: Chat) -> bool:
    """Return whether the summary contains local-only text of a workspace other than that of the chat ``told_in``."""
    is_elsewhere = row.chat.workspace_id != told_in.workspace_id and row.chat.workspace.local_only
    return row.stays_here or is_elsewhere


def _is_shown_in(own: ShortTermMemory, chat: Chat, user: User, policy: DataPolicy) -> bool:
    """Return whether the user, the chat's other readers and the model may all read its own summary."""
    if own.stays_here and policy.leaves:
        return False
    if own.personal_at is None:
        return True
    since = personal_in(chat, user).since
    read_then = ShortTermMemory.objects.filter(was_reader(user, at="personal_at"), pk=own.pk)
    return (since is None or own.personal_at >= since) and read_then.exists()


logger = logging.getLogger(__name__)
TOOL_NAME = "update_short_term_memory"
LEAST_ROOM = 2048  # tokens of a prompt; smaller models get no short-term memory
OTHERS_SHARE = 0.15  # share of the prompt's tokens for other chats
KEPT = timedelta(hours=12)
KEPT_WITH_SUMMARY = timedelta(hours=24)
LONG_AGO = timedelta(days=7)
SNIPPETS, SNIPPET_LENGTH = 4, 200  # last messages of a chat without a summary, and characters of each

# Requests for long-term memory. The hint about the short-term tool would compete with them.
LONG_TERM = re.compile(
    r"\b(?:remember|memori[sz]e|(?:don'?t|do not|never) forget|(?:keep|bear) (?:\w+ ){0,3}in mind"
    r"|(?:make|take) (?:a )?note|note (?:this |that |it )?down|(?:save|store|keep) (?:this|that|it)"
    r"|(?:add|save|store) .{1,60}\bto (?:\w+ )?memory|for (?:the )?future|from now on"
    r"|merke? (?:dir|es dir|dir das)|vergiss nicht|behalte? (?:das|im kopf)|ab jetzt|souviens-toi|retiens|n'oublie pas"
    r"|désormais|recuerda (?:que|esto)|no olvides|a partir de ahora|lembre-se|lembra-te|não (?:se )?esqueças?"
    r"|de agora em diante|ricorda(?:ti)?|non dimenticare|d'ora in poi|onthoud|vergeet niet|vanaf nu|zapamiętaj|pamiętaj"
    r"|nie zapomnij|od teraz"
    r"|hat\u0131rla|unutma|bundan sonra|запомни|не забудь|отныне|hãy nhớ|ghi nhớ|đừng quên|từ giờ)\b"
    r"|تذكر|لا تنس|احفظ|याद रख|मत भूल|记住|別忘|别忘|記住|覚えて|忘れないで|기억해|잊지 ?마",
    re.IGNORECASE,
)
RECALLING = re.compile(
    r"\b(?:do|did|can|could|will) (?:you|we|i) (?:still )?remember\b|\bremember (?:what|when|who|where|which|how)\b|"
    r"\bi (?:don'?t|can'?t|do not|cannot) remember\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ShortTerm:
    """The short-term part of a prompt: ``items`` before the question, after a system message with the ``directive``.

    ``own`` and ``others``: the rows of this chat and of other chats that the items were made from.
    """

    items: tuple[PromptMessage, ...] = ()
    directive: str = ""
    own: ShortTermMemory | None = None
    others: tuple[ShortTermMemory, ...] = ()


def short_term_for(
    question: Message,
    user: User,
    *,
    can_update: bool,
    room: int,
    policy: DataPolicy,
    now: datetime,
) -> ShortTerm:
    """Return the summaries of other chats, this chat's summary, and the hint about the tool that updates it. Never
    raises.

    ``can_update``: the model is offered that tool in this turn. ``room``: the maximum tokens of a prompt. A model with
    a small ``room`` gets nothing, since every line costs it time and attention. ``policy``: data policy of the model.
    """
    if room < LEAST_ROOM:
        return ShortTerm()
    try:
        # A failed query must not break the caller's transaction.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            own, others = recent(question.chat, user, policy=policy, now=now)
            return _gather(question, user, own, others, can_update=can_update, room=room, now=now)
    except Exception:
        logger.exception("Short-term memory failed; the turn goes on without it")
        return ShortTerm()


def _gather(
    question: Message,
    user: User,
    own: ShortTermMemory | None,
    others: Sequence[ShortTermMemory],
    *,
    can_update: bool,
    room: int,
    now: datetime,
) -> ShortTerm:
    """Build the prompt items from the rows of this chat (``own``) and of other chats."""
    items: list[tuple[str, Speaker]] = []
    if others:
        writers = {snippet[2] for row in others for snippet in row.last_said if len(snippet) > 2} - {user.pk}
        users = User.objects.filter(pk__in=writers) if writers else ()
        people = {user.pk: "User"} | {each.pk: named(each) for each in users}
        longest = int(room * OTHERS_SHARE * BYTES_PER_TOKEN / len(others))
        lines = [_line(entry, longest, now, people) for entry in others]
        items.append(("\n".join([prompt_text("short_term_others"), *lines]), Speaker.CHAT))
    summary = own.summary if own else ""
    if summary:
        items.append((f"{prompt_text('short_term_own')}\n{escape(summary)}", Speaker.MODEL))
    least, earlier = settings.SHORT_TERM_MIN_MESSAGES, 0
    if can_update and not summary:
        history = Message.objects.filter(chat_id=question.chat_id, pk__lt=question.pk).current()
        earlier = len(history.exclude(content="").values_list("pk")[: max(1, least)])
    may_change = can_update and (summary or earlier) and not says_nothing(question.content)
    if may_change and not wants_long_term(question.content):
        items.append((_expanded("short_term_hint"), Speaker.SYSTEM))
    first = can_update and not summary and earlier + 1 >= least
    return ShortTerm(
        tuple(PromptMessage("user", item, speaker=speaker) for item, speaker in items),
        _expanded("short_term_first") if first else "",
        own=own if summary else None,
        others=tuple(others),
    )


def _expanded(name: str) -> str:
    return prompt_text(name).replace("{short_term_memory_tool}", TOOL_NAME)


def wants_long_term(text: str) -> bool:
    """Return whether the user asks to remember something permanently. A question about memories does not count."""
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    return bool(LONG_TERM.search(RECALLING.sub(" ", text)))


def _line(row: ShortTermMemory, longest: int, now: datetime, people: Mapping[int, str]) -> str:
    """Return another chat's short-term memory as one line: title, age, and topic in at most ``longest`` characters."""
    snippets = ((who if not by else people.get(by[0], named(None)), text) for who, text, *by in row.last_said)
    about = cut_at_word(row.summary, longest) or " / ".join(f"{who}: {text}" for who, text in snippets)
    return f"- {escape(row.chat.title or 'Untitled')} ({_age(row.touched_at, now)}): {escape(about)}"


def _age(moment: datetime, now: datetime) -> str:
    """Return the age in English, such as "2 hours ago"."""
    if now - moment >= LONG_AGO:
        return "over a week ago"
    with override("en"):
        age = timesince(moment, now, depth=1).replace("\xa0", " ")
    return "just now" if age.startswith("0") else f"{age} ago"


def update_short_term(answer: Message, *, now: datetime) -> None:
    """Update a chat's short-term memory after a turn with memory on. Never raises."""
    try:
        with transaction.atomic():
            row, _created = ShortTermMemory.objects.select_for_update().get_or_create(
                chat=answer.chat, defaults={"touched_at": now, "expires_at": now + KEPT}
            )
            if row.expires_at < now:  # the old topic has expired
                row.summary, row.summarised_by, row.summarised_in, row.summarised_at = "", None, "", None
                row.last_said, row.personal_at, row.stays_here = [], None, False
            row.last_said = _with_turn(row.last_said, answer)
            _mark(row, answer)
            _save(row, now)
            row.save()
    except DatabaseError:
        logger.exception("A chat's short-term memory could not be touched")


def forget_replaced(chat: Chat, *, now: datetime) -> None:
    """Remove messages that an edit replaced from a chat's short-term memory. Never raises.

    The model's summary is removed if its answer was replaced.
    """
    try:
        with transaction.atomic():
            row = ShortTermMemory.objects.select_for_update().filter(chat=chat).first()
            if row is None:
                return
            answers = chat.messages.current().filter(role=MessageRole.ASSISTANT, status=MessageStatus.DONE)
            writer = row.summarised_in.partition(":")[0]
            if writer and not answers.filter(public_id=writer).exists():
                row.summary, row.summarised_in, row.summarised_at = "", "", None
            latest = answers.filter(memory_enabled=True, finished_at__gt=now - KEPT).exclude(content="")
            latest = latest.select_related("reply_to").order_by("-pk")[: SNIPPETS // 2]
            row.last_said = []
            if not row.summary:  # a kept summary still contains its sources
                row.personal_at, row.stays_here = None, False
            for answer in reversed(latest):
                row.last_said = _with_turn(row.last_said, answer)
                _mark(row, answer)
            row.save()
    except DatabaseError:
        logger.exception("A chat's short-term memory could not be told anew")


def _mark(row: ShortTermMemory, answer: Message) -> None:
    """Mark the short-term memory as personal or local-only if this answer, which it now contains, is."""
    if answer.personal:
        row.personal_at = min(row.personal_at or answer.created_at, answer.created_at)
    row.stays_here = row.stays_here or answer.stays_here


def _with_turn(earlier: list[list[Any]], answer: Message) -> list[list[Any]]:
    """Return the last messages with this turn's, as lists of role, text and, for a user, the author's primary key."""
    question = answer.reply_to
    messages = [("User", text_of(question) if question else ""), ("Assistant", answer.content)]
    turn: list[list[Any]] = [
        [role, cut_at_word(" ".join(text.split()), SNIPPET_LENGTH)] for role, text in messages
    ]
    if question is not None and not question.is_imported:
        turn[0].append(question.author_id)
    previous_messages = earlier[:-2] if earlier[-2:-1] == turn[:1] else earlier
    return [*previous_messages, *turn][-SNIPPETS:]


def set_summary(
    chat: Chat, summary: str, *, by: User, now: datetime, answer: Message | None = None
) -> ShortTermMemory:
    """Set the chat's running summary, or delete it if ``summary`` is empty. Raises Forbidden for viewers.

    ``answer``: the answer in which the model writes the summary. Raises Conflict if that answer has already done so or
    the chat is temporary, and Invalid or SecretRefused for a text that may not be stored.
    """
    attempt = f"{answer.public_id}:{answer.attempt}" if answer else ""
    require(chat.role, Role.EDITOR)
    if chat.is_temporary:
        raise Conflict(_("Nothing in a temporary chat is kept."))
    summary = _clean(summary)
    with transaction.atomic():
        row, _created = ShortTermMemory.objects.select_for_update().get_or_create(
            chat=chat, defaults={"touched_at": now, "expires_at": now + KEPT}
        )
        if answer and row.summarised_in == attempt:
            raise Conflict(_("This answer has already updated the summary."), code="once")
        row.summary, row.summarised_at = summary, now if summary else None
        row.summarised_by, row.summarised_in = None if answer else by, attempt
        if answer:
            _mark(row, answer)
        _save(row, now)
        row.save()
    return row


def _save(row: ShortTermMemory, now: datetime) -> None:
    row.touched_at = now
    row.expires_at = now + (KEPT_WITH_SUMMARY if row.summary else KEPT)


def _clean(summary: str) -> str:
    if UNSTORABLE.search(summary):
        why = _("has a character that cannot be stored (NUL or half of a surrogate pair)")
        raise Invalid(fields={"summary": why})
    summary = summary.replace("\r\n", "\n").strip()
    if len(summary) > SUMMARY_LENGTH:
        numbers = {"summary_length": grouped(SUMMARY_LENGTH), "length": grouped(len(summary))}
        why = _("may have at most %(summary_length)s characters and has %(length)s") % numbers
        raise Invalid(fields={"summary": why})
    if find_secret(summary):
        raise SecretRefused(fields={"summary": _("looks like a credential")})
    return summary


def drop_expired(*, now: datetime) -> None:
    ShortTermMemory.objects.filter(expires_at__lt=now).delete()
