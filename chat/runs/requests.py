"""Requests to start or resume a run, validated field by field, and templates that store them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chat.models import Message
from chat.models.runs import Run, RunMode, RunTemplate
from chat.runs.budget import Limits
from chat.runs.memory import MemoryEntry, MemoryKind, as_json_text
from chat.runs.memory_tools import LONGEST_KEY, LONGEST_VALUE, MOST_ENTRIES
from chat.runs.plan import PlanTrouble, TaskPlan, read_plan
from memories.writing.drafts import UNSTORABLE
from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from memoryhub.languages import grouped
from workspaces.access import get_workspace, lock_to_count, require
from workspaces.models import Role, User, Workspace

LONGEST_OBJECTIVE = 8_000
MOST_INPUTS = 50
KIND_OF = {
    "step": MemoryKind.STEP_RESULT,
    "task": MemoryKind.TASK_RESULT,
    "input": MemoryKind.INPUT,
    "shared": MemoryKind.SHARED,
}
HIGHEST = Limits(rounds=2_000, tokens=5_000_000, minutes=24 * 60, step_rounds=50)


@dataclass(frozen=True)
class RunRequest:
    """A request for a run. ``plan`` is JSON; without it the model plans, except for a run of one step. ``memory`` holds
    the entries that the run starts with, from ``given_memory``.
    """

    objective: str
    mode: str = RunMode.PLAN
    inputs: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[str] | None = None
    budget: Mapping[str, int] = field(default_factory=dict)
    plan: object = None
    reviews_plan: bool = False
    answer: Message | None = None  # the answer of a chat that the run is for
    chat_id: int | None = None  # for a repeated run: the chat of the original
    memory: Sequence[MemoryEntry] = ()
    web_urls: Sequence[str] = ()  # found on the web by the run that this one builds on
    held_personal: bool = False  # that run used personal data, so this one is visible to its user only


def checked(wanted: RunRequest, tools: Sequence[str]) -> tuple[TaskPlan | None, Limits]:
    """Return the plan and the limits. ``tools`` are the existing tools. Raises Invalid naming every wrong field."""
    wrong: dict[str, str] = {}
    if not wanted.objective.strip():
        wrong["objective"] = _("must not be blank")
    elif len(wanted.objective) > LONGEST_OBJECTIVE:
        wrong["objective"] = _("may have at most %s characters") % grouped(LONGEST_OBJECTIVE)
    if wanted.mode not in RunMode.values:
        wrong["mode"] = _("Allowed: %s.") % ", ".join(RunMode.values)
    if why := _why_bad_inputs(wanted.inputs):
        wrong["inputs"] = why
    if unknown := [name for name in wanted.tools or () if name not in tools]:
        wrong["tools"] = _("There is no “%(name)s”. Allowed: %(all)s.") % {
            "name": unknown[0][:60],
            "all": ", ".join(tools),
        }
    if wrong:
        raise Invalid(fields=wrong)
    return (None if wanted.plan is None else given_plan(wanted.plan)), given_limits(wanted.budget)


def _why_bad_inputs(inputs: Mapping[str, Any]) -> str:
    if len(inputs) > MOST_INPUTS:
        return _("at most %s are allowed") % MOST_INPUTS
    for name, value in inputs.items():
        if not name or len(name) > LONGEST_KEY or "[" in name or UNSTORABLE.search(name):
            return _("has a name that cannot be used")
        try:
            if len(as_json_text(value)) > LONGEST_VALUE:
                return _("has a value of more than %s characters") % grouped(LONGEST_VALUE)
        except (TypeError, ValueError, RecursionError):
            return _("must be JSON")
    return ""


def given_memory(entries: Sequence[Mapping[str, Any]], *, now: datetime) -> list[MemoryEntry]:
    """Return the entries that a run is to start with. Raises Invalid naming the first wrong one."""
    if len(entries) > MOST_ENTRIES:
        raise Invalid(fields={"memory": _("at most %s are allowed") % grouped(MOST_ENTRIES)})
    found: dict[str, MemoryEntry] = {}
    for number, given in enumerate(entries):
        namespace, _colon, name = given["key"].partition(":")
        kind = KIND_OF.get(namespace)
        if kind is None or not name.strip():
            why = _("must begin with step:, task:, input: or shared:, and go on with a name")
            raise Invalid(fields={f"memory.{number}.key": why})
        if given.get("kind") not in (None, kind):
            why = _("must be %(kind)s for a key that begins with %(beginning)s")
            raise Invalid(
                fields={f"memory.{number}.kind": why % {"kind": kind, "beginning": f"{namespace}:"}}
            )
        if given["key"] in found:
            raise Invalid(fields={f"memory.{number}.key": _("is there twice")})
        try:
            value = as_json_text(given["value"])
        except (TypeError, ValueError, RecursionError):
            raise Invalid(fields={f"memory.{number}.value": _("must be JSON")}) from None
        written_at = min(given.get("created_at") or now, now)
        about = (given.get(field_name) or None for field_name in ("source", "title", "description"))
        found[given["key"]] = MemoryEntry(given["key"], kind, value, written_at, *about)
    return list(found.values())


def given_plan(plan: object) -> TaskPlan:
    try:
        return read_plan(plan)
    except PlanTrouble as trouble:
        raise Invalid(fields={"plan": str(trouble)[:1000]}) from None


def given_limits(budget: Mapping[str, int]) -> Limits:
    wrong: dict[str, str] = {}
    for name, value in budget.items():
        highest = getattr(HIGHEST, name, None)
        if highest is None:
            wrong[f"budget.{name[:40]}"] = _("is not a part of the budget")
        elif not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= highest:
            wrong[f"budget.{name}"] = _("must be from 1 to %s") % grouped(highest)
    if wrong:
        raise Invalid(fields=wrong)
    return Limits(**budget)


MOST = 100  # templates of a workspace
LONGEST_NAME = 80


def save_template(run: Run, name: str, *, by: User, now: datetime) -> RunTemplate:
    """Save a run as a template. Raises Invalid for a name that is blank, too long or taken, Conflict for a private run
    or too many templates, and Forbidden for viewers.
    """
    workspace = get_workspace(by, run.workspace.public_id, need=Role.EDITOR)
    name = " ".join(name.replace("\x00", "").split())
    if not name or len(name) > LONGEST_NAME:
        raise Invalid(fields={"name": _("must have 1 to %s characters") % LONGEST_NAME})
    if run.is_private:
        raise Conflict(_("This run is private, and everyone in the workspace would read the template."))
    values = {
        "mode": run.mode,
        "objective": run.objective,
        "tools": run.tools,
        "limits": run.limits,
        "plan": run.plan,
        "chat_id": run.chat_id,
    }
    try:
        with transaction.atomic():
            lock_to_count(workspace)
            if workspace.run_templates.count() >= MOST:
                raise Conflict(_("There are %s templates here, which is the most. Delete one first.") % MOST)
            return RunTemplate.objects.create(
                workspace=workspace, user=by, name=name, created_at=now, **values
            )
    except IntegrityError:
        raise Invalid(fields={"name": _("is taken by another template")}) from None


def templates_of(workspace: Workspace, user: User) -> QuerySet[RunTemplate]:
    return RunTemplate.objects.visible_to(user).filter(workspace=workspace)


def get_template(workspace: Workspace, public_id: str, *, by: User) -> RunTemplate:
    found = templates_of(workspace, by).filter(public_id=public_id).first()
    if found is None:
        raise NotFound(_("This template does not exist."))
    return found


def request_of(
    template: RunTemplate, *, objective: str, inputs: Mapping[str, Any], reviews_plan: bool
) -> RunRequest:
    """Return the request for a run from a template. ``objective`` replaces the template's, unless empty."""
    return RunRequest(
        objective or template.objective,
        template.mode,
        inputs,
        template.tools,
        template.limits,
        template.plan,
        reviews_plan,
    )


def delete_template(workspace: Workspace, public_id: str, *, by: User) -> None:
    """Delete a template. Raises Forbidden unless ``by`` is its creator and still an editor, or an owner of the
    workspace.
    """
    require(workspace.role, Role.EDITOR)
    template = get_template(workspace, public_id, by=by)
    if template.user_id != by.pk and not Role(workspace.role).allows(Role.OWNER):
        raise Forbidden(_("Only the person who made a template and the workspace's owners can delete it."))
    template.delete()
