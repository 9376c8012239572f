"""Removal of the texts of forgotten memories from the data of runs: entries, transcripts, plans and boards.

All texts are removed from the user's own runs. In workspaces that the user owns, only texts that all members could read
are removed from other users' runs. Without this limit, users could put a guessed text into their run to learn whether
another user forgets such a memory, or save and forget a text to remove it from other users' runs.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import F, Model, Q, QuerySet, TextField
from django.db.models.functions import Cast

from chat.models.runs import Run, RunEntry, RunEvent, RunStep, RunStepStatus, RunTemplate
from chat.prompting.prompt_text import escape
from chat.runs.run_memory import as_json_text
from memories.forgetting.remaining_copies import AT_ONCE, Wanted, holding, named
from workspaces.actions.purging import Counts
from workspaces.models import Membership, Role, User

GONE = "[…]"
SAID = {
    "content",
    "arguments",
    "instructions",
    "title",
    "task_title",
    "description",
    "text",
}  # keys of our own JSON whose values people or models wrote


def forget_in_runs(wanted: Wanted, by: User) -> Counts:
    """Remove the texts of forgotten memories from runs and templates. Return the number of changed entries of runs'
    memory.

    ``wanted``: the memories, which the user ``by`` forgets. A run's objective stays, as the user's messages in chats
    do.
    """
    removed = _forget_in(Run.objects.filter(user=by), RunTemplate.objects.filter(user=by), wanted.texts)
    for workspace, texts in wanted.shared.items():
        owned = Membership.objects.filter(user=by, role=Role.OWNER).values("workspace")
        theirs = Run.objects.visible_to(by).filter(workspace=workspace, workspace__in=owned).exclude(user=by)
        templates = RunTemplate.objects.filter(workspace=workspace, workspace__in=owned).exclude(user=by)
        removed += _forget_in(theirs, templates, texts)
    return removed


def _forget_in(runs: QuerySet[Run], templates: QuerySet[RunTemplate], texts: Collection[str]) -> Counts:
    removed: Counts = Counter()
    every = list(
        dict.fromkeys([*texts, *map(escape, texts), *map(_in_json, texts)])
    )  # as escaped in tool results, and as JSON in calls
    if not every or not (runs.exists() or templates.exists()):
        return removed
    for start in range(0, len(every), AT_ONCE):
        part = every[start : start + AT_ONCE]
        holds = holding(part)
        with transaction.atomic():
            of_runs = {"run__in": runs.order_by().values("pk")}
            removed += named("entries of runs", _in_entries(RunEntry.objects.filter(**of_runs), part, holds))
            _in_steps(RunStep.objects.filter(**of_runs), part, holds)
            _in_events(RunEvent.objects.filter(**of_runs), part, holds)
            _in_plans(runs, part, holds)
            for template in _containing(templates, ("plan",), part):
                template.plan = _without(template.plan, holds, only=SAID)
                template.save(update_fields=["plan"])
    return removed


def _in_entries(rows: QuerySet[RunEntry], texts: Sequence[str], holds: re.Pattern[str]) -> int:
    number = 0
    for row in _containing(rows, ("json", "title", "description", "key"), texts).select_for_update(
        of=("self",)
    ):
        before = (row.json, row.title, row.description, row.key)
        row.json = as_json_text(_without(json.loads(row.json), holds))
        row.size = len(row.json.encode())
        row.title, row.description = _without(row.title, holds), _without(row.description, holds)
        if holds.search(row.key.partition(":")[2]):
            row.key = f"{row.key.partition(':')[0]}:{GONE}{row.pk}"
        if before != (row.json, row.title, row.description, row.key):
            row.version += 1  # workers on the run reload the entry
            row.save()
            number += 1
    return number


def _in_steps(rows: QuerySet[RunStep], texts: Sequence[str], holds: re.Pattern[str]) -> None:
    """Remove the texts from the transcripts of steps.

    A running step is taken from its worker, and another worker continues it from the cleaned transcript.
    """
    for step in _containing(rows, ("transcript", "unit"), texts).select_for_update(of=("self",)):
        step.transcript = _without(step.transcript, holds, only=SAID)
        step.unit = _without(step.unit, holds, only=SAID)
        step.save(update_fields=["transcript", "unit"])
        doing = rows.filter(pk=step.pk, status=RunStepStatus.RUNNING)
        doing.update(status=RunStepStatus.READY, lease=F("lease") + 1, beat_at=None)


def _in_events(rows: QuerySet[RunEvent], texts: Sequence[str], holds: re.Pattern[str]) -> None:
    """Remove the texts from events. Events contain keys of entries, which may quote a text."""
    for event in _containing(rows, ("data",), texts):
        event.data = _without(event.data, holds)
        event.save(update_fields=["data"])


def _in_plans(runs: QuerySet[Run], texts: Sequence[str], holds: re.Pattern[str]) -> None:
    for run in _containing(runs, ("plan", "board"), texts).select_for_update(of=("self",)):
        run.plan = _without(run.plan, holds, only=SAID)
        run.board = _without(run.board, holds, only=SAID)
        run.save(update_fields=["plan", "board"])
        for task in run.tasks.all():
            task.title = _without(task.title, holds)
            task.save(update_fields=["title"])


def _without(value: Any, holds: re.Pattern[str], *, only: Collection[str] = ()) -> Any:
    """Return the value with each match of ``holds`` replaced by GONE. With ``only``, replace matches only in the values
    of these dictionary keys.
    """
    if isinstance(value, str):
        return value if only else holds.sub(GONE, value)
    if isinstance(value, list):
        return [_without(each, holds, only=only) for each in value]
    if not isinstance(value, dict):
        return value
    if not only:
        return {holds.sub(GONE, name): _without(each, holds) for name, each in value.items()}
    return {
        name: holds.sub(GONE, each)
        if name in only and isinstance(each, str)
        else _without(each, holds, only=only)
        for name, each in value.items()
    }


def _in_json(text: str) -> str:
    return as_json_text(text)[1:-1]


R = TypeVar("R", bound=Model)


def _containing(rows: QuerySet[R], columns: Sequence[str], texts: Sequence[str]) -> QuerySet[R]:
    """Filter to rows with one of the texts in one of the JSON columns ``columns``. Case is ignored."""
    wanted = Q(pk__in=[])
    for column in columns:
        wanted |= reduce(or_, (Q(**{f"{column}_text__icontains": text}) for text in texts))
    cast = {f"{column}_text": Cast(column, TextField()) for column in columns}
    containing: QuerySet[R] = rows.alias(**cast).filter(wanted)
    return containing
