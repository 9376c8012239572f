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
from chat.runs.run_entries import as_json_text
from memories.forgetting.remaining_copies import AT_ONCE, Wanted, holding, named
from workspaces.actions.purging import Counts
from workspaces.models import Membership, Role, User

GONE = "[…]"
# Keys of our own JSON whose values people or models wrote.
SAID = {"content", "arguments", "instructions", "title", "task_title", "description", "text"}


def forget_in_runs(wanted: Wanted, by: User) -> Counts:
    """Remove the texts of memories that ``by`` forgets from runs and templates. Return the number of changed entries.

    A run's objective stays, as the user's messages in chats do.
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
    # Texts are escaped in tool results, and JSON in calls.
    in_json = (as_json_text(text)[1:-1] for text in texts)
    every = list(dict.fromkeys([*texts, *map(escape, texts), *in_json]))
    if not every or not (runs.exists() or templates.exists()):
        return removed
    for start in range(0, len(every), AT_ONCE):
        part = every[start : start + AT_ONCE]
        holds = holding(part)
        with transaction.atomic():
            of_runs = {"run__in": runs.order_by().values("pk")}
            removed += named("entries of runs", _in_entries(RunEntry.objects.filter(**of_runs), part, holds))
            steps = RunStep.objects.filter(**of_runs)
            # A running step is taken from its worker, and another continues it from the cleaned transcript.
            changed = [step.pk for step in _clean(steps, ("transcript", "unit"), part, holds, only=SAID)]
            running = steps.filter(pk__in=changed, status=RunStepStatus.RUNNING)
            running.update(status=RunStepStatus.READY, lease=F("lease") + 1, beat_at=None)
            # Events contain keys of entries, which may quote a text.
            _clean(RunEvent.objects.filter(**of_runs), ("data",), part, holds)
            for run in _clean(runs, ("plan", "board"), part, holds, only=SAID):
                for task in run.tasks.all():
                    task.title = _without(task.title, holds)
                    task.save(update_fields=["title"])
            _clean(templates, ("plan",), part, holds, only=SAID)
    return removed


R = TypeVar("R", bound=Model)


def _clean(
    rows: QuerySet[R],
    columns: Sequence[str],
    texts: Sequence[str],
    holds: re.Pattern[str],
    *,
    only: Collection[str] = (),
) -> list[R]:
    """Remove the texts from JSON columns, and return the changed rows. ``only``: see ``_without``."""
    changed = list(_containing(rows, columns, texts).select_for_update(of=("self",)))
    for row in changed:
        for column in columns:
            setattr(row, column, _without(getattr(row, column), holds, only=only))
        row.save(update_fields=columns)
    return changed


def _in_entries(rows: QuerySet[RunEntry], texts: Sequence[str], holds: re.Pattern[str]) -> int:
    number = 0
    containing = _containing(rows, ("json", "title", "description", "key"), texts)
    for row in containing.select_for_update(of=("self",)):
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


def _without(value: Any, holds: re.Pattern[str], *, only: Collection[str] = ()) -> Any:
    """Return the value with each match of ``holds`` replaced by GONE, or only in the values of the keys ``only``."""
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


def _containing(rows: QuerySet[R], columns: Sequence[str], texts: Sequence[str]) -> QuerySet[R]:
    """Filter to rows with one of the texts in one of the JSON columns ``columns``. Case is ignored."""
    wanted = (Q(**{f"{column}_text__icontains": text}) for column in columns for text in texts)
    cast = {f"{column}_text": Cast(column, TextField()) for column in columns}
    containing: QuerySet[R] = rows.alias(**cast).filter(reduce(or_, wanted))
    return containing
