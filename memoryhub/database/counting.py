"""Counting rows at a cost that does not grow with the table."""

from __future__ import annotations

import json
from typing import Any

from django.db import models

EXACT_COUNT_UP_TO = 1000


def count_or_estimate(rows: models.QuerySet[Any]) -> tuple[int, bool]:
    """How many rows, and whether that is an estimate: the planner's, as fresh as the last ANALYZE."""
    rows = rows.order_by()
    number = rows.values("pk")[: EXACT_COUNT_UP_TO + 1].count()
    if number <= EXACT_COUNT_UP_TO:
        return number, False
    return max(number, int(json.loads(rows.explain(format="json"))[0]["Plan"]["Plan Rows"])), True
