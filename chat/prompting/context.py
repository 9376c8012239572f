"""Construction of the prompt from a stored chat or a client's request and recalled memories, and its token counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from operator import add
from typing import Literal

from django.conf import settings

from chat.chats.personal_memories import PromptPolicy
from chat.models import Compaction, Message, MessageRole
from chat.prompting.prompt_text import (
    category_label,
    cut_to,
    escape,
    escaped_lines,
    prompt_text,
    said_by_several,
    text_of,
    tokens,
    validity_label,
    with_labels,
    writer_label,
)
from chat.prompting.short_term_memory import ShortTerm
from memories.access import count_live
from memories.models import Memory
from memories.recalling import overview
from memories.recalling.profile import profile_of
from memories.recalling.ranked_search import Recalled
from memories.recalling.ranking import injection_threshold
from memories.recalling.recall import NO_ROOM, Recall, recall, split_recall, with_newer
from memoryhub.llm.base import Capabilities, Picture, Speaker, Tool
from memoryhub.llm.base import Message as PromptMessage
from memoryhub.llm.metering import Parts
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.models import Agent, Document, DocumentPicture, User, Workspace

MOST = 6  # pictures sent with one prompt, the newest

ByMessage = dict[int, tuple[Picture, ...]]


def pictures_of(
    messages: Sequence[Message], workspace: Workspace, user: User, policy: DataPolicy, *, shows: bool
) -> ByMessage:
    """Return the pictures to send with each message, by the message's primary key. No query without documents, else
    two.

    ``messages`` are ordered newest first. The first ``MOST`` pictures contain image data, or none if ``shows`` is
    False. The others have only a name. ``policy``: data policy that decides which documents may be used.
    """
    wanted = {each for message in messages for each in message.only_documents or ()}
    if not wanted:
        return {}
    there = within_policy(Document.objects.live(), workspace, user, policy)
    drawable = DocumentPicture.objects.filter(document__in=there.filter(public_id__in=wanted))
    known = {each.document.public_id: each for each in drawable.select_related("document").defer("jpeg")}
    named = [known[each] for message in messages for each in message.only_documents or () if each in known]
    newest = {each.pk for each in list(dict.fromkeys(named))[: MOST if shows else 0]}
    drawn = dict(DocumentPicture.objects.filter(pk__in=newest).values_list("pk", "jpeg"))

    def picture(row: DocumentPicture) -> Picture:
        name = f"Picture: {escape(row.document.title)}"
        return Picture(name, bytes(drawn.get(row.pk, b"")), row.width, row.height)

    return {
        message.pk: tuple(picture(known[each]) for each in message.only_documents or () if each in known)
        for message in messages
    }


LOOKED_AT = 200  # maximum number of earlier messages


@dataclass(frozen=True)
class Line:
    """A message of a conversation. ``key``: its primary key, or index in the request; it grows with each message."""

    role: Literal["user", "assistant"]
    content: str
    key: int
    pictures: tuple[Picture, ...] = ()
    is_imported: bool = False  # imported under the name of the author, as its content says

    @property
    def speaker(self) -> Speaker:
        if self.is_imported:
            return Speaker.IMPORT
        return Speaker.PERSON if self.role == "user" else Speaker.MODEL


@dataclass(frozen=True)
class Conversation:
    """A question and the messages before it, newest first, without empty ones.

    At most ``LOOKED_AT`` + 1 are ``earlier``; the last one only shows that there are more.
    """

    question: Line
    earlier: Sequence[Line] = ()
    agent: Agent | None = None
    summary: str = ""


def conversation_of(
    question: Message,
    compaction: Compaction | None,
    *,
    shown: PromptPolicy,
    policy: DataPolicy,
    shows_pictures: bool = True,
) -> Conversation:
    """Return the conversation of a stored chat: its current messages, without those that ``compaction`` summarises.

    ``shown``: filter for messages that the prompt may contain. One query, and two more if messages name documents.
    """
    earlier = Message.objects.filter(
        chat_id=question.chat_id, pk__lt=question.pk, pk__gt=compaction.upto_id if compaction else 0
    )
    visible_messages = with_labels(shown.of(earlier).current().exclude(content=""), "only_documents")
    newest = list(visible_messages.order_by("-pk")[: LOOKED_AT + 1])
    messages = [question, *newest]
    pictures = pictures_of(messages, question.chat.workspace, shown.user, policy, shows=shows_pictures)
    several = said_by_several(messages)
    return Conversation(
        question=_line(question, pictures, names_people=several),
        earlier=[_line(message, pictures, names_people=several) for message in newest],
        agent=question.chat.agent,
        summary=compaction.summary if compaction else "",
    )


def _line(message: Message, pictures: ByMessage, *, names_people: bool) -> Line:
    if message.role != MessageRole.USER:  # no label, since the model would copy it into its next answer
        return Line("assistant", message.content, message.pk)
    text = text_of(message, names_people=names_people)
    return Line("user", text, message.pk, pictures.get(message.pk, ()), message.is_imported)


TOOLS_SHARE = 0.25  # share of the prompt's token budget reserved for tool results
TIGHT = 0.8  # share of the history's token budget from which older messages are summarised
NO_SHORT_TERM = ShortTerm()
# Shares of the token budget that remains when a part is added, so that no part displaces the question:
INSTRUCTIONS_SHARE = 0.4  # instructions of the assistant
SUMMARY_SHARE = 0.3  # summary of older messages
RECALLED_SHARE = 0.4  # recalled memories
SHORT_TERM_SHARE = 0.5  # short-term memory, left out if it needs more
PICTURES_SHARE = 0.5  # pictures of the question; earlier pictures get this share of the history's budget
LEAST_QUESTION = 64  # tokens of the question that are always kept


@dataclass(frozen=True)
class BuiltPrompt:
    """A prompt, and which messages it contains.

    ``seen_from``: key of the first message included verbatim, or None if none is left out. ``is_tight``: the history
    nearly fills its budget, so older messages should be summarised. ``history``: keys of the earlier messages, which
    begin at index ``begins`` of ``messages``.
    """

    messages: list[PromptMessage]
    seen_from: int | None = None
    is_tight: bool = False
    history: tuple[int, ...] = ()
    begins: int = 0


def build_prompt(
    conversation: Conversation,
    used: Sequence[Recalled],
    capabilities: Capabilities,
    *,
    now: datetime,
    tools: Sequence[Tool] = (),
    short_term: ShortTerm = NO_SHORT_TERM,
    reserve: int = 0,
    names_people: bool = False,
    documents: str = "",
    closing: str = "",
    profile: Sequence[Recalled] = (),
) -> BuiltPrompt:
    """Build the prompt of a turn.

    Parts that do not change between turns come first, so that providers can cache them. The token budget is the model's
    context minus the maximum answer. ``reserve`` tokens of it stay free for later additions. The question is cut only
    if it does not fit alone. ``closing`` is the last line of the recalled block.
    """
    whole = prompt_token_limit(capabilities) - reserve - tokens_of_tools(tools)
    text = system_text(conversation.agent, now=now, has_tools=bool(tools), room=whole)
    speaker = Speaker.ASSISTANT if conversation.agent else Speaker.SYSTEM
    system = [PromptMessage("system", text, speaker=speaker)]
    if conversation.summary:
        room = whole - tokens_of(system)
        summary = cut_to(escaped_lines(conversation.summary), int(room * SUMMARY_SHARE))
        summary = f"{prompt_text('compacted')}\n{summary}"
        system.append(PromptMessage("system", summary, speaker=Speaker.MODEL))
    block = recalled_block(used, names_people=names_people, closing=closing)
    about = profile_block(profile, names_people=names_people)
    blocks = ((documents, Speaker.DOCUMENT), (about, Speaker.MEMORY), (block, Speaker.MEMORY))
    tail = [PromptMessage("system", text, speaker=speaker) for text, speaker in blocks if text]
    room = whole - tokens_of([*system, *tail])
    recent = list(short_term.items)
    if short_term.directive:
        recent.insert(0, PromptMessage("system", short_term.directive, speaker=Speaker.SYSTEM))
    if recent and (size := tokens_of(recent)) <= room * SHORT_TERM_SHARE:
        tail = [*recent, *tail]
        room -= size
    pictures = _shown_within(conversation.question.pictures, int(room * PICTURES_SHARE))
    room -= picture_tokens(pictures)
    question_text = cut_to(conversation.question.content, max(LEAST_QUESTION, room - 16))
    question = PromptMessage("user", question_text, pictures=pictures, speaker=conversation.question.speaker)
    room = history_token_limit(capabilities, room - question.tokens, has_tools=bool(tools))
    shown = _history(conversation, room)
    messages = [*system, *shown.messages, *tail, question]
    is_tight = shown.left_out or shown.tokens > room * TIGHT
    seen_from = shown.first if shown.left_out else None
    return BuiltPrompt(messages, seen_from, is_tight, shown.keys, begins=len(system))


def history_token_limit(capabilities: Capabilities, room: int, *, has_tools: bool) -> int:
    """Return the tokens of ``room`` that the history may use: without the tools' share, up to the configured limit."""
    if has_tools:
        room -= int(prompt_token_limit(capabilities) * TOOLS_SHARE)
    most = settings.LLM_HISTORY_TOKENS if capabilities.history_tokens is None else capabilities.history_tokens
    return min(room, most)


def tokens_of(messages: Sequence[PromptMessage]) -> int:
    pictures = (picture for message in messages for picture in message.pictures)
    return sum([message.tokens for message in messages]) + picture_tokens(pictures)


def picture_tokens(pictures: Iterable[Picture]) -> int:
    return sum(picture.tokens for picture in pictures)


def _shown_within(pictures: Iterable[Picture], room: int) -> tuple[Picture, ...]:
    """Return the pictures. Those that do not fit into ``room`` tokens lose their image data and are only named."""
    shown = []
    for picture in pictures:
        room -= picture.tokens
        shown.append(picture if room >= 0 else replace(picture, jpeg=b""))
    return tuple(shown)


def prompt_token_limit(capabilities: Capabilities) -> int:
    """Return the maximum tokens of a prompt: the model's context minus the maximum answer."""
    return capabilities.context_tokens - answer_tokens(capabilities)


def answer_tokens(capabilities: Capabilities) -> int:
    return settings.LLM_MAX_TOKENS if capabilities.answer_tokens is None else capabilities.answer_tokens


def tokens_of_tools(tools: Sequence[Tool]) -> int:
    return sum([tool.tokens for tool in tools])


def recalled_token_limit(
    agent: Agent | None, capabilities: Capabilities, tools: Sequence[Tool], *, reserve: int, now: datetime
) -> int:
    """Return how many tokens recalled memories may use: a share of the space that the system text and tools leave."""
    whole = prompt_token_limit(capabilities) - reserve - tokens_of_tools(tools)
    system = system_text(agent, now=now, has_tools=bool(tools), room=whole)
    return int((whole - tokens(system)) * RECALLED_SHARE)


def system_text(agent: Agent | None, *, now: datetime, has_tools: bool, room: int) -> str:
    """Return the system text, with the date last, because it changes most. ``room``: tokens of the whole prompt."""
    parts = [prompt_text("system")]
    if has_tools:
        parts.append(prompt_text("tools"))
    if agent is not None:
        parts.append(agent_text(agent, room=room))
    return "\n\n".join([*parts, f"Today is {now:%A, %d %B %Y}."])


def agent_text(agent: Agent, *, room: int) -> str:
    """Return the instructions that describe the assistant to the model."""
    about = f"Name: {escape(agent.name)}\n{escaped_lines(agent.instructions)}".rstrip()
    about = cut_to(about, int(room * INSTRUCTIONS_SHARE))
    return f"{prompt_text('agent')}\n<assistant>\n{about}\n</assistant>"


def recalled_block(used: Sequence[Recalled], *, names_people: bool = False, closing: str = "") -> str:
    """Return the prompt block with the recalled memories, or "" if there are none. Stored text is escaped.

    ``names_people``: several people write in the chat, so each line names its author. ``closing``: the last line. A
    memory is marked as older if another one in the block may replace it.
    """
    if not used:
        return ""
    replaced = {item.memory.may_replace_id for item in used} - {None}
    lines = ["<recalled-memories>", prompt_text("recalled_shared" if names_people else "recalled")]
    for item in used:
        is_older = item.memory.pk in replaced
        lines.append(_recalled_line(item, names_people=names_people, is_older=is_older))
    lines += [closing] if closing else []
    return "\n".join([*lines, "</recalled-memories>"])


def profile_block(lines: Sequence[Recalled], *, names_people: bool = False) -> str:
    """Return the escaped prompt block with the profile (memories that apply to any message), "" if there are none."""
    if not lines:
        return ""
    told = [_recalled_line(line, names_people=names_people, is_older=False) for line in lines]
    return "\n".join(["<profile>", prompt_text("profile"), *told, "</profile>"])


def _recalled_line(item: Recalled, *, names_people: bool = True, is_older: bool = True) -> str:
    memory = item.memory
    label = [category_label(memory) or "memory", f"{memory.created_at:%Y-%m-%d}"]
    if names_people or memory.is_imported:
        label.append(writer_label(memory, is_edited=memory.edited_at is not None))
    if held := validity_label(memory):
        label.append(held)
    if is_older and memory.replaced_by_id is None:
        label.append("older: a newer line here may replace it")
    return f"- ({', '.join(label)}) {escape(item.text)}"


def leave_out_what_does_not_fit(
    recalled_memories: Sequence[Recalled], verdicts: Sequence[tuple[bool, str]], room: int
) -> list[tuple[bool, str]]:
    """Return the verdicts, changed so that memories that do not fit into ``room`` tokens are not used."""
    room -= tokens(prompt_text("recalled")) + tokens("<recalled-memories>") * 2
    fitting = []
    for item, (used, why) in zip(recalled_memories, verdicts, strict=True):
        cost = tokens(_recalled_line(item)) if used else 0
        if cost <= room:
            room -= cost
            fitting.append((used, why))
        else:
            fitting.append((False, NO_ROOM) if used else (used, why))
    return fitting


@dataclass(frozen=True)
class _Shown:
    messages: list[PromptMessage]
    tokens: int
    first: int  # key of the first line shown, else of the question
    left_out: bool
    keys: tuple[int, ...]  # keys of the lines shown


def _history(conversation: Conversation, room: int) -> _Shown:
    """Return the latest messages that fit into ``room`` tokens. The first of them is a user's."""
    messages, costs, for_pictures = list[PromptMessage](), list[int](), int(room * PICTURES_SHARE)
    for line in conversation.earlier[:LOOKED_AT]:
        pictures = _shown_within(line.pictures, for_pictures)
        costs.append(picture_tokens(pictures))
        for_pictures -= costs[-1]
        messages.append(PromptMessage(line.role, line.content, pictures=pictures, speaker=line.speaker))
    totals = accumulate(map(add, costs, [message.tokens for message in messages]), initial=0)
    spent = [total for total in totals if total <= room]
    count = max(0, len(spent) - 1)
    while count and messages[count - 1].role == "assistant":
        count -= 1
    left_out = count < len(conversation.earlier)
    keys = tuple(line.key for line in conversation.earlier[:count][::-1])
    first = keys[0] if keys else conversation.question.key
    return _Shown(messages[:count][::-1], spent[-1] if spent else 0, first, left_out, keys)


# These prefixes identify our own blocks, since text from people is never a system message.
MEMORY, DOCUMENTS = ("<recalled-memories>", "<profile>"), "<documents>"


def parts_of(messages: Sequence[PromptMessage], tools: Sequence[Tool]) -> Parts:
    """Return the estimated tokens of each part of a prompt. The tools' part includes definitions, calls and results."""
    memory = documents = tool_tokens = whole = 0
    for message in messages:
        called = [call.name + call.arguments for call in message.tool_calls]
        calls = tokens(*called) if called else 0
        size = message.tokens + calls
        whole += size
        tool_tokens += size if message.role == "tool" else calls
        if message.role == "system":
            memory += size if message.content.startswith(MEMORY) else 0
            documents += size if message.content.startswith(DOCUMENTS) else 0
    described = tokens_of_tools(tools)
    return Parts(memory, documents, tool_tokens + described, whole + described)


LEFT_OUT = 5  # recalled but unused memories stored in a receipt
STANDING = ("instruction", "preference")  # categories of workspace memories that apply to any message
# Token budget of the profile, about ten lines; also at most a quarter of the budget for recalled memories.
PROFILE_TOKENS = 500


@dataclass(frozen=True)
class Found:
    """The result of a recall for a prompt. ``stored``: number of memories that were searched.

    ``verdicts``: for each recalled memory whether it is used and, if not, why. ``profile``: memories that apply to any
    message.
    """

    recall: Recall
    verdicts: list[tuple[bool, str]]
    threshold: float
    stored: int
    profile: Sequence[Recalled] = ()

    @property
    def more(self) -> int:
        """Return how many memories of an overview are not in the prompt, or 0 if that is not known.

        It is 0 if the result is no overview, for an overview of a topic, and if recall returned the whole overview.
        """
        if self.recall.overview is None or not self.recall.more:
            return 0
        return self.recall.more + len(self.recall.items) - len(self.used)

    def closing(self, page: str) -> str:
        """Return the last line of the recalled block: how many memories are left out, and that ``page`` lists them."""
        return prompt_text("overview_closing").format(count=self.more, page=page) if self.more else ""

    @cached_property
    def used(self) -> list[Recalled]:
        return [item for item, (used, _) in zip(self.recall.items, self.verdicts, strict=True) if used]

    @property
    def given(self) -> list[Memory]:
        """The memories that the model receives, recalled ones and those of the profile."""
        return [item.memory for item in (*self.used, *self.profile)]


def with_profile(
    prompt_memories: Found,
    workspace: Workspace,
    person: User,
    *,
    room: int,
    policy: DataPolicy,
    now: datetime,
) -> Found:
    """Return ``prompt_memories`` with as many memories of the profile as fit, without those that were recalled already.

    The profile is the user's, and the workspace's pinned memories, instructions and preferences.
    """
    profile = profile_of(workspace, person, policy=policy, now=now)
    room, recalled = min(PROFILE_TOKENS, room // 4), {item.memory.pk for item in prompt_memories.used}
    standing = [memory for memory in profile.here if memory.pinned or memory.category in STANDING]
    lines: list[Recalled] = []
    for memory in (*profile.you, *standing):
        longer = [*lines, Recalled(memory, 0.0, {}, is_brief=True)]
        if memory.pk not in recalled and tokens(profile_block(longer, names_people=True)) <= room:
            lines = longer
    return replace(prompt_memories, profile=lines)


def find_for_prompt(
    question: str,
    workspace: Workspace,
    person: User,
    *,
    agent: Agent | None,
    room: int,
    policy: DataPolicy,
    now: datetime,
) -> Found:
    """Recall memories, and decide which are used: those that are relevant and fit into ``room`` tokens."""
    limit = settings.RECALL_LIMIT
    live = count_live(workspace, person, personal=policy.personal, now=now)
    threshold = injection_threshold(settings.RECALL_THRESHOLD, live)
    recall_result = recall(
        question,
        workspace,
        person,
        limit=limit + LEFT_OUT,
        agent=agent,
        policy=policy,
        withheld=limit,
        now=now,
        lines=overview.LINES,
    )
    if recall_result.overview is None:
        recall_result = with_newer(recall_result)
        verdicts = split_recall(recall_result, threshold=threshold, limit=limit)
    else:
        verdicts = [(True, "")] * len(recall_result.items)
    verdicts = leave_out_what_does_not_fit(recall_result.items, verdicts, room)
    return Found(recall_result, verdicts, threshold, live)
