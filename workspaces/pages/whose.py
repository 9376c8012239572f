"""Choice of a document's or artifact's readers, on its page: everyone in a workspace, or its owner alone."""

from __future__ import annotations

from typing import Any

from django.contrib import messages as notices
from django.utils.translation import gettext as _

from workspaces.access import named_workspace, workspaces_of
from workspaces.actions.owned import may_take_away
from workspaces.models import Artifact, Document, Role, User, Workspace
from workspaces.pages.page_request import PageRequest


def whose(found: Document | Artifact, user: User) -> dict[str, Any]:
    """For the form; nothing to choose from for who may not move it. One query for who may."""
    if not found.is_personal and not may_take_away(found, user, found.role):
        return {"places": []}
    return {"places": [each for each in workspaces_of(user) if Role(each.role).allows(Role.EDITOR)]}


def destination(request: PageRequest) -> Workspace | None:
    """The workspace for everyone in which it is to be; None: for the reader alone."""
    chosen = request.POST.get("whose", "")
    return named_workspace(request.user, chosen, need=Role.EDITOR) if chosen else None


def say_whose(request: PageRequest, moved: Document | Artifact) -> None:
    if moved.is_personal:
        said = _("“%(name)s” is for you alone now, in all your workspaces.") % {"name": moved.title}
    else:
        said = _("“%(name)s” is for everyone in %(workspace)s now.") % {
            "name": moved.title,
            "workspace": moved.workspace.name,
        }
    notices.success(request, said)
