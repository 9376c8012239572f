"""Ratings of answers by their readers: thumbs up or down, with reasons and a comment."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from django.utils.translation import gettext as _

from chat.models import AnswerRating, Message, MessageRole, MessageStatus
from chat.models.marks import COMMENT_LENGTH, REASONS, Rating
from memories.writing.drafts import UNSTORABLE
from memoryhub.errors import Invalid
from workspaces.models import User


def rate(
    message: Message,
    *,
    rating: str,
    by: User,
    now: datetime,
    reasons: Collection[str] = (),
    comment: str = "",
) -> AnswerRating:
    """Store a reader's rating and replace an earlier one. The caller checks that ``by`` may read the message.

    Raises Invalid for a message that is not a finished answer, and for an invalid rating, reason or comment.
    """
    if message.role != MessageRole.ASSISTANT or message.status == MessageStatus.STREAMING:
        raise Invalid(_("Only a finished answer can be rated."))
    if rating not in Rating.values:
        raise Invalid(fields={"rating": _("must be one of %s") % ", ".join(Rating.values)})
    offered = [str(reason) for reason in REASONS[Rating(rating)]]
    if not set(reasons) <= set(offered):
        raise Invalid(fields={"reasons": _("must be some of %s") % ", ".join(offered)})
    comment = " ".join(UNSTORABLE.sub("", comment).split())
    if len(comment) > COMMENT_LENGTH:
        raise Invalid(fields={"comment": _("may have at most %s characters") % COMMENT_LENGTH})
    said = {
        "rating": rating,
        "reasons": [reason for reason in offered if reason in reasons],
        "comment": comment,
        "model_name": message.model,
        "agent_id": message.chat.agent_id,
        "rated_at": now,
    }
    return AnswerRating.objects.update_or_create(message=message, user=by, defaults=said)[0]


def take_back(message: Message, *, by: User) -> None:
    """Remove the user's rating, if there is one."""
    AnswerRating.objects.filter(message=message, user=by).delete()


def ratings_of(answers: Sequence[int], reader: User) -> dict[int, AnswerRating]:
    """Return this user's ratings by the primary keys of the answers. One query."""
    rows = AnswerRating.objects.filter(message__in=answers, user=reader)
    return {rating.message_id: rating for rating in rows}
