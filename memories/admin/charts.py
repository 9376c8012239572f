"""Bars a day, stacked by series, as the numbers that a template draws. Pure: no query, no HTML, no colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

COLUMN, BAR, HEIGHT = 10, 8, 100  # of the drawing, which a page stretches to its width


@dataclass(frozen=True)
class Series:
    name: str
    number: int  # from 1: the colour of this place in the palette
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
    words: str  # "2 by a person, 1 by the model"; empty on a day without any

    @property
    def total(self) -> int:
        return sum(self.values)


@dataclass(frozen=True)
class Chart:
    title: str
    empty: str  # what is said where there is nothing to draw
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
        """The days named below the bars: the first, the middle and the last."""
        return [self.days[0].day, self.days[len(self.days) // 2].day, self.days[-1].day]

    @property
    def busy_days(self) -> list[Day]:
        """Newest first, for the table."""
        return [day for day in reversed(self.days) if day.total]


def stacked(
    title: str,
    names: Sequence[str],
    days: Sequence[date],
    numbers: Mapping[tuple[date, str], int],
    *,
    empty: str,
) -> Chart:
    """``numbers`` by day and name of series; a name keeps its colour although a series without any is left out."""
    series = tuple(
        Series(name, place, values)
        for place, name in enumerate(names, 1)
        if any(values := tuple(numbers.get((day, name), 0) for day in days))
    )
    top = nice_top(max((sum(each.values[at] for each in series) for at in range(len(days))), default=0))
    columns = tuple(_column(at, day, series, top) for at, day in enumerate(days))
    return Chart(title, empty, series, columns, top)


def nice_top(highest: int) -> int:
    """The end of the scale, not below ``highest``: an even number of a power of ten, so that its half is round."""
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
