"""Runs kept as templates: what was asked, with its plan, for everyone in the workspace to start from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chat.agents.run_request import RunRequest
from chat.models.runs import Run, RunTemplate
from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from workspaces.access import get_workspace, lock_to_count, require
from workspaces.models import Role, User, Workspace

MOST = 100  # of a workspace
LONGEST_NAME = 80


def save_template(run: Run, name: str, *, by: User, now: datetime) -> RunTemplate:
    """Raises Invalid for a name that is blank, too long or taken; Conflict for a private run or too many."""
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


def wanted_of(
    template: RunTemplate, *, objective: str, inputs: Mapping[str, Any], reviews_plan: bool
) -> RunRequest:
    """What a run started from it is asked; ``objective``: in place of its own, unless empty."""
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
    """Raises Forbidden but for who made it, as long as they may write, and the workspace's owners."""
    require(workspace.role, Role.EDITOR)
    template = get_template(workspace, public_id, by=by)
    if template.user_id != by.pk and not Role(workspace.role).allows(Role.OWNER):
        raise Forbidden(_("Only the person who made a template and the workspace's owners can delete it."))
    template.delete()
