"""Document passages for a turn: search, the prompt block, and the sources cited by the answer."""

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from chat.chats.personal_memories import personal_allowed, workspace_for_saving
from chat.models import AnswerSource, Chat, Message
from chat.prompting.prompt_text import escape, prompt_text, tokens
from memories.recalling.relevance import silence_of
from memoryhub.errors import Invalid
from memoryhub.ids import PATTERN
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.documents.documents import drafts_of, publish
from workspaces.documents.search import DOCUMENTS, FoundPassage, find_in, find_passages
from workspaces.index.reembedding import embed_passages
from workspaces.models import Document, DocumentPassage, DocumentQuerySet, DocumentStatus, User
from workspaces.models.documents import READ


def documents_block(passages: Sequence[FoundPassage], unread: Sequence[str] = ()) -> str:
    """Return the prompt block with these passages, or "" if there is nothing to show. Their text is escaped and quoted.

    Passages keep the numbers under which the answer already cites them; else they are numbered from 1. ``unread``:
    titles of the question's files that have not been read.
    """
    if not passages and not unread:
        return ""
    entries = [_entry(number, each) for number, each in enumerate(passages, 1)]
    lines = [prompt_text("documents"), *entries] if passages else []
    if unread:
        lines += [prompt_text("unread_files"), *(f"> {escape(title)}" for title in unread)]
    return "\n".join(["<documents>", *lines, "</documents>"])


def those_that_fit(passages: Sequence[FoundPassage], room: int) -> list[FoundPassage]:
    """Return the first passages that fit together into ``room`` tokens. ``passages`` is ordered best first."""
    room -= tokens(documents_block([]) + prompt_text("documents")) + 8
    selected: list[FoundPassage] = []
    for each in passages:
        room -= tokens(_entry(len(selected) + 1, each))
        if room < 0:
            break
        selected.append(each)
    return selected


def _entry(number: int, each: FoundPassage) -> str:
    passage = each.passage
    number = each.number or number
    page = f"page {passage.page}" if passage.page else ""
    label = ", ".join(filter(None, (passage.document.title, page, passage.heading)))
    text = "\n".join(f"> {line}" for line in map(escape, passage.text.splitlines()) if line)
    return f"[{number}] ({escape(label)}, {passage.document.public_id})\n{text}"


logger = logging.getLogger(__name__)
MOST = 8
MOST_OF_CHOSEN = 24  # limit if the question names its documents
SHARE = 0.6  # share of the token budget for recalled memories
EMBEDDED_FIRST = 256  # passages; about a second with the bundled embedder
MOST_CHOSEN = 20  # documents that one message may name
THRESHOLD = 0.45  # minimum score for word search alone and for embedders other than the bundled one


def require_documents(ids: Sequence[str] | None, chat: Chat, by: User) -> None:
    """Raise Invalid unless ``ids`` are at most 20 documents that the question may use here."""
    if not ids:
        return
    if len(ids) > MOST_CHOSEN:
        raise Invalid(fields={"documents": _("May name at most %s documents.") % MOST_CHOSEN})
    named = {each for each in ids if PATTERN.fullmatch(each)}
    draft_rows = drafts_of(by, chat.workspace).filter(public_id__in=named)
    drafts = set(draft_rows.values_list("public_id", flat=True))
    if drafts and chat.is_temporary:
        raise Invalid(fields={"documents": _("Files cannot be added to a temporary chat.")})
    known = drafts | _those_of(named, chat, by, personal=True)
    if len(known) != len(set(ids)):
        raise Invalid(fields={"documents": _("Must be documents of this workspace.")})
    if drafts | _those_of(named, chat, by, personal=personal_allowed(chat, by)) != known:
        why = _(
            "Others can read this chat, and one of these is personal. Allow your personal files "
            "here, or make the chat private."
        )
        raise Invalid(fields={"documents": why})


def publish_drafts(ids: Sequence[str] | None, chat: Chat, by: User, *, now: datetime) -> list[str] | None:
    """Publish the drafts among a message's documents, in its transaction. Return the ids after publishing."""
    if not ids:
        return None if ids is None else []
    sent = {}
    for draft in drafts_of(by, chat.workspace).filter(public_id__in=ids).select_related("workspace"):
        place, is_personal = workspace_for_saving(chat, by)
        owner = by if is_personal else None
        sent[draft.public_id] = publish(draft, place, owner, by=by, now=now).public_id
    return list(dict.fromkeys(sent.get(each, each) for each in ids))


def still_there(question: Message, by: User) -> list[str] | None:
    """Return the ids of the question's documents that ``by`` may still read. None: it searches all documents."""
    if not question.only_documents:
        return question.only_documents
    personal = personal_allowed(question.chat, by)
    return sorted(_those_of(question.only_documents, question.chat, by, personal=personal))


def _those_of(ids: Collection[str], chat: Chat, by: User, *, personal: bool) -> set[str]:
    policy = replace(DataPolicy.here(chat.workspace), personal=personal)
    documents = within_policy(Document.objects.live(), chat.workspace, by, policy).filter(public_id__in=ids)
    return set(documents.values_list("public_id", flat=True))


def sources_for(
    answer: Message, question: Message, user: User, *, room: int, policy: DataPolicy
) -> list[FoundPassage]:
    """Return the best passages for this question, and store them as numbered sources of the answer. Never raises.

    Without documents in the workspace this costs one query. If the question names documents, their best passages are
    used even if they are not similar. A continued answer keeps its earlier passages.
    """
    workspace, only = answer.chat.workspace, question.only_documents
    try:
        there = within_policy(Document.objects.live(), workspace, user, policy)
        if answer.attempt > 1 and answer.content:
            may_go = not (policy.leaves and workspace.local_only)
            return those_that_fit(_as_before(answer, there), int(room * SHARE)) if may_go else []
        if answer.attempt > 1:
            AnswerSource.objects.filter(message=answer).delete()
        if only is not None:
            there = there.filter(public_id__in=only)
        if only == [] or not there.exists():
            return []
        if only is None:
            passages = find_passages(
                question.content,
                workspace,
                user,
                limit=MOST,
                floor=THRESHOLD,
                by_words=False,
                doubt=silence_of,
                policy=policy,
            )
        else:
            _embed_new(there)
            passages = find_in(there, question.content, workspace, user, limit=MOST_OF_CHOSEN, policy=policy)
        used = those_that_fit(passages, int(room * SHARE))
        with transaction.atomic():
            AnswerSource.objects.bulk_create(
                AnswerSource(
                    message=answer,
                    document=each.passage.document,
                    number=number,
                    passage=each.passage,
                    page=each.passage.page,
                    heading=each.passage.heading,
                    score=each.score,
                )
                for number, each in enumerate(used, 1)
            )
        return used
    except Exception:
        logger.exception("Documents could not be searched; the turn goes on without them")
        return []


def unread_files(question: Message, user: User, policy: DataPolicy) -> list[str]:
    """Return the titles of the question's documents that have no text yet: not read in time, or unreadable."""
    there = within_policy(Document.objects.live(), question.chat.workspace, user, policy)
    unread = there.filter(public_id__in=question.only_documents or ()).exclude(status__in=READ)
    return list(unread.order_by("pk").values_list("title", flat=True))


def _embed_new(named: DocumentQuerySet) -> None:
    """Embed the first 256 passages of files attached to the question that have no vectors yet."""
    new = list(named.filter(status=DocumentStatus.INDEXING))
    if new:
        passages = DocumentPassage.objects.live().filter(document__in=new).order_by("number", "document")
        embed_passages(DOCUMENTS, list(passages.values_list("pk", flat=True)[:EMBEDDED_FIRST]))


def _as_before(answer: Message, there: DocumentQuerySet) -> list[FoundPassage]:
    """Return the unchanged passages of the answer's earlier attempt in the documents ``there``, with their numbers."""
    return [
        FoundPassage(source.passage, source.score, source.number)
        for source in sources_of([answer.pk], there).get(answer.pk, [])
        if source.passage is not None
    ]


def sources_for_reader(message_pks: list[int], reader: User) -> dict[int, list[AnswerSource]]:
    """Return the sources of each answer that this person may open. One query."""
    return sources_of(message_pks, Document.objects.visible_to(reader).live())


def sources_of(message_pks: list[int], there: DocumentQuerySet) -> dict[int, list[AnswerSource]]:
    """Return the sources of each answer in the documents ``there``, by primary key, ordered by number. One query."""
    sources = AnswerSource.objects.filter(message__in=message_pks, document__in=there.order_by().values("pk"))
    by_message: dict[int, list[AnswerSource]] = defaultdict(list)
    for source in sources.select_related("document__workspace", "passage").order_by("message", "number"):
        by_message[source.message_id].append(source)
    return by_message
