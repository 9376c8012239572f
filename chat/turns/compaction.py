"""Compaction: older messages become a summary before the model's context is full, in the background after a turn."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django_q.tasks import async_task

from chat.chats.personal_memories import PromptPolicy
from chat.models import Chat, Compaction, Message, MessageRole, MessageStatus
from chat.prompting.context import history_room, room_beside_answer, system_text
from chat.prompting.labels import said_by_several, text_of, with_labels
from chat.prompting.text import cut_to, escaped_lines, prompt_text, tokens
from chat.turns.chosen_model import chosen_for_chat
from memories.judging.extraction.candidates import render_conversation
from memories.models import SourceType
from memories.writing.drafts import UNSTORABLE
from memories.writing.extracting import queue_distillation
from memoryhub import events
from memoryhub.llm.base import Capabilities, ChatModel, Speaker
from memoryhub.llm.base import Message as PromptMessage
from memoryhub.llm.errors import ModelError
from workspaces.models import Purpose, User
from workspaces.spending.bill import Account, counted, rate_of
from workspaces.spending.budgets import has_budget

logger = logging.getLogger(__name__)
KEPT_SHARE = 0.4  # of the history's room: the newest messages, which stay as they are
SUMMARY_TOKENS = 800
LEAST_SUMMARY = 40  # characters: less is a refusal or nothing
MOST_ROUNDS = 8  # of one job; a very long history goes on with the next turn


def queue_compaction(answer: Message, user: User) -> None:
    """Queue compaction on commit; a second time does nothing more. ``user`` had the turn."""
    job = {"answer_id": answer.pk, "user_id": user.pk, "task_name": "compact"}
    transaction.on_commit(lambda: async_task("chat.tasks.compact_chat", **job))


def can_compact(capabilities: Capabilities) -> bool:
    """Return whether the model can summarise: one too small to extract cannot, and its older messages are left out."""
    return capabilities.can_extract


def latest_compaction(chat: Chat, shown: PromptPolicy) -> Compaction | None:
    """Return the latest summary of the current conversation: without replaced messages, and without answers that may
    not be ``shown``. One query, and two for each summary of answers that are personal or stay here.
    """
    for found in Compaction.objects.filter(chat=chat, upto__superseded_by=None):
        summarised = Message.objects.filter(chat=chat, pk__lte=found.upto_id).current()
        if not found.is_marked or shown.has_all(summarised):
            return found
    return None


def compact(answer: Message, user: User, *, now: datetime) -> str:
    """Summarise what is older than the newest messages of the answer's chat; says what it did. May wait for the model
    of the person whose turn it was.
    """
    chosen = chosen_for_chat(answer.chat, user)
    model = chosen.model
    if chosen.trouble is not None:
        return f"not asked: {chosen.trouble.code}"
    if not can_compact(model.capabilities):
        return "the model is too small to summarise"
    account = Account(answer.chat.workspace_id, user.pk, Purpose.SUMMARY, rate_of(chosen))
    if not has_budget(account, now=now):
        return "the budget of the month is used up"
    shown = PromptPolicy.in_turn(answer.chat, user, leaves=not model.capabilities.local)
    stored = 0
    for _ in range(MOST_ROUNDS):
        previous = latest_compaction(answer.chat, shown)
        older = _older(answer.chat, previous, model, shown)
        if not older:
            break
        try:
            with counted(account):
                made = _summarise(answer.chat, previous, older, model)
        except ModelError as error:
            logger.warning("A summary failed: %s", error.code)
            return f"failed: {error.code}"
        if made is None or not _store(made, previous, answer, shown, now=now):
            break
        stored += 1
    return f"stored {stored}"


def _older(chat: Chat, previous: Compaction | None, model: ChatModel, shown: PromptPolicy) -> list[Message]:
    """Return the messages before the newest ones, from the beginning, as many as one summary can take in."""
    capabilities = model.capabilities
    whole = room_beside_answer(capabilities)
    system = tokens(system_text(chat.agent, now=chat.active_at, has_tools=capabilities.has_tools, room=whole))
    beside = whole - system - SUMMARY_TOKENS
    room = history_room(capabilities, beside, has_tools=capabilities.has_tools)
    said = shown.of(chat.messages.current()).filter(pk__gt=previous.upto_id if previous else 0)
    said = said.exclude(content="").exclude(status=MessageStatus.STREAMING)
    kept = 0
    newest_first = list(with_labels(said, "personal", "stays_here").order_by("-pk")[:1000])
    for number, message in enumerate(newest_first):
        kept += tokens(message.content)
        if kept > room * KEPT_SHARE:
            older = newest_first[number:][::-1]
            break
    else:
        return []
    while older and older[-1].role == MessageRole.USER:  # what stays begins with a person
        older.pop()
    return _portion(older, capabilities)


def _portion(older: Sequence[Message], capabilities: Capabilities) -> list[Message]:
    """Return as many of the oldest as the model can read at once beside the summary so far, ending with an answer."""
    room = capabilities.context_tokens - 3 * SUMMARY_TOKENS - tokens(prompt_text("compact"))
    portion: list[Message] = []
    for message in older:
        room -= tokens(message.content)
        if portion and room < 0:
            break
        portion.append(message)
    whole = list(portion)
    while whole and whole[-1].role == MessageRole.USER:
        whole.pop()
    return whole or portion


def _summarise(
    chat: Chat, previous: Compaction | None, older: Sequence[Message], model: ChatModel
) -> Compaction | None:
    room = max(200, model.capabilities.context_tokens - 3 * SUMMARY_TOKENS - tokens(prompt_text("compact")))
    each = room // len(older)
    several = said_by_several(older)
    said = [
        (message.role, text_of(message, names_people=several and message.role == MessageRole.USER))
        for message in older
    ]
    if sum(tokens(text) for _role, text in said) > room:
        said = [(role, cut_to(text, each)) for role, text in said]
    asked = render_conversation(said, limit=None)
    if previous is not None:
        asked = f"<summary>\n{escaped_lines(previous.summary)}\n</summary>\n{asked}"
    reply = model.complete(
        [
            PromptMessage("system", prompt_text("compact"), speaker=Speaker.SYSTEM),
            PromptMessage("user", asked, speaker=Speaker.CHAT),
        ],
        max_tokens=SUMMARY_TOKENS,
        temperature=0.0,
    )
    summary = UNSTORABLE.sub("", reply).strip()
    if len(summary) < LEAST_SUMMARY:
        return None
    return Compaction(
        chat=chat,
        upto=older[-1],
        summary=summary,
        is_marked=bool(previous and previous.is_marked) or any(m.personal or m.stays_here for m in older),
        model=model.name[:200],
    )


def _store(
    made: Compaction, previous: Compaction | None, answer: Message, shown: PromptPolicy, *, now: datetime
) -> bool:
    """Store the summary. False if another worker was first."""
    chat = made.chat
    with transaction.atomic():
        Chat.objects.select_for_update(of=("self",)).get(pk=chat.pk)
        if latest_compaction(chat, shown) != previous:
            return False
        made.created_at = now
        made.save(force_insert=True)
        events.publish(f"chat:{chat.public_id}", "compacted")
        if answer.memory_enabled:
            queue_distillation(
                workspace=chat.workspace,
                user=shown.user,
                chat_id=chat.public_id,
                message_id=made.public_id,
                source_type=SourceType.AUTO_COMPACTION,
                text=made.summary,
                now=now,
            )
    return True
