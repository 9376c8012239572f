"""Tools that save, recall, search and summarise, as the user of the turn."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from django.db.models import Q
from pydantic import AllowInfNan, Field, StringConstraints

from chat.models import SUMMARY_LENGTH, Message, ToolOutcome
from chat.prompting.prompt_text import (
    category_label,
    escape,
    excerpt_around,
    imported_label,
    validity_label,
    writer_label,
)
from chat.prompting.provenance import GONE, Shown
from chat.prompting.short_term_memory import TOOL_NAME, set_summary
from chat.tools import artifacts
from chat.tools.base import (
    Arguments,
    ChatTool,
    InChat,
    Result,
    ToolCaller,
    ToolTrouble,
    ToRead,
    at_most,
    within,
)
from memories.judging.extraction.speaker import Source
from memories.judging.secret_filter import find_personal
from memories.models import Memory, Scope, SourceType
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH
from memories.recalling.overview import LINES
from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import QUERY_LENGTH, Recall, recall_for
from memories.recalling.workspace_search import Found, search_workspace
from memories.writing.changing import announce_auto_saved
from memories.writing.drafts import cut_at_word
from memories.writing.gate import Draft, save_memory
from memories.writing.tombstones import WasForgotten
from memoryhub.errors import Conflict, Invalid, SecretRefused
from memoryhub.llm.base import Speaker
from memoryhub.llm.registry import get_reader
from workspaces.access import require, role_in
from workspaces.data_policy import is_local_elsewhere
from workspaces.models import Agent, Role, User, Workspace
from workspaces.quotas import QuotaReached

RECALLED, MOST_RECALLED = 5, 20
READ = {"doc_": artifacts.read_document, artifacts.PREFIX: artifacts.read}
# The speaker of each type of search result.
SPEAKERS = {"document": Speaker.DOCUMENT, "artifact": Speaker.ARTIFACT, "message": Speaker.CHAT}
LONGEST_LIST = 12_000  # characters of a list; twenty of the longest memories would fill a context window

Query = Annotated[str, at_most(QUERY_LENGTH)]
Limit = Annotated[int, *within(1, MOST_RECALLED)]
Statement = Annotated[str, at_most(CONTENT_LENGTH)]
Category = Annotated[str, at_most(CATEGORY_LENGTH)]


class ToSave(Arguments):
    content: Statement
    category: Category | None = None


class ToRecall(Arguments):
    query: Query
    offset: Annotated[int, *within(0, 1000)] = 0
    limit: Limit = RECALLED

    @property
    def how_many(self) -> dict[str, int]:
        """The limits for ``recall``. An overview may have more memories, unless the model gave a limit."""
        return {"limit": self.limit, "lines": self.limit if "limit" in self.model_fields_set else LINES}


class ToSearch(Arguments):
    """Arguments of a search. If ``query`` is the id of a document or artifact, that is read from ``start`` on."""

    query: Query
    limit: Limit = RECALLED
    start: Annotated[int, *within(0, 10**9)] = Field(0, alias="from")


def save(caller: ToolCaller, arguments: ToSave) -> Result:
    return store(caller, arguments.content, category=arguments.category)


def store(
    caller: ToolCaller,
    content: str,
    *,
    category: str | None = None,
    importance: float = 0.5,
    agent: Agent | None = None,
) -> Result:
    """Save a memory as the user, with the checks of ``save_memory``. Statements of other members are attributed to
    them.

    It is personal if the chat is private, or the answer is personal and the user did not plainly say it. Raises
    ToolTrouble if the memory is refused or invalid, and Forbidden for viewers.
    """
    turn, person = caller.turn, caller.person
    require(caller.role, Role.EDITOR)
    draft = Draft(
        content=content,
        workspace=caller.workspace,
        scope=Scope.WORKSPACE if agent is None else Scope.AGENT,
        category=category,
        importance=importance,
        agent=agent,
        author=person,
        source_type=SourceType.MODEL,
        source_details={"tool": True} | ({"call": caller.call} if caller.call else {}),
    )
    if (earlier_memory := _made_by(caller)) is not None:
        return _said_of(earlier_memory)
    source = _source_of(content, caller)
    if source is not None:
        draft = draft.with_source(source)
    if turn is not None:
        draft = replace(draft, **_origin(turn, draft))
    if source is not None and source.speaker is Speaker.PERSON:
        draft = replace(draft, **_said_by(source, caller))
    home, personal = caller.home(own_words=source is not None and source.is_plain)
    if personal:
        draft = replace(draft, workspace=home, scope=Scope.USER, agent=None, owned_by=person)
    try:
        saved = save_memory(draft, by=person, now=caller.now)
    except (SecretRefused, WasForgotten):
        raise ToolTrouble("not stored", ToolOutcome.REFUSED) from None
    except QuotaReached as error:
        raise ToolTrouble(f"not stored: {error.message}", ToolOutcome.REFUSED) from None
    except Invalid as error:
        raise ToolTrouble("; ".join(f"{name} {why}" for name, why in error.fields.items())) from None
    memory = saved.memory
    if saved.pending:
        return Result("Proposed. A person decides whether it is kept; do not count on it.", ToolOutcome.NOTED)
    if saved.duplicate and caller.policy.leaves and memory.workspace.local_only:
        return Result("Already in memory, nothing new was stored.", ToolOutcome.DUPLICATE)
    if saved.duplicate:
        text = f"Already in memory, nothing new was stored:\n{escape(memory.content)}"
        return Result(text, ToolOutcome.DUPLICATE, (memory.public_id,))
    if saved.created and turn is not None:
        announce_auto_saved([memory], chat_id=turn.chat.public_id)
    return _said_of(memory)


def _said_of(memory: Memory) -> Result:
    return Result(f"Saved to memory:\n{escape(memory.content)}", ToolOutcome.SAVED, (memory.public_id,))


def _made_by(caller: ToolCaller) -> Memory | None:
    """Return the memory that an earlier attempt of this call saved, also if it was deleted since, or None."""
    if not caller.call:
        return None
    mine = Memory.objects.filter(source_type=SourceType.MODEL)
    mine = mine.filter(Q(workspace=caller.workspace) | Q(owner=caller.person))
    return mine.filter(source_details__call=caller.call).first()


def _source_of(content: str, caller: ToolCaller) -> Source | None:
    """Return the source, of all that the model was shown, that a statement is based on. None if they are unknown."""
    if caller.provenance is None:
        return None
    asker = _asker(caller)
    today, names, by = caller.now.date(), asker.shown_name if asker else "", asker.pk if asker else GONE
    return caller.provenance().rests_on(content, get_reader(), today=today, names=names, by=by)


def _asker(caller: ToolCaller) -> User | None:
    """Return the author of the question that is being answered, even if another person requested the answer again."""
    return caller.turn.question.author if caller.turn else caller.person


def _said_by(source: Source, caller: ToolCaller) -> dict[str, Any]:
    """Return the author and source of a memory that a person's message states. The author is None after leaving."""
    asker = _asker(caller)
    if asker is not None and source.author == asker.pk:
        return {"author": asker if asker == caller.person else _member(asker, caller.workspace)}
    message = Message.objects.select_related("author", "chat").filter(public_id=source.id).first()
    if message is None:
        return {"author": None}
    return {
        "author": _member(message.author, caller.workspace),
        "source_chat_id": message.chat.public_id,
        "source_message_id": message.public_id,
        "source_excerpt": excerpt_around(message),
    }


def _member(user: User | None, workspace: Workspace) -> User | None:
    return user if user is not None and role_in(user, workspace) is not None else None


def _origin(turn: InChat, draft: Draft) -> dict[str, Any]:
    """Return the fields that name the draft's source in the chat."""
    return {
        "source_chat_id": turn.chat.public_id,
        "source_message_id": turn.question.public_id,
        "source_excerpt": excerpt_around(turn.question),
        "source_details": {**draft.source_details, "answer": turn.answer.public_id},
    }


def look_up(caller: ToolCaller, arguments: ToRecall) -> Result:
    recall = recall_for(caller, arguments.query, offset=arguments.offset, floor=True, **arguments.how_many)
    stays_here = any(is_local_elsewhere(item.memory, caller.workspace) for item in recall.items)
    return replace(recalled(recall, reader=caller.person, first=arguments.offset + 1), stays_here=stays_here)


def recalled(recall: Recall, *, reader: User, first: int = 1) -> Result:
    """Return the result of a recall as a Markdown list. Memories of other people are labelled with their author."""
    entries = [_entry(number, item, reader) for number, item in enumerate(recall.items, first)]
    if recall.more:
        rest = first - 1 + len(recall.items)
        entries.append(f"({recall.more} more are kept: this is an overview; ask on from offset {rest})")
    ids = tuple(item.memory.public_id for item in recall.items)
    text = _listed("# Recalled memories", entries, "No memories were found.")
    return Result(text, ToolOutcome.FOUND, ids, len(ids))


def search(caller: ToolCaller, arguments: ToSearch) -> Result:
    """Search the workspace, without this chat, or read the document or artifact whose id is the query.

    One tool for both costs fewer tokens in every turn than two.
    """
    for prefix, read_one in READ.items():
        if arguments.query.startswith(prefix):
            return read_one(caller, ToRead.model_validate({"id": arguments.query, "from": arguments.start}))
    results = search_workspace(
        arguments.query,
        caller.workspace,
        caller.person,
        limit=MOST_RECALLED,
        private_chats=caller.workspace.private_short_term,
        now=caller.now,
        agent=caller.agent,
        policy=caller.policy,
    )
    here = caller.turn.chat.public_id if caller.turn else ""
    results = [each for each in results if each.type != "document" or caller.may_draw_on(each.id)]
    # As in short-term memory, texts that stay on this machine are found in workspaces that do so only.
    if not caller.workspace.local_only:
        results = [each for each in results if each.type != "message" or not each.stays_here]
    return searched([item for item in results if not here or item.chat_id != here][: arguments.limit])


def searched(results: Sequence[Found]) -> Result:
    """Return the results of a workspace search as a numbered Markdown list. Counts exclude personal results."""
    entries = [
        f"{number}. **{item.id}** ({_what(item)}, score {item.score:.2f})\n{escape(item.text)}"
        for number, item in enumerate(results, start=1)
    ]
    text = _listed("# Workspace search", entries, "Nothing was found.")
    ids = tuple(item.id for item in results if item.type == "memory")
    # Later readers of the chat must not learn how many personal results there were.
    personal = sum(item.personal for item in results)
    return Result(
        text,
        ToolOutcome.FOUND,
        ids,
        len(results) - personal,
        personal=personal > 0,
        stays_here=any(item.stays_here for item in results),
        shown=tuple(_shown(item) for item in results if item.type != "memory"),
    )


def _shown(item: Found) -> Shown:
    begins, ends = item.place.characters if item.place else (0, Shown.ends)
    return Shown(SPEAKERS[item.type], item.id, begins, ends)


def _what(item: Found) -> str:
    if item.place is None:
        what = f"{item.type} “{escape(item.title)}”" if item.title else item.type
        return ", ".join(filter(None, [what, _whose(item)]))
    page = f", page {item.place.page}" if item.place.page else ""
    return f"{item.type} “{escape(item.title)}”{page}, from character {item.place.characters[0]}"


def _whose(item: Found) -> str:
    """Return the author's label of a memory or message; empty for answers and artifacts, which models write too."""
    if item.type == "memory" or item.written_by is not None:
        return writer_label(item, is_edited=item.is_edited)
    return imported_label(item)


def _entry(number: int, item: Recalled, reader: User) -> str:
    memory = item.memory
    is_own = not memory.is_imported and memory.written_by == reader
    whose = "" if is_own else writer_label(memory, is_edited=memory.edited_at is not None)
    labels = (category_label(memory), validity_label(memory), whose, f"score {item.score:.2f}")
    label = ", ".join(filter(None, labels))
    return f"{number}. **{memory.public_id}** ({label})\n{escape(item.text)}"


def _listed(title: str, entries: list[str], nothing: str) -> str:
    lines, length = [title], 0
    for entry in entries:
        length += len(entry)
        if length > LONGEST_LIST:
            break
        lines.append(entry)
    if not entries:
        lines.append(nothing)
    elif len(lines) <= len(entries):
        lines.append(f"({len(entries) + 1 - len(lines)} more did not fit; ask for fewer at a time)")
    return "\n".join(lines)


X_SAVE_MEMORY = ChatTool(
    "x_save_memory",
    "Store one statement that stands alone; never secrets.",
    ToSave,
    save,
    Speaker.MODEL,
    kept=frozenset({"category"}),
)
X_RECALL_MEMORY = ChatTool(
    "x_recall_memory",
    "Look up what is remembered.",
    ToRecall,
    look_up,
    Speaker.MEMORY,
    kept=frozenset({"query", "offset", "limit"}),
)
X_WORKSPACE_SEARCH = ChatTool(
    "x_workspace_search",
    "Search all of the workspace, or read the document or artifact whose id the query is.",
    ToSearch,
    search,
    Speaker.TOOL,
    kept=frozenset({"query", "limit", "start"}),
)


class OwnRecall(Arguments):
    query: Query
    k: Limit = RECALLED


class OwnSave(Arguments):
    text: Statement
    kind: Category | None = None
    importance: Annotated[float, *within(0, 1), AllowInfNan(False)] = 0.5


def ltm_recall(caller: ToolCaller, arguments: OwnRecall) -> Result:
    recall = recall_for(caller, arguments.query, limit=arguments.k, ranking="longterm")
    return recalled(recall, reader=caller.person)


def ltm_remember(caller: ToolCaller, arguments: OwnSave) -> Result:
    kind, importance = arguments.kind, arguments.importance
    return store(caller, arguments.text, category=kind, importance=importance, agent=caller.agent)


LTM_RECALL = ChatTool(
    "ltm_recall",
    "Look up your own long-term memory.",
    OwnRecall,
    ltm_recall,
    Speaker.MEMORY,
    kept=frozenset({"query", "k"}),
)
LTM_REMEMBER = ChatTool(
    "ltm_remember",
    "Keep one fact for your later chats; importance 0 to 1. Never secrets.",
    OwnSave,
    ltm_remember,
    Speaker.MODEL,
    kept=frozenset({"kind", "importance"}),
)


class Summary(Arguments):
    summary: Annotated[str, StringConstraints(min_length=1)]


def update_summary(caller: ToolCaller, arguments: Summary) -> Result:
    if find_personal(arguments.summary):
        raise ToolTrouble("not stored", ToolOutcome.REFUSED)
    turn = caller.turn
    if turn is None:
        raise ToolTrouble("there is no chat whose summary could be kept")
    summary = cut_at_word(arguments.summary, SUMMARY_LENGTH)
    try:
        row = set_summary(turn.chat, summary, by=caller.person, now=caller.now, answer=turn.answer)
    except SecretRefused:
        raise ToolTrouble("not stored", ToolOutcome.REFUSED) from None
    except Conflict as error:
        raise ToolTrouble(error.message) from None
    return Result("Short-term memory updated.", ToolOutcome.NOTED, output=row.summary)


UPDATE_SHORT_TERM_MEMORY = ChatTool(
    TOOL_NAME,
    "Replace this chat's summary, which the user's other chats see.",
    Summary,
    update_summary,
    Speaker.MODEL,
    is_aside=True,
)
