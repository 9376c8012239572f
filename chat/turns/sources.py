"""Passages of the workspace's documents for a turn: found, fitted into the prompt's room, and kept with the answer."""

from __future__ import annotations

import logging

from django.db import transaction

from chat.models import AnswerSource, Message
from chat.prompting.documents import those_that_fit
from workspaces.documents.finding import FoundPassage, find_passages
from workspaces.leaving_machine import Reach
from workspaces.models import Document, User

logger = logging.getLogger(__name__)
MOST = 8
SHARE = 0.6  # of the room that recalled memories may have
THRESHOLD = 0.45  # of the score, with words alone or another embedder than the bundled one


def sources_for(
    answer: Message, question: Message, user: User, *, room: int, reach: Reach
) -> list[FoundPassage]:
    """The best passages for this question, kept with the answer by their numbers. Trouble never costs the turn.

    Costs one query where the workspace has no documents.
    """
    workspace = answer.chat.workspace
    try:
        if answer.attempt > 1:
            AnswerSource.objects.filter(message=answer).delete()
        if not Document.objects.live().filter(workspace=workspace).exists():
            return []
        found = find_passages(
            question.content, workspace, user, limit=MOST, floor=THRESHOLD, by_words=False, reach=reach
        )
        used = those_that_fit(found, int(room * SHARE))
        with transaction.atomic():
            AnswerSource.objects.bulk_create(
                AnswerSource(
                    message=answer,
                    document=each.passage.document,
                    number=number,
                    passage=each.passage.number,
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


def sources_of(message_pks: list[int]) -> dict[int, list[AnswerSource]]:
    """Of each answer those whose document is there still, in the order of their numbers. One query."""
    kept = AnswerSource.objects.filter(message__in=message_pks, document__deleted_at=None)
    by_message: dict[int, list[AnswerSource]] = {}
    for source in kept.select_related("document").order_by("message", "number"):
        by_message.setdefault(source.message_id, []).append(source)
    return by_message
