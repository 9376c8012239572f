"""The sources that a model was shown in a turn or a run, and the flags of answers that use personal or local-only ones.

An answer stores only the ids of sources, and their texts are loaded when a statement is compared with them, so that
forgetting needs no extra step. A deleted source counts as unreadable.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Q

from chat.chats.personal_memories import personal_allowed
from chat.models import (
    AnswerSource,
    Chat,
    Compaction,
    Message,
    MessageRole,
    PersonalUse,
    ToolCall,
    ToolOutcome,
)
from chat.models.answer_steps import Step
from chat.models.runs import Run
from chat.prompting.short_term_memory import ShortTerm, is_personal, recent, stays_here
from memories.judging.extraction.speaker import Provenance, Source, confirmed
from memories.models import Memory, ReceiptItem
from memoryhub.llm.base import Speaker
from workspaces.data_policy import DataPolicy
from workspaces.documents.search import FoundPassage
from workspaces.models import Artifact, Document, DocumentPassage, DocumentPicture, User, Workspace

MESSAGES, ANSWERS = 60, 10  # messages and answers considered
MOST_ENTRIES = 100  # entries considered of a run's memory
MOST_SHOWN = 500  # sources stored per run
LONGEST_ENTRY = 16_000  # characters
GONE = -1  # author of a text whose account was deleted


@dataclass(frozen=True)
class Shown:
    """A range of characters of a source that a tool showed to the model. ``id``: public id of the source."""

    speaker: Speaker
    id: str
    begins: int = 0
    ends: int = 10**9

    def as_json(self) -> list[Any]:
        return [str(self.speaker), self.id, self.begins, self.ends]


class _Line(NamedTuple):
    """A message of the chat. ``imported_at`` is set if it was imported under another person's name."""

    pk: int
    role: str
    content: str
    public_id: str
    only_documents: list[str] | None
    imported_at: datetime | None
    author_id: int | None
    personal: str
    stays_here: bool


@dataclass(frozen=True)
class _Turn:
    """A chat up to the message ``last``, as ``by`` may see it."""

    last: Message
    by: User | None
    lines: Sequence[_Line]  # newest first

    @property
    def answers(self) -> dict[int, str]:
        """The public ids of the latest ``ANSWERS`` answers, by primary key."""
        id_pairs = [(line.pk, line.public_id) for line in self.lines if line.role == MessageRole.ASSISTANT]
        return dict(id_pairs[:ANSWERS])


def provenance_until(last: Message, by: User | None) -> Provenance:
    """Return all sources that the model was shown up to the message ``last``. At most about fifteen queries."""
    before = Message.objects.filter(chat_id=last.chat_id, pk__lte=last.pk).order_by("-pk")
    rows = before.values_list(*_Line._fields)[: 2 * MESSAGES]
    turn = _Turn(last, by, [_Line(*row) for row in rows])
    return Provenance(tuple(source for route in ROUTES for source in route(turn)))


def provenance_of_run(run: Run) -> Provenance:
    """Return the sources of a run. Its objective and messages of people in its chat count as people's own words."""
    sources = [Source(Speaker.PERSON, run.objective, author=run.user_id)]
    if run.answer is not None:
        sources += provenance_until(run.answer, run.user).sources
    sources += _of_runs([run.pk], run.user)
    return Provenance(tuple(sources))


def _people(turn: _Turn) -> Iterator[Source]:
    """Yield the texts of users: their own words, text that they imported, and statements that they confirmed ("yes").

    If the confirmed answer is personal or local-only, it counts only if the answer of this turn is so too.
    """
    for at, line in enumerate(turn.lines):
        if line.role != MessageRole.USER:
            continue
        if line.imported_at is not None:
            yield Source(Speaker.IMPORT, line.content, line.public_id)
            continue
        source = Source(Speaker.PERSON, line.content, line.public_id, author=line.author_id or GONE)
        yield source
        earlier = next((each for each in turn.lines[at + 1 :] if each.role == MessageRole.ASSISTANT), None)
        if earlier is None or ((earlier.personal or earlier.stays_here) and not turn.last.is_marked):
            continue
        if confirmed_text := confirmed(line.content, earlier.content):
            yield replace(source, text=confirmed_text, is_confirmed=True)


def _answers(turn: _Turn) -> Iterator[Source]:
    for line in turn.lines:
        if line.pk in turn.answers:
            yield Source(Speaker.MODEL, line.content, line.public_id)


def _recalled(turn: _Turn) -> Iterator[Source]:
    items = ReceiptItem.objects.filter(receipt__message_id__in=turn.answers.values(), used=True)
    items = items.filter(memory__in=Memory.objects.filter(_readable_by(turn.by)))
    for name, text in items.values_list("memory__public_id", "content"):
        yield Source(Speaker.MEMORY, text, name)


def _passages(turn: _Turn) -> Iterator[Source]:
    """Yield the document passages in the prompts of the latest answers."""
    rows = AnswerSource.objects.filter(message_id__in=turn.answers).select_related("document", "passage")
    for row in rows:
        text = row.passage.text if row.passage and _may_read(row.document, turn.by) else None
        yield Source(Speaker.DOCUMENT, text, row.document.public_id)


def _pictures(turn: _Turn) -> Iterator[Source]:
    """Yield a source without text for each picture in the chat, since statements cannot be compared with it."""
    named = {each for line in turn.lines for each in line.only_documents or ()}
    rows = DocumentPicture.objects.filter(document__public_id__in=named)
    for name in rows.values_list("document__public_id", flat=True):
        yield Source(Speaker.DOCUMENT, None, name)


def _tools(turn: _Turn) -> Iterator[Source]:
    """Yield the results of tools and checks, without texts that the model itself saved.

    With those as sources, one of several similar parallel calls would be sent to review.
    """
    own = (ToolOutcome.NOTED, ToolOutcome.SAVED, ToolOutcome.DUPLICATE)
    calls = list(ToolCall.objects.filter(message_id__in=turn.answers).exclude(outcome__in=own))
    steps = Step.objects.filter(message_id__in=turn.answers)
    memory_ids = {each for ids in steps.values_list("memory_ids", flat=True) for each in ids}
    memory_ids.update(each for call in calls for each in call.memory_ids)
    refs = [Shown(Speaker.MEMORY, each) for each in memory_ids]
    refs += [Shown(Speaker(speaker), *rest) for call in calls for speaker, *rest in call.shown or ()]
    loaded = list(_loaded(refs, turn.by))
    yield from loaded
    unreadable = {source.id for source in loaded if source.text is None}
    for call in calls:
        if call.output and unreadable.isdisjoint(call.memory_ids):
            yield Source(Speaker.TOOL, call.output, call.public_id)
        if call.shown is None and call.count > len(call.memory_ids):  # from before results were stored
            yield Source(Speaker.TOOL, None, call.public_id)


def _runs(turn: _Turn) -> Iterator[Source]:
    """Yield the reports of research runs as sources, and the sources of these runs."""
    runs = list(Run.objects.filter(answer_id__in=turn.answers).only("pk", "answer_id", "web_urls"))
    lines = {line.pk: line for line in turn.lines}
    for run in runs:
        assert run.answer_id is not None
        speaker = Speaker.WEB if run.web_urls else Speaker.RUN
        yield Source(speaker, lines[run.answer_id].content, lines[run.answer_id].public_id)
    # The report's text already contains what the run found on the web.
    sources = _of_runs([run.pk for run in runs], turn.by)
    yield from (each for each in sources if each.speaker is not Speaker.WEB)


def _standing(turn: _Turn) -> Iterator[Source]:
    """Yield texts that are in every prompt: the assistant's instructions and the summaries of other chats."""
    chat = Chat.objects.select_related("agent", "workspace").get(pk=turn.last.chat_id)
    if chat.agent is not None:
        yield Source(Speaker.ASSISTANT, chat.agent.instructions, chat.agent.public_id)
    if turn.by is not None:
        personal = personal_allowed(chat, turn.by)
        policy = DataPolicy.to_model(chat.workspace, is_local=True, personal=personal)
        for other in recent(chat, turn.by, policy=policy, now=turn.last.created_at)[1]:
            text = "\n".join([other.chat.title, other.summary, *(snippet[1] for snippet in other.last_said)])
            yield Source(Speaker.CHAT, text, other.chat.public_id)


# All ways into a chat's prompt. tests/chat/turns/test_provenance_routes.py puts a sentence into each.
ROUTES: tuple[Callable[[_Turn], Iterable[Source]], ...] = (
    _people,
    _answers,
    _recalled,
    _passages,
    _pictures,
    _tools,
    _runs,
    _standing,
)


def _of_runs(pks: Sequence[int], by: User | None) -> Iterator[Source]:
    """Yield the sources that tools showed in these runs, and the results that steps passed to each other."""
    runs = list(Run.objects.filter(pk__in=pks).prefetch_related("entries"))
    yield from _loaded([Shown(Speaker(s), *rest) for run in runs for s, *rest in run.shown], by)
    for run in runs:
        for entry in list(run.entries.all())[-MOST_ENTRIES:]:
            yield Source(Speaker.RUN, _texts_of_json(entry.json), run.public_id)
        for json_value in (run.plan, run.board):
            if json_value:
                yield Source(Speaker.RUN, _texts_of(json_value), run.public_id)
        if run.web_urls:
            yield Source(Speaker.WEB, None, run.public_id)


def _loaded(refs: Sequence[Shown], by: User | None) -> Iterator[Source]:
    """Yield a source for each of ``refs``. Its text is None if it was deleted or ``by`` may not read it."""
    wanted: dict[Speaker, dict[str, list[Shown]]] = defaultdict(lambda: defaultdict(list))
    for ref in dict.fromkeys(refs):
        wanted[ref.speaker][ref.id].append(ref)
    for speaker, by_id in wanted.items():
        texts = _LOADERS[speaker](by_id, by) if speaker in _LOADERS else {}
        for name in by_id:
            yield Source(speaker, texts.get(name), name)


def _readable_by(by: User | None) -> Q:
    """Return a filter without other people's personal rows, whose content a comparison would reveal."""
    return Q(owner=None) | Q(owner=by, owner__isnull=False)


def _memories(refs: dict[str, list[Shown]], by: User | None) -> dict[str, str]:
    rows = Memory.objects.filter(_readable_by(by), public_id__in=refs)
    return dict(rows.values_list("public_id", "content"))


def _documents(refs: dict[str, list[Shown]], by: User | None) -> dict[str, str]:
    rows = DocumentPassage.objects.filter(document__public_id__in=refs, document__deleted_at=None)
    rows = rows.filter(_readable_by(by)).order_by("document_id", "number")
    passages: dict[str, list[str]] = defaultdict(list)
    for name, begins, text in rows.values_list("document__public_id", "begins", "text"):
        if any(begins < ref.ends and begins + len(text) > ref.begins for ref in refs[name]):
            passages[name].append(text)
    return {name: "\n".join(texts) for name, texts in passages.items()}


def _artifacts(refs: dict[str, list[Shown]], by: User | None) -> dict[str, str]:
    rows = Artifact.objects.live().filter(_readable_by(by), public_id__in=refs)
    return dict(rows.values_list("public_id", "content"))


def _messages(refs: dict[str, list[Shown]], by: User | None) -> dict[str, str]:
    if by is None:
        return {}
    rows = Message.objects.filter(public_id__in=refs, chat__in=Chat.objects.visible_to(by).live())
    return dict(rows.values_list("public_id", "content"))


_LOADERS = {
    Speaker.MEMORY: _memories,
    Speaker.DOCUMENT: _documents,
    Speaker.ARTIFACT: _artifacts,
    Speaker.CHAT: _messages,
}


def _may_read(document: Document, by: User | None) -> bool:
    is_own = by is not None and document.owner_id == by.pk
    return document.deleted_at is None and (document.owner_id is None or is_own)


def _texts_of_json(text: str) -> str:
    try:
        return _texts_of(json.loads(text[:LONGEST_ENTRY]))
    except ValueError:
        return text[:LONGEST_ENTRY]


def _texts_of(value: object) -> str:
    """Return the strings in a JSON value, one per line."""
    match value:
        case str(text):
            return text
        case list(values):
            return "\n".join(map(_texts_of, values))
        case dict(named):
            return "\n".join(map(_texts_of, named.values()))
    return ""


@dataclass
class AnswerFlags:
    """Flags of an answer that used personal or local-only data, as in ``Message``. They are only set, never cleared."""

    other_chats: list[str] = field(default_factory=list)
    personal: str = PersonalUse.NONE
    stays_here: bool = False

    @classmethod
    def stored_with(cls, answer: Message) -> AnswerFlags:
        return cls(list(answer.other_chats), answer.personal, answer.stays_here)

    def add(self, *, held: bool = False, seen: bool = False, stays_here: bool = False) -> None:
        if held:
            self.personal = PersonalUse.HELD
        elif seen and not self.personal:
            self.personal = PersonalUse.SEEN
        self.stays_here = self.stays_here or stays_here

    def add_given(
        self, workspace_id: int, memories: Collection[Memory], passages: Sequence[FoundPassage] = ()
    ) -> None:
        """Set the flags by the memories and passages in the prompt. One query if any is from another workspace."""
        sources: list[Memory | Document] = [*memories, *(each.passage.document for each in passages)]
        places = {each.workspace_id for each in sources} - {workspace_id}
        self.add(
            held=any(each.owner_id is not None for each in sources),
            stays_here=bool(places) and Workspace.objects.filter(pk__in=places, local_only=True).exists(),
        )

    def add_short_term(self, chat: Chat, told: ShortTerm) -> None:
        for row in told.others:
            self.other_chats = list(dict.fromkeys([*self.other_chats, row.chat.public_id]))
            self.add(held=is_personal(row, chat), stays_here=stays_here(row, chat))
        if told.own is not None:
            self.add(seen=told.own.personal_at is not None, stays_here=told.own.stays_here)

    def add_history(self, keys: Collection[int], compaction: Compaction | None) -> None:
        """Set the flags by earlier answers in the prompt, in full text (``keys``) or summarised. At most one query."""
        rows = Message.objects.filter(pk__in=keys).marked() if keys else Message.objects.none()
        if compaction is not None and compaction.is_marked:
            rows |= Message.objects.filter(chat=compaction.chat_id, pk__lte=compaction.upto_id).marked()
        for personal, is_here in rows.values_list("personal", "stays_here").distinct():
            self.add(seen=bool(personal), stays_here=is_here)


def mark_tool_call(call: ToolCall, *, stays_here: bool) -> None:
    """Mark the answer as personal or local-only if the result of this tool call is.

    ``stays_here``: the result is local-only. The memories in the result (``call.memory_ids``) are checked as well,
    with up to three queries. Without them, an unmarked result causes no query.
    """
    flags = AnswerFlags()
    if call.memory_ids:
        place = Chat.objects.values_list("workspace_id", flat=True).get(messages=call.message_id)
        flags.add_given(place, list(Memory.objects.filter(public_id__in=call.memory_ids)))
    flags.add(held=call.held_personal, stays_here=stays_here)
    mark_answer(call.message_id, flags)


def mark_answer(answer_pk: int, flags: AnswerFlags) -> None:
    """Set the flags on the stored answer, in addition to earlier ones. They remain if the sources are deleted later."""
    answer = Message.objects.filter(pk=answer_pk)
    if flags.personal == PersonalUse.HELD:
        answer.update(personal=PersonalUse.HELD)
    elif flags.personal:
        answer.filter(personal=PersonalUse.NONE).update(personal=flags.personal)
    if flags.stays_here:
        answer.update(stays_here=True)
