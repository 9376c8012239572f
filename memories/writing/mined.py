"""What a turn's candidates become: who is asked for them, and the draft of each, which may have to wait for review."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.utils import timezone

from memories.judging.extraction.candidates import Candidate
from memories.judging.extraction.model import Around, Complete, distil_with_model, extract_with_model
from memories.judging.extraction.provenance import Source
from memories.judging.extraction.rules import extract_with_rules
from memories.models import Extraction, Scope
from memories.writing.drafts import Draft, cut_at_word
from memories.writing.same_turn import saved_in_turn
from memories.writing.turn_text import TurnText, load_message
from memoryhub.errors import Conflict
from memoryhub.llm.base import Message, Speaker
from memoryhub.llm.errors import ModelBadReply
from memoryhub.llm.reader import get_reader
from workspaces.access import personal_place, role_in
from workspaces.connections.choice import Chosen, chosen_for
from workspaces.models import Purpose, User, Workspace
from workspaces.spending.bill import Account, rate_of
from workspaces.spending.budgets import has_budget
from workspaces.spending.ledger import counted

_USER = re.compile(r"^(?:The user|User)(?=\b)")
MOST_REPLY = 2000  # tokens: eight statements, and what a reasoning model thinks before them


def completer(
    chosen: Chosen,
    workspace: Workspace,
    user: User | None,
    *,
    json: bool = False,
    stays_here: bool = False,
) -> Complete | None:
    """The chosen model as a plain function, or None where it is too small to extract, or may not be asked here, or the
    month's budget is used up. What it takes is put on this person in this workspace.

    ``json``: it is held to JSON where its connection can do that; one that says nothing then is asked without.
    ``stays_here``: what it is to read never leaves this machine.
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
        asked = [Message("system" if m["role"] == "system" else "user", m["content"]) for m in messages]
        with counted(account):
            try:
                return model.complete(asked, temperature=0.0, max_tokens=MOST_REPLY, json=json)
            except ModelBadReply:
                if not json:
                    raise
                return model.complete(asked, temperature=0.0, max_tokens=MOST_REPLY)

    return complete


def completer_for(
    turn: TurnText, workspace: Workspace, user: User | None, *, json: bool = False
) -> Complete | None:
    """The model that answers this person where the turn was taken: what is said in a chat goes to no other."""
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
    """Who found them, and what; ``faint`` as ``extract_with_rules`` has it, ``unread`` as ``parse_candidates``."""
    if turn.is_output:  # rules read what people say of themselves, which an output is not
        text = turn.messages[0][1]
        return ("model", distil_with_model(complete, text, unread)) if complete else ("none", [])
    if complete is None:
        return "rules", extract_with_rules(turn.messages, get_reader(), before=turn.earlier, faint=faint)
    around = Around(
        earlier=turn.earlier,
        said_on=turn.said_at.date() if turn.said_at else None,
        speaker=_name_of(turn.said_by),
        saved=[memory.content for memory in saved_in_turn(turn.user_message_id)],
    )
    return "model", extract_with_model(complete, turn.messages, around, unread)


def _name_of(user: User | None) -> str:
    return user.shown_name if user else ""


def place_for(extraction: Extraction, turn: TurnText, *, own_words: bool = True) -> Workspace | None:
    """Return the scope for extracted memories; None if they would leave this machine, which the workspace forbids.

    ``own_words``: a person said it plainly, so it rests on nothing that the answer was shown.
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
    """Return whether only the person whose turn it was may read what comes of it."""
    return turn.is_private or (not own_words and (turn.is_personal or turn.stays_here))


def draft_of(extraction: Extraction, turn: TurnText, extractor: str, candidate: Candidate) -> Draft | None:
    """What is said in a private chat becomes a personal memory: nobody but its creator sees the one or the other. So
    does what rests on an answer that was shown something personal.

    What rests on anything but a person's own words waits for review. None where it may be kept nowhere.
    """
    today = turn.said_at.date() if turn.said_at else None
    asker = extraction.user if turn.is_output else turn.said_by
    by = asker.pk if asker else 0
    provenance = turn.provenance
    if candidate.details.get("rule") == "reply" and asker is not None:  # the assistant asked, they answered
        answer = Source(Speaker.PERSON, candidate.text, turn.user_message_id, is_confirmed=True, author=by)
        provenance = provenance.plus(answer)
    source = provenance.rests_on(candidate.text, get_reader(), today=today, names=_name_of(asker), by=by)
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
    return draft.resting_on(source)


def named_for_team(text: str, said_by: User | None, workspace: Workspace) -> str:
    """The statement with its speaker's name in place of "User", where others read it: "Maria's dog is called Rex"."""
    if said_by is None or not _USER.match(text) or workspace.memberships.count() < 2:
        return text
    return _USER.sub(lambda _user: said_by.shown_name, text, count=1)


def _author(extraction: Extraction, turn: TurnText, source: Source, *, is_alone: bool) -> User | None:
    """Who said it, while they are a member; nobody where they are gone. Of an output: who had it made."""
    said_by = extraction.user if is_alone or turn.is_output else turn.said_by
    if source.author and source.author != (said_by.pk if said_by else 0):
        said_by = User.objects.filter(pk=source.author).first()
    if said_by is None or said_by == extraction.user:
        return said_by
    return said_by if role_in(said_by, extraction.workspace) is not None else None
