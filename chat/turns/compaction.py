"""Summaries of older messages, written by the chat's model as a job before the context is full (``context.TIGHT``)."""

import logging
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django_q.tasks import async_task

from chat.chats.personal_memories import PromptPolicy
from chat.models import Chat, Compaction, Message, MessageRole, MessageStatus
from chat.modes.registry import chosen_for_chat
from chat.prompting.context import history_token_limit, prompt_token_limit, system_text
from chat.prompting.prompt_text import (
    cut_to,
    escaped_lines,
    prompt_text,
    said_by_several,
    text_of,
    tokens,
    with_labels,
)
from memories.judging.extraction.with_language_model import render_conversation
from memories.models import SourceType
from memories.writing.drafts import UNSTORABLE
from memories.writing.extraction_jobs import queue_distillation
from memoryhub import pubsub
from memoryhub.llm.base import Capabilities, ChatModel, Speaker
from memoryhub.llm.base import Message as PromptMessage
from memoryhub.llm.errors import ModelError
from workspaces.models import Purpose, User
from workspaces.spending.budgets import has_budget
from workspaces.spending.usage_records import Account, counted, rate_of

logger = logging.getLogger(__name__)
KEPT_SHARE = 0.4  # share of the history's token budget for the newest messages, which are not summarised
SUMMARY_TOKENS = 800
LEAST_SUMMARY = 40  # characters; a shorter reply is a refusal or empty
MOST_ROUNDS = 8  # summaries per job; the next turn's job continues a very long history


def queue_compaction(answer: Message, user: User) -> None:
    """Queue compaction when the transaction commits. ``user`` started the turn. Repeated jobs have no effect."""
    job = {"answer_id": answer.pk, "user_id": user.pk, "task_name": "compact"}
    transaction.on_commit(lambda: async_task("chat.tasks.compact_chat", **job))


def latest_compaction(chat: Chat, shown: PromptPolicy) -> Compaction | None:
    """Return the latest summary without replaced messages and without answers that ``shown`` excludes, or None.

    One query, and two for each summary of answers that are personal or must stay on this machine.
    """
    for compaction in Compaction.objects.filter(chat=chat, upto__superseded_by=None):
        summarised = Message.objects.filter(chat=chat, pk__lte=compaction.upto_id).current()
        if not compaction.is_marked or shown.has_all(summarised):
            return compaction
    return None


def compact(answer: Message, user: User, *, now: datetime) -> str:
    """Summarise the older messages of the answer's chat with the user's model. Return a line for the job log."""
    chosen = chosen_for_chat(answer.chat, user)
    model = chosen.model
    if chosen.trouble is not None:
        return f"not asked: {chosen.trouble.code}"
    if not model.capabilities.can_extract:
        return "the model is too small to summarise"
    account = Account(answer.chat.workspace_id, user.pk, Purpose.SUMMARY, rate_of(chosen))
    if not has_budget(account, now=now):
        return "the budget of the month is used up"
    shown = PromptPolicy.in_turn(answer.chat, user, model_is_remote=not model.capabilities.local)
    stored = 0
    for _ in range(MOST_ROUNDS):
        previous = latest_compaction(answer.chat, shown)
        older = _older(answer.chat, previous, model, shown)
        if not older:
            break
        try:
            with counted(account):
                compaction = _summarise(answer.chat, previous, older, model)
        except ModelError as error:
            logger.warning("A summary failed: %s", error.code)
            return f"failed: {error.code}"
        if compaction is None or not _store(compaction, previous, answer, shown, now=now):
            break
        stored += 1
    return f"stored {stored}"


def _older(chat: Chat, previous: Compaction | None, model: ChatModel, shown: PromptPolicy) -> list[Message]:
    """Return the oldest messages after ``previous`` to summarise, as many as fit into one prompt. Empty if few."""
    capabilities = model.capabilities
    whole = prompt_token_limit(capabilities)
    system = tokens(system_text(chat.agent, now=chat.active_at, has_tools=capabilities.has_tools, room=whole))
    beside = whole - system - SUMMARY_TOKENS
    room = history_token_limit(capabilities, beside, has_tools=capabilities.has_tools)
    messages = shown.of(chat.messages.current()).filter(pk__gt=previous.upto_id if previous else 0)
    messages = messages.exclude(content="").exclude(status=MessageStatus.STREAMING)
    token_count = 0
    newest_first = list(with_labels(messages, "personal", "stays_here").order_by("-pk")[:1000])
    for number, message in enumerate(newest_first):
        token_count += tokens(message.content)
        if token_count > room * KEPT_SHARE:
            older = newest_first[number:][::-1]
            break
    else:
        return []
    while older and older[-1].role == MessageRole.USER:  # the messages that are kept begin with a person's
        older.pop()
    return _portion(older, capabilities)


def _portion(older: Sequence[Message], capabilities: Capabilities) -> list[Message]:
    """Return as many of the oldest messages as fit into one prompt with the previous summary, ending with an answer."""
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
    lines = [
        (message.role, text_of(message, names_people=several and message.role == MessageRole.USER))
        for message in older
    ]
    if sum(tokens(text) for _role, text in lines) > room:
        lines = [(role, cut_to(text, each)) for role, text in lines]
    prompt = render_conversation(lines, limit=None)
    if previous is not None:
        prompt = f"<summary>\n{escaped_lines(previous.summary)}\n</summary>\n{prompt}"
    reply = model.complete(
        [
            PromptMessage("system", prompt_text("compact"), speaker=Speaker.SYSTEM),
            PromptMessage("user", prompt, speaker=Speaker.CHAT),
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
    compaction: Compaction,
    previous: Compaction | None,
    answer: Message,
    shown: PromptPolicy,
    *,
    now: datetime,
) -> bool:
    """Store the summary and queue extraction from it. Return False if another worker stored one since ``previous``."""
    chat = compaction.chat
    with transaction.atomic():
        Chat.objects.select_for_update(of=("self",)).get(pk=chat.pk)
        if latest_compaction(chat, shown) != previous:
            return False
        compaction.created_at = now
        compaction.save(force_insert=True)
        pubsub.publish(f"chat:{chat.public_id}", "compacted")
        if answer.memory_enabled:
            queue_distillation(
                workspace=chat.workspace,
                user=shown.user,
                chat_id=chat.public_id,
                message_id=compaction.public_id,
                source_type=SourceType.AUTO_COMPACTION,
                text=compaction.summary,
                now=now,
            )
    return True
