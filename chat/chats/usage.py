"""Token usage and cost of the answers of chats, for users who may read the chat."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from django.db.models import BigIntegerField, DecimalField, F, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.models import Chat, Message
from workspaces.models import User, Workspace
from workspaces.spending.bill import NUMBERS, Bill
from workspaces.spending.budgets import first_of_next
from workspaces.spending.totals import Line

LISTED = 20
_SUMS = {name: Sum(Cast(KT(f"usage__{name}"), BigIntegerField()), default=0) for name in NUMBERS}
_COST = Sum(Cast(KT("usage__cost"), DecimalField(max_digits=24, decimal_places=8)), default=Decimal(0))


def usage_of(chat: Chat) -> Bill:
    """Return the total usage of all answers of a chat, including replaced ones. One query."""
    answers = Message.objects.filter(chat=chat, usage__isnull=False)
    return _bill(answers.aggregate(**_SUMS, cost=_COST))


def most_expensive_chats(user: User, workspace: Workspace | None, first: date) -> list[Line]:
    """Return the most expensive chats of the month that starts on ``first``, at most ``LISTED``. One query.

    Chats of equal cost are ordered by tokens. With ``workspace``, its chats that the user may read; else the chats that
    the user created.
    """
    chats = Chat.objects.visible_to(user).live()
    chats = chats.filter(workspace=workspace) if workspace else chats.filter(created_by=user)
    begins, ends = (datetime.combine(day, time(), tzinfo=UTC) for day in (first, first_of_next(first)))
    answers = Message.objects.filter(
        chat__in=chats, usage__isnull=False, created_at__gte=begins, created_at__lt=ends
    )
    rows = answers.order_by().values("chat__public_id", "chat__title").annotate(**_SUMS, cost=_COST)
    size = F("tokens_in") + F("tokens_out")
    return [
        Line(
            row["chat__title"] or _("New chat"),
            _bill(row),
            id=row["chat__public_id"],
            address=reverse("chat:chat", args=[row["chat__public_id"]]),
        )
        for row in rows.order_by("-cost", -size)[:LISTED]
    ]


def _bill(sums: Any) -> Bill:
    return Bill(**{name: int(sums[name]) for name in NUMBERS}, cost=sums["cost"])
