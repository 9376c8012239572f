"""Preparation of a turn: recall and its receipt, the prompt, the model and its tools."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime

from django.db import DatabaseError
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import ngettext

from chat.chats.personal_memories import PromptPolicy, personal_in
from chat.models import Compaction, Message
from chat.models.answer_steps import Mode, StepKind
from chat.modes.registry import chosen_for_chat, get_mode
from chat.prompting.context import (
    Conversation,
    Found,
    build_prompt,
    conversation_of,
    find_for_prompt,
    prompt_token_limit,
    recalled_token_limit,
    tokens_of,
    with_profile,
)
from chat.prompting.prompt_text import BYTES_PER_TOKEN, prompt_text
from chat.prompting.provenance import AnswerFlags
from chat.prompting.short_term_memory import ShortTerm, short_term_for
from chat.tools import tools_for
from chat.tools.loop import Plan
from chat.turns.compaction import latest_compaction
from chat.turns.sources import documents_block, sources_for, unread_files
from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import Recall, drop_receipt, only_first, store_receipt
from memoryhub.llm.base import Capabilities, Speaker
from memoryhub.llm.base import Message as PromptMessage
from memoryhub.llm.errors import ModelNotLocal
from memoryhub.localization import speaking_to
from workspaces.data_policy import DataPolicy
from workspaces.model_choice import Chosen, detect_vision
from workspaces.models import User
from workspaces.models.language_models import Purpose
from workspaces.spending.usage_records import Account, rate_of

logger = logging.getLogger(__name__)
QUESTION_MARKS = ("?", "\uff1f", "\u061f")  # ASCII, full-width (Chinese, Japanese) and Arabic
NOTHING = Found(Recall(), [], threshold=0.0, stored=0)
GOES_ON_SHARE = 0.4  # share of the token budget for the text of a continued answer


def prepare(answer_pk: int, user_pk: int) -> Plan:
    """Return all inputs for writing the answer. A failed recall does not fail the turn. Raises ModelNotLocal."""
    chat = ("chat__workspace__connection", "chat__agent", "chat__connection")
    answer = Message.objects.select_related(*chat, "reply_to").get(pk=answer_pk)
    user = User.objects.get(pk=user_pk)
    chosen = chosen_for_chat(answer.chat, user)
    model = chosen.ask()
    question = answer.reply_to
    assert question is not None
    question.chat = answer.chat
    now = timezone.now()
    tools = tools_for(answer.chat, model.capabilities, memory_enabled=answer.memory_enabled)
    offered = [tool.tool for tool in tools]
    goes_on = _to_go_on(answer.content, model.capabilities) if answer.content else []
    reserve = tokens_of(goes_on) if goes_on else get_mode(answer.mode).reserve()
    personal, workspace = personal_in(answer.chat, user), answer.chat.workspace
    policy = DataPolicy.to_model(workspace, is_local=model.capabilities.local, personal=personal.allowed)
    if goes_on and answer.stays_here and policy.leaves:
        raise ModelNotLocal
    shown = PromptPolicy(user, personal.since, policy.leaves)
    room = recalled_token_limit(answer.chat.agent, model.capabilities, offered, reserve=reserve, now=now)
    passages = sources_for(answer, question, user, room=room, policy=policy)
    documents = documents_block(passages, unread_files(question, user, policy))
    quotes = model.capabilities.needs_help and not goes_on
    prompt_memories = _recall_for(
        answer,
        question,
        user,
        room=room,
        policy=policy,
        now=now,
        alone=quotes and not documents,
        # Irrelevant text misleads the built-in models, and they need eight seconds to read 500 tokens.
        profile=user.profile_in_chats and model.capabilities.can_extract,
    )
    used, memory_page = prompt_memories.used, reverse("memories:all", args=[workspace.public_id])
    if answer.attempt > 1 and not goes_on:  # forget the attempt before
        answer.tool_calls.all().delete()
        answer.steps.exclude(kind=StepKind.READING).delete()  # the reading step belongs to the new attempt
        if not answer.memory_enabled:
            drop_receipt(answer.public_id)
    short_term = ShortTerm()
    if answer.memory_enabled:
        room = prompt_token_limit(model.capabilities)
        short_term = short_term_for(question, user, can_update=bool(tools), room=room, policy=policy, now=now)
    compaction = latest_compaction(answer.chat, shown)
    built = build_prompt(
        _conversation(question, compaction, chosen, shown, policy),
        used,
        model.capabilities,
        now=now,
        tools=offered,
        short_term=short_term,
        reserve=reserve,
        names_people=bool(prompt_memories.given) and workspace.memberships.count() > 1,
        documents=documents,
        closing=prompt_memories.closing(f"[Memory]({memory_page})"),
        profile=prompt_memories.profile,
    )
    flags = AnswerFlags.stored_with(answer) if goes_on else AnswerFlags()
    flags.add_given(workspace.pk, prompt_memories.given, passages)
    if any(item in built.messages for item in short_term.items):
        flags.add_short_term(answer.chat, short_term)
    flags.add_history(built.history, compaction)
    stored = {"model": model.name[:200], "seen_from": built.seen_from, **asdict(flags)}
    Message.objects.filter(pk=answer_pk).update(**stored)
    return Plan(
        model,
        [*built.messages, *goes_on],
        tools,
        is_tight=built.is_tight,
        mode=Mode.CHAT if goes_on else answer.mode,
        history=built.history,
        begins=built.begins,
        connection=chosen.connection,
        opening=_opening(question.content, prompt_memories, user, memory_page) if quotes else "",
        is_answered=not documents,
        account=Account(workspace.pk, user.pk, Purpose.ANSWER, rate_of(chosen)),
    )


def _opening(question: str, prompt_memories: Found, user: User, memory_page: str) -> str:
    """Return the text with which the answer of a small model begins, or "" if no memory answers the question.

    It is the first recalled memory, verbatim, because a small model may misquote it, or an overview's list.
    """
    used = prompt_memories.used
    if used and prompt_memories.recall.overview is not None:
        lines = [f"- {_quoted(item, user)}" for item in used]
        return "\n".join([*lines, *_more_of(prompt_memories, user, memory_page)])
    return _quoted(used[0], user) if _answers(question, used) else ""


def _quoted(item: Recalled, user: User) -> str:
    """Return the memory's text, after its author if that is someone else, so that "my" is not the user's."""
    by = item.memory.written_by
    return item.text if by is None or by == user else f"{by.shown_name}: {item.text}"


def _more_of(prompt_memories: Found, user: User, memory_page: str) -> list[str]:
    if not prompt_memories.more:
        return []
    with speaking_to(user):
        text = ngettext(
            "%(count)d more memory is on the [Memory page](%(url)s).",
            "%(count)d more memories are on the [Memory page](%(url)s).",
            prompt_memories.more,
        )
        return ["", text % {"count": prompt_memories.more, "url": memory_page}]


def _answers(question: str, used: Sequence[Recalled]) -> bool:
    """Return whether the first recalled memory answers the question. Always False for a request for work or advice."""
    if not used:
        return False
    asks = used[0].relevance.asks if used[0].relevance is not None else ""
    return asks == "lookup" or (asks != "work" and question.rstrip().endswith(QUESTION_MARKS))


def _conversation(
    question: Message, compaction: Compaction | None, chosen: Chosen, shown: PromptPolicy, policy: DataPolicy
) -> Conversation:
    """Return the conversation, with images if the model supports them. Unknown support is probed if there are any."""
    shows = chosen.model.sees is not False
    conversation = conversation_of(question, compaction, shown=shown, policy=policy, shows_pictures=shows)
    if any(line.pictures for line in (conversation.question, *conversation.earlier)):
        detect_vision(chosen)
    return conversation


def _to_go_on(text: str, capabilities: Capabilities) -> list[PromptMessage]:
    """Return the last prompt messages for continuing a cut answer: its end and, if the model needs one, a request."""
    most = int(prompt_token_limit(capabilities) * GOES_ON_SHARE * BYTES_PER_TOKEN)
    end = text.encode(errors="replace")[-most:].decode(errors="ignore")
    begun = PromptMessage("assistant", end, speaker=Speaker.MODEL)
    wish = PromptMessage("user", prompt_text("continue"), speaker=Speaker.SYSTEM)
    return [begun] if capabilities.writes_on else [begun, wish]


def _recall_for(
    answer: Message,
    question: Message,
    user: User,
    *,
    room: int,
    policy: DataPolicy,
    now: datetime,
    alone: bool,
    profile: bool,
) -> Found:
    """Recall memories and store their receipt. Return ``NOTHING`` if memory is off or recall fails, as the receipt then
    shows.

    ``alone``: if the first memory answers the question, use no other. ``profile``: add the person's profile.
    """
    if not answer.memory_enabled:
        return NOTHING
    workspace, agent = answer.chat.workspace, answer.chat.agent
    try:
        prompt_memories = find_for_prompt(
            question.content, workspace, user, agent=agent, room=room, policy=policy, now=now
        )
        is_overview = prompt_memories.recall.overview is not None
        if alone and not is_overview and _answers(question.content, prompt_memories.used):
            prompt_memories = replace(prompt_memories, verdicts=only_first(prompt_memories.verdicts))
        if profile:
            prompt_memories = with_profile(
                prompt_memories, workspace, user, room=room, policy=policy, now=now
            )
        store_receipt(
            answer.public_id,
            prompt_memories.recall,
            prompt_memories.verdicts,
            workspace=workspace,
            user=user,
            threshold=prompt_memories.threshold,
            profile=prompt_memories.profile,
        )
    except Exception:
        logger.exception("Recall failed; the turn goes on without it, and says so")
        failed = Recall(degraded="memory could not be searched")
        with suppress(DatabaseError):
            store_receipt(answer.public_id, failed, [], workspace=workspace, user=user, threshold=0.0)
        return NOTHING
    return prompt_memories
