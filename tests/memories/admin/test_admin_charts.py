"""The geometry of the admin's charts."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from memories.admin.activity import HEIGHT, nice_top, stacked

DAYS = [date(2026, 3, 1) + timedelta(days=n) for n in range(10)]


@pytest.mark.parametrize(
    ("highest", "top"), [(0, 2), (1, 2), (2, 2), (3, 4), (5, 6), (9, 10), (11, 20), (61, 80), (1_001, 2_000)]
)
def test_the_scale_ends_at_a_round_number_with_a_round_half(highest: int, top: int) -> None:
    assert nice_top(highest) == top
    assert top % 2 == 0


def test_bars_stand_on_each_other_and_reach_their_value() -> None:
    numbers = {(DAYS[2], "a"): 3, (DAYS[2], "b"): 5, (DAYS[9], "b"): 1}
    chart = stacked("Things", ("a", "unused", "b"), DAYS, numbers, empty="Nothing.")
    assert [(series.name, series.number, series.total) for series in chart.series] == [
        ("a", 1, 3),
        ("b", 3, 6),  # its colour stays although the one before is empty
    ]
    lower, upper = chart.days[2].bars
    assert chart.top == 8
    assert lower.y + lower.height == pytest.approx(HEIGHT)
    assert upper.y + upper.height == pytest.approx(lower.y)
    assert upper.y == pytest.approx(0)
    assert chart.days[2].words == "3 a, 5 b"
    assert (chart.total, chart.last_week, chart.half) == (9, 1, 4)
    assert [day.day for day in chart.busy_days] == [DAYS[9], DAYS[2]]
    assert all(0 <= bar.x < chart.width for day in chart.days for bar in day.bars)
