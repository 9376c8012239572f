"""Conversion of a chat turn to drafts of memories."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from memories.judging.duplicates import may_merge, normalise
from memories.judging.extraction.grounding import names_in, numbers_in
from memories.judging.extraction.speaker import NOTHING, Provenance, Source, nearest_of
from memories.judging.extraction.with_classifier import extract_with_rules
from memories.judging.extraction.with_language_model import (
    Around,
    Candidate,
    Complete,
    distil_with_model,
    extract_with_model,
)
from memories.models import Extraction, Memory, Scope, SourceType
from memories.writing.changing import record_wordings
from memories.writing.drafts import Draft, cut_at_word
from memoryhub.errors import Conflict
from memoryhub.llm.base import Message, Speaker
from memoryhub.llm.errors import ModelBadReply
from memoryhub.llm.registry import get_reader
from workspaces.access import personal_place, role_in
from workspaces.index.embedding import Embedded
from workspaces.model_choice import Chosen, chosen_for
from workspaces.models import Purpose, User, Workspace
from workspaces.models.language_models import Connection
from workspaces.spending.budgets import has_budget
from workspaces.spending.usage_records import Account, counted, rate_of

SAME = 0.5  # minimum cosine, by the encoder, of a memory and a statement extracted again from its message
CLOSE = 0.75  # minimum cosine of two wordings from one message: 14 of 16 measured pairs exceed it


def saved_in_turn(message_id: str) -> list[Memory]:
    """Return the memories that tools saved for this message, including proposals and deleted ones."""
    rows = Memory.objects.filter(source_message_id=message_id, source_type=SourceType.MODEL)
    return list(rows.select_related("workspace")) if message_id else []


def says_the_same(
    draft: Draft, embedded: Embedded | None, saved: Sequence[tuple[Memory, Embedded | None]], *, now: datetime
) -> Memory | None:
    """Return the memory in ``saved`` that says the same as the draft, and record the draft's wording in its history.

    ``saved`` are memories that tools saved for the same message, so a lower similarity suffices than between others. A
    draft with a number or name that the memory lacks is another fact.
    """
    for memory, theirs in saved:
        if memory.place != draft.place or not may_merge(memory.content, draft.content, get_reader()):
            continue
        if _marks(draft.content) - _marks(memory.content):
            continue
        both = embedded is not None and theirs is not None and embedded.model == theirs.model
        if both and float(embedded.statement @ theirs.statement) >= CLOSE:  # type: ignore[union-attr]
            record_wordings([(memory, draft.content)], by=None, now=now)
            return memory
    return None


def candidate_of(memory: Memory, candidates: Sequence[Candidate], message: str) -> Candidate | None:
    """Return the candidate that says the same as the memory, or None. Uses the encoder."""
    if not candidates:
        return None
    at, cosine = nearest_of(memory.content, [each.text for each in candidates], get_reader())
    is_whole = normalise(memory.content) == normalise(message) or memory.source_details.get("synthesize")
    return candidates[at] if is_whole or cosine >= SAME else None


def _marks(text: str) -> set[str]:
    return names_in(text) | numbers_in(text)


@dataclass(frozen=True)
class TurnText:
    """The messages of a finished turn as (role, text), in order, and their context."""

    messages: tuple[tuple[str, str], ...]
    user_message_id: str
    excerpt: str  # the messages around the user's: two before, one after
    is_private: bool = False  # from a chat that only its creator sees, which makes its memories personal
    is_personal: bool = False  # the answer may use personal data, so memories based on it are personal
    said_by: User | None = None  # the author of the question, even if someone else regenerated the answer
    is_output: bool = False  # the result of a tool, a summary or long thinking, which no person said
    # (role, text) of earlier messages: context only, never extracted from
    earlier: tuple[tuple[str, str], ...] = ()
    said_at: datetime | None = None
    said_before: str = ""  # id of the previous message, if the same person wrote it
    provenance: Provenance = NOTHING  # the model's context: only compared with, never extracted from
    stays_here: bool = False  # based on text that must not leave this machine: only for a local model
    connection: Connection | None = None  # the connection selected in the chat
    workspace: Workspace | None = None  # the workspace of the chat; None: that of the extraction

    @property
    def user_texts(self) -> list[str]:
        return [] if self.is_output else [text for role, text in self.messages if role == "user"]


TurnLoader = Callable[[str, str, User | None], TurnText | None]
MessageLoader = Callable[[str, User | None], TurnText | None]
_turn_loader: list[TurnLoader] = []
_message_loader: list[MessageLoader] = []


def register_loaders(*, turn: TurnLoader, message: MessageLoader) -> None:
    """Register the functions that load messages for extraction. They return None if a message is gone or not visible.

    ``turn`` loads the text to extract from, by the public id of the extraction, its source type and its user.
    ``message`` loads any message by its id, for a person who may see it.
    """
    _turn_loader[:], _message_loader[:] = [turn], [message]


def load_turn(public_id: str, source_type: str, by: User | None) -> TurnText | None:
    return _turn_loader[0](public_id, source_type, by)


def load_message(message_id: str, reader: User | None) -> TurnText | None:
    return _message_loader[0](message_id, reader)


_USER = re.compile(r"^(?:The user|User)(?=\b)")
MOST_REPLY = 2000  # tokens, enough for eight statements and the reasoning before them


def completer(
    chosen: Chosen,
    workspace: Workspace,
    user: User | None,
    *,
    json: bool = False,
    stays_here: bool = False,
) -> Complete | None:
    """Return a function that completes messages by the chosen model and charges the cost to this person and workspace.

    Return None if the model may not be used, or if the month's budget is used up. ``json`` requests JSON output, and
    repeats a request without it after a bad reply. ``stays_here``: the text must not leave this machine.
    """
    model = chosen.model
    if stays_here and not model.capabilities.local:
        return None
    if chosen.trouble is not None or not model.capabilities.can_extract:
        return None
    account = Account(workspace.pk, user.pk if user else None, Purpose.MEMORY, rate_of(chosen))
    if not has_budget(account, now=timezone.now()):
        return None

    def complete(messages: list[dict[str, str]]) -> str:
        prompt_messages = [
            Message("system" if m["role"] == "system" else "user", m["content"]) for m in messages
        ]
        with counted(account):
            try:
                return model.complete(prompt_messages, temperature=0.0, max_tokens=MOST_REPLY, json=json)
            except ModelBadReply:
                if not json:
                    raise
                return model.complete(prompt_messages, temperature=0.0, max_tokens=MOST_REPLY)

    return complete


def completer_for(
    turn: TurnText, workspace: Workspace, user: User | None, *, json: bool = False
) -> Complete | None:
    """Return the ``completer`` of the model that answers in the turn's chat. No other model gets its messages."""
    said_in = turn.workspace or workspace
    chosen = chosen_for(said_in, user, first=turn.connection)
    return completer(chosen, said_in, user, json=json, stays_here=turn.stays_here)


def candidates_of(
    turn: TurnText,
    complete: Complete | None,
    *,
    faint: bool = False,
    unread: Callable[[], None] | None = None,
) -> tuple[str, list[Candidate]]:
    """Return the name of the extractor and the candidates of a turn. ``faint`` adds uncertain ones of the rules."""
    if turn.is_output:  # rules recognize what people say about themselves, and an output has no speaker
        text = turn.messages[0][1]
        return ("model", distil_with_model(complete, text, unread)) if complete else ("none", [])
    if complete is None:
        return "rules", extract_with_rules(turn.messages, get_reader(), before=turn.earlier, faint=faint)
    around = Around(
        earlier=turn.earlier,
        said_on=turn.said_at.date() if turn.said_at else None,
        speaker=turn.said_by.shown_name if turn.said_by else "",
        saved=[memory.content for memory in saved_in_turn(turn.user_message_id)],
    )
    return "model", extract_with_model(complete, turn.messages, around, unread)


def place_for(extraction: Extraction, turn: TurnText, *, own_words: bool = True) -> Workspace | None:
    """Return the workspace for memories extracted from the turn, or None if none keeps them on this machine.

    ``own_words``: a person plainly said the text, so it does not depend on the data that the answer used.
    """
    if not _is_alone(turn, own_words):
        return extraction.workspace
    stays_here = turn.stays_here and not own_words
    try:
        said_in = turn.workspace or extraction.workspace
        return personal_place(extraction.user, said_in=said_in, stays_here=stays_here)
    except Conflict:
        return None


def _is_alone(turn: TurnText, own_words: bool) -> bool:
    """Return whether memories extracted from the turn must be personal ones of its user."""
    return turn.is_private or (not own_words and (turn.is_personal or turn.stays_here))


def draft_of(extraction: Extraction, turn: TurnText, extractor: str, candidate: Candidate) -> Draft | None:
    """Return the draft of a candidate, or None if no workspace may store it."""
    today = turn.said_at.date() if turn.said_at else None
    asker = extraction.user if turn.is_output else turn.said_by
    by = asker.pk if asker else 0
    provenance = turn.provenance
    if candidate.details.get("rule") == "reply" and asker is not None:
        # The person answered a question of the assistant.
        answer = Source(Speaker.PERSON, candidate.text, turn.user_message_id, is_confirmed=True, author=by)
        provenance = provenance.plus(answer)
    names = asker.shown_name if asker else ""
    source = provenance.rests_on(candidate.text, get_reader(), today=today, names=names, by=by)
    place = place_for(extraction, turn, own_words=source.is_plain)
    if place is None:
        return None
    is_alone = _is_alone(turn, source.is_plain)
    text = candidate.text if is_alone else named_for_team(candidate.text, turn.said_by, place)
    text = cut_at_word(text)
    other = load_message(source.id, extraction.user) if source.author not in (0, by) else None
    draft = Draft(
        content=text,
        summary=text,
        workspace=place,
        scope=Scope.USER if is_alone else Scope.WORKSPACE,
        author=_author(extraction, turn, source, is_alone=is_alone),
        owned_by=extraction.user if is_alone else None,
        category=candidate.kind,
        importance=candidate.importance,
        source_type=extraction.source_type,
        source_chat_id=extraction.chat_id,
        source_message_id=other.user_message_id if other else turn.user_message_id,
        source_excerpt=other.excerpt if other else turn.excerpt,
        source_details={"extractor": extractor, **candidate.details},
    )
    return draft.with_source(source)


def named_for_team(text: str, said_by: User | None, workspace: Workspace) -> str:
    """Replace "User" at the start of a text by the speaker's name, if the workspace has other members."""
    if said_by is None or not _USER.match(text) or workspace.memberships.count() < 2:
        return text
    return _USER.sub(lambda _user: said_by.shown_name, text, count=1)


def _author(extraction: Extraction, turn: TurnText, source: Source, *, is_alone: bool) -> User | None:
    """Return the author of the words that the text is based on, if still a member; of an output who requested it."""
    said_by = extraction.user if is_alone or turn.is_output else turn.said_by
    if source.author and source.author != (said_by.pk if said_by else 0):
        said_by = User.objects.filter(pk=source.author).first()
    if said_by is None or said_by == extraction.user:
        return said_by
    return said_by if role_in(said_by, extraction.workspace) is not None else None
