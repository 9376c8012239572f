"""Charts of the memories saved and refused per day, and the list of refusals.

Saved memories are counted by the index ``memory_days`` alone, including those deleted since. A refusal is stored only
as a kind and a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Case, Count, Q, QuerySet, Sum, Value, When
from django.db.models.functions import TruncDate

from memories.models import Memory, Refusal, SourceType
from memories.models.memory import SOURCE_LABELS
from workspaces.admin.base import ReadOnlyAdmin
from workspaces.admin.filters import ChoiceFilter, WorkspaceFilter

COLUMN, BAR, HEIGHT = 10, 8, 100  # units of the SVG drawing, which the page scales to its width


@dataclass(frozen=True)
class Series:
    name: str
    number: int  # from 1; selects the colour in the palette
    values: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.values)


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    height: float
    series: int


@dataclass(frozen=True)
class Day:
    day: date
    x: float
    bars: tuple[Bar, ...]
    values: tuple[int, ...]
    words: str  # "2 by a person, 1 by the model"; empty for a day without memories

    @property
    def total(self) -> int:
        return sum(self.values)


@dataclass(frozen=True)
class Chart:
    title: str
    empty: str  # the sentence shown instead of an empty chart
    series: tuple[Series, ...]
    days: tuple[Day, ...]
    top: int

    bar_width = BAR
    column_width = COLUMN
    height = HEIGHT

    @property
    def width(self) -> int:
        return COLUMN * len(self.days)

    @property
    def total(self) -> int:
        return sum(series.total for series in self.series)

    @property
    def half(self) -> int:
        return self.top // 2

    @property
    def last_week(self) -> int:
        return sum(day.total for day in self.days[-7:])

    @property
    def marks(self) -> list[date]:
        """Return the days labelled below the bars: the first, the middle and the last."""
        return [self.days[0].day, self.days[len(self.days) // 2].day, self.days[-1].day]

    @property
    def busy_days(self) -> list[Day]:
        """Return the days with a count, newest first, for the table."""
        return [day for day in reversed(self.days) if day.total]


def stacked(
    title: str,
    names: Sequence[str],
    days: Sequence[date],
    numbers: Mapping[tuple[date, str], int],
    *,
    empty: str,
) -> Chart:
    """Return a chart of stacked bars from ``numbers`` by (day, name of series).

    Series without numbers are left out, but each name keeps its colour.
    """
    series = tuple(
        Series(name, place, values)
        for place, name in enumerate(names, 1)
        if any(values := tuple(numbers.get((day, name), 0) for day in days))
    )
    top = nice_top(max((sum(each.values[at] for each in series) for at in range(len(days))), default=0))
    columns = tuple(_column(at, day, series, top) for at, day in enumerate(days))
    return Chart(title, empty, series, columns, top)


def nice_top(highest: int) -> int:
    """Return the end of the scale, at least ``highest``: an even multiple of a power of ten, whose half is round."""
    step = 1
    while True:
        for factor in (2, 4, 6, 8, 10):
            if highest <= factor * step:
                return factor * step
        step *= 10


def _column(at: int, day: date, series: Sequence[Series], top: int) -> Day:
    bars, reached = [], 0
    for each in series:
        if value := each.values[at]:
            height = HEIGHT * value / top
            y = HEIGHT - HEIGHT * reached / top - height
            bars.append(Bar(at * COLUMN + (COLUMN - BAR) / 2, round(y, 2), round(height, 2), each.number))
            reached += value
    words = ", ".join(f"{each.values[at]:,} {each.name}" for each in series if each.values[at])
    return Day(day, at * COLUMN, tuple(bars), tuple(each.values[at] for each in series), words)


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
    """The number of refusals of one kind of credential, and its ``share`` of the most frequent kind in percent."""

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
    """Return the chart of refusals by reason, and the kinds of credentials, most frequent first. One query."""
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
    """Return a kind of ``memories.writing.tombstones`` as text for people."""
    return _NAMES.get(kind) or _REASONS.get(kind, kind.replace("_", " ")).capitalize()


def _days(now: datetime) -> list[date]:
    today = now.astimezone(UTC).date()
    return [today - timedelta(days=ago) for ago in range(DAYS - 1, -1, -1)]


def _within(rows: QuerySet[Any], workspace_id: int | None) -> QuerySet[Any]:
    return rows if workspace_id is None else rows.filter(workspace=workspace_id)


class ReasonFilter(ChoiceFilter):
    parameter_name = "reason"
    column = "kind"
    offered = [
        ("", "All"),
        ("secret", "Looked like a credential"),
        ("sensitive", "Held a personal number"),
        ("forgotten", "Forgotten for good before"),
        ("invalid", "Broke a rule"),
        ("unread", "The model's reply could not be read"),
    ]

    rules = {"secret": ~Q(kind__in=("sensitive", "forgotten", "invalid", "unread"))}


@admin.register(Refusal)
class RefusalAdmin(ReadOnlyAdmin):
    many = "refusals"
    list_display = ("day", "what", "number", "source", "workspace")
    list_display_links = None
    list_select_related = ("workspace",)
    list_filter = (WorkspaceFilter, ReasonFilter)
    ordering = ("-day", "-id")
    fields = ("day", "what", "number", "source", "workspace")
    readonly_fields = fields

    @admin.display(description="what it was")
    def what(self, refusal: Refusal) -> str:
        return kind_label(refusal.kind)

    @admin.display(description="where it came from")
    def source(self, refusal: Refusal) -> str:
        return str(SOURCE_LABELS.get(refusal.source_type, "Another program"))
