"""Passages of the workspace's documents for a turn: found, fitted into the prompt's room, and kept with the answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from chat.models import AnswerSource, Message
from chat.prompting.documents import those_that_fit
from memoryhub.errors import Invalid
from memoryhub.ids import PATTERN
from workspaces.documents.finding import FoundPassage, find_in, find_passages
from workspaces.leaving_machine import Reach
from workspaces.models import Document, User, Workspace

logger = logging.getLogger(__name__)
MOST = 8
MOST_OF_CHOSEN = 24  # where the question names its documents
SHARE = 0.6  # of the room that recalled memories may have
MOST_CHOSEN = 20  # documents that one message may name
THRESHOLD = 0.45  # of the score, with words alone or another embedder than the bundled one


def require_documents(ids: Sequence[str] | None, workspace: Workspace) -> None:
    """Raises Invalid unless these are documents of this workspace, and not too many."""
    if not ids:
        return
    if len(ids) > MOST_CHOSEN:
        raise Invalid(fields={"documents": _("May name at most %s documents.") % MOST_CHOSEN})
    named = {each for each in ids if PATTERN.fullmatch(each)}
    known = Document.objects.live().filter(workspace=workspace, public_id__in=named).count()
    if known != len(set(ids)):
        raise Invalid(fields={"documents": _("Must be documents of this workspace.")})


def still_there(question: Message) -> list[str] | None:
    """The documents that this question is answered from: those it names that were not deleted since. None: all."""
    if not question.only_documents:
        return question.only_documents
    named = Document.objects.live().filter(public_id__in=question.only_documents)
    return list(named.values_list("public_id", flat=True))


def sources_for(
    answer: Message, question: Message, user: User, *, room: int, reach: Reach
) -> list[FoundPassage]:
    """The best passages for this question, kept with the answer by their numbers. Trouble never costs the turn.

    Costs one query where the workspace has no documents. Of documents that the question names the best passages are
    taken however far they are, and then the first ones. An answer that goes on has those it began with.
    """
    workspace, only = answer.chat.workspace, question.only_documents
    try:
        if answer.attempt > 1 and answer.content:
            may_go = not (reach.leaves and workspace.local_only)
            return those_that_fit(_as_before(answer), int(room * SHARE)) if may_go else []
        if answer.attempt > 1:
            AnswerSource.objects.filter(message=answer).delete()
        there = Document.objects.live().filter(workspace=workspace)
        if only is not None:
            there = there.filter(public_id__in=only)
        if only == [] or not there.exists():
            return []
        if only is None:
            found = find_passages(
                question.content, workspace, user, limit=MOST, floor=THRESHOLD, by_words=False, reach=reach
            )
        else:
            found = find_in(there, question.content, workspace, user, limit=MOST_OF_CHOSEN, reach=reach)
        used = those_that_fit(found, int(room * SHARE))
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


def _as_before(answer: Message) -> list[FoundPassage]:
    """Under their numbers, without what is deleted since, or reads differently by now."""
    return [
        FoundPassage(source.passage, source.score, source.number)
        for source in sources_of([answer.pk]).get(answer.pk, [])
        if source.passage is not None
    ]


def sources_of(message_pks: list[int]) -> dict[int, list[AnswerSource]]:
    """Of each answer those whose document is there still, in the order of their numbers. One query."""
    kept = AnswerSource.objects.filter(message__in=message_pks, document__deleted_at=None)
    by_message: dict[int, list[AnswerSource]] = {}
    for source in kept.select_related("document__workspace", "passage").order_by("message", "number"):
        by_message.setdefault(source.message_id, []).append(source)
    return by_message
