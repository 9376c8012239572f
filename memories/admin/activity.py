"""What was saved and what was refused, by day, for the charts of the admin.

Saved memories are counted off the index ``memory_days`` alone; those forgotten since count as well.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Case, Count, QuerySet, Sum, Value, When
from django.db.models.functions import TruncDate

from memories.admin.charts import Chart, stacked
from memories.models import Memory, Refusal, SourceType

DAYS = 30
TOP_KINDS = 8
PERSON, MODEL, NOTICED, IMPORTED, OTHERS = (
    "saved by a person",
    "saved by the model",
    "noticed in a conversation",
    "imported",
    "from other programs",
)
CREDENTIALS, PERSONAL, FORGOTTEN, BROKEN, UNREAD = (
    "looked like a credential",
    "held a personal number",
    "forgotten for good before",
    "broke a rule",
    "the model's reply could not be read",
)
_REASONS = {"sensitive": PERSONAL, "forgotten": FORGOTTEN, "invalid": BROKEN, "unread": UNREAD}
_NAMES = {
    "openai": "OpenAI",
    "github": "GitHub",
    "gitlab": "GitLab",
    "aws": "AWS",
    "npm": "npm",
    "pypi": "PyPI",
}


@dataclass(frozen=True)
class Kind:
    """How often a sort of credential was refused; ``share`` of the most frequent one, 0 to 100."""

    name: str
    number: int
    share: int


def saved(now: datetime, workspace_id: int | None = None) -> Chart:
    days = _days(now)
    start = datetime.combine(days[0], time.min, UTC)
    origin = Case(
        When(source_type=SourceType.USER, then=Value(PERSON)),
        When(source_type=SourceType.MODEL, then=Value(MODEL)),
        When(source_type__startswith="auto_", then=Value(NOTICED)),
        When(source_type=SourceType.IMPORT, then=Value(IMPORTED)),
        default=Value(OTHERS),
    )
    rows: QuerySet[Any, Any] = _within(Memory.objects.order_by().filter(created_at__gte=start), workspace_id)
    rows = rows.annotate(day=TruncDate("created_at", tzinfo=UTC), origin=origin).values("day", "origin")
    numbers = {(row["day"], row["origin"]): row["number"] for row in rows.annotate(number=Count("*"))}
    names = (PERSON, MODEL, NOTICED, IMPORTED, OTHERS)
    return stacked(
        "Memories saved", names, days, numbers, empty=f"Nothing was saved in the last {DAYS} days."
    )


def refused(now: datetime, workspace_id: int | None = None) -> tuple[Chart, list[Kind]]:
    """Refusals by reason, and which credentials they were, the most frequent first. One query."""
    days = _days(now)
    rows: QuerySet[Any, Any] = _within(Refusal.objects.order_by().filter(day__gte=days[0]), workspace_id)
    by_day: Counter[tuple[date, str]] = Counter()
    by_kind: Counter[str] = Counter()
    for row in rows.values("day", "kind").annotate(number=Sum("number")):
        by_day[row["day"], _REASONS.get(row["kind"], CREDENTIALS)] += row["number"]
        if row["kind"] not in _REASONS:
            by_kind[row["kind"]] += row["number"]
    most = by_kind.most_common(TOP_KINDS)
    kinds = [Kind(kind_label(kind), number, 100 * number // most[0][1]) for kind, number in most]
    empty = f"Nothing was refused in the last {DAYS} days."
    names = (CREDENTIALS, PERSONAL, FORGOTTEN, BROKEN, UNREAD)
    return stacked("Not stored", names, days, by_day, empty=empty), kinds


def kind_label(kind: str) -> str:
    """A kind of ``memories.writing.refusal_counts`` for people."""
    return _NAMES.get(kind) or _REASONS.get(kind, kind.replace("_", " ")).capitalize()


def _days(now: datetime) -> list[date]:
    today = now.astimezone(UTC).date()
    return [today - timedelta(days=ago) for ago in range(DAYS - 1, -1, -1)]


def _within(rows: QuerySet[Any], workspace_id: int | None) -> QuerySet[Any]:
    return rows if workspace_id is None else rows.filter(workspace=workspace_id)
