"""Who may read what rests on something personal: those alone who could read the chat when it was written."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workspaces.models import Membership, User


class PersonalUse(models.TextChoices):
    """What of somebody's own an answer rests on: personal memories, files and artifacts, private chats, other
    workspaces' chats.
    """

    NONE = "", "Nothing personal"
    SEEN = "seen", "Written with an answer in view that was given something personal"
    HELD = "held", "Given something personal"


def was_reader(user: User, *, at: str, chat: str = "chat__") -> Q:
    """Rows whose moment ``at`` lies in the time in which this person could read the chat, by a path to it.

    A private chat has its creator as reader alone, until it is opened (``Chat.opened_at``).
    """
    joined = Membership.objects.filter(user=user, workspace=models.OuterRef(f"{chat}workspace"))
    was_open = Q(**{f"{chat}opened_at": None}) | Q(**{f"{at}__gte": models.F(f"{chat}opened_at")})
    is_member = Q(**{f"{at}__gte": models.Subquery(joined.values("created_at"))})
    return is_member & (was_open | Q(**{f"{chat}created_by": user}))
