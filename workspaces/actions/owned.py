"""Rules for documents and artifacts alike: seeing, keeping for oneself, giving to all, forgetting."""

from __future__ import annotations

from typing import Any, TypeVar

from django.utils.translation import gettext as _

from memoryhub.errors import Conflict, Forbidden
from workspaces.access import lock_as_editor, personal_place, require, role_in
from workspaces.audit import Verb, record
from workspaces.leaving_machine import Reach, in_reach
from workspaces.models import Artifact, Document, OwnedQuerySet, Role, User, Workspace

Owned = TypeVar("Owned", Document, Artifact)


def get_owned(
    rows: OwnedQuerySet[Owned],
    user: User,
    public_id: str,
    *,
    workspace: Workspace | None,
    need: Role,
    or_deleted: bool,
) -> Owned | None:
    """With its workspace, both with the person's ``role`` there; what is their own is found in every workspace of
    theirs. None for strangers, Forbidden below ``need``.
    """
    found = rows.visible_to(user).select_related("workspace", "created_by")
    if workspace is not None:
        found = in_reach(found, workspace, user, Reach.here(workspace))
    one = (found if or_deleted else found.live()).filter(public_id=public_id).first()
    if one is not None:
        require(one.role, need)
        one.workspace.role = one.role
    return one


def home(workspace: Workspace, by: User, *, personal: bool) -> tuple[Workspace, User | None]:
    """Return the workspace that stores a new document or artifact, and its owner. Conflict as ``personal_place``."""
    return (personal_place(by, said_in=workspace), by) if personal else (workspace, None)


def require_right_to_move(found: Document | Artifact, to: Workspace, owner: User | None, by: User) -> None:
    """Taking from others takes as much as forgetting; what stays on this machine is given to nobody elsewhere."""
    taken = found.owner_id is None and (owner is not None or to != found.workspace)
    if taken and not may_take_away(found, by, role_in(by, found.workspace)):
        raise Forbidden(_("Only the person who added it or an owner of the workspace can move it."))
    if found.workspace.local_only and not to.local_only:
        raise Conflict(
            _("It belongs to a workspace that keeps everything on this machine, and “%(name)s” does not.")
            % {"name": to.name},
            code="would_leave",
        )


def lock_owned(rows: OwnedQuerySet[Owned], found: Owned, by: User) -> Owned | None:
    """The row as it stands, held until the commit, and with it the right to write there. None where it has gone from
    where it lay when it was looked at.
    """
    lock_as_editor(found.workspace, by)
    there = rows.filter(pk=found.pk, workspace=found.workspace_id, owner=found.owner_id)
    return there.select_for_update(of=("self",)).select_related("workspace").first()


def lock_places(by: User, *places: Workspace) -> None:
    """The right to write in each, in one order, so that of two who move something neither waits for the other."""
    for place in sorted(set(places), key=lambda each: each.pk):
        lock_as_editor(place, by)


def may_take_away(found: Document | Artifact, by: User, role: str | None) -> bool:
    """From everybody, for good or for oneself: more than writing. Who brought it, or an owner of the workspace."""
    if role is None or not Role(role).allows(Role.EDITOR):
        return False
    return role == Role.OWNER or found.created_by_id == by.pk


def require_right_to_forget(found: Document | Artifact, by: User) -> None:
    if not may_take_away(found, by, role_in(by, found.workspace)):
        raise Forbidden(
            _("Only the person who added it or an owner of the workspace can forget it for good.")
        )


def note(verb: Verb, found: Document | Artifact, by: User, **details: Any) -> None:
    """In the audit log; of personal ones nothing that a workspace's owners see."""
    workspace = found.workspace if found.owner_id is None else None
    record(verb, by=by, workspace=workspace, target=found.public_id, details=details or None)
