"""Invitations to one person, who sees nothing of the workspace until they accept."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils.translation import gettext as _

from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import get_workspace
from workspaces.actions.workspaces import lock
from workspaces.audit import Verb, record
from workspaces.invitations.invitations import LONGEST
from workspaces.models import Invitation, Membership, Role, User, Workspace

PAUSE = timedelta(days=1)  # after a person declined


def invited(workspace: Workspace, *, now: datetime) -> QuerySet[Invitation]:
    """The open invitations of a workspace to single persons, oldest first."""
    return _open(now).filter(workspace=workspace).select_related("user").order_by("created_at", "id")


def invitations_of(user: User, *, now: datetime) -> QuerySet[Invitation]:
    """The invitations that this person may accept, newest first, each with its workspace and who invites."""
    inviting = Membership.objects.filter(
        workspace=OuterRef("workspace"), user=OuterRef("created_by"), role=Role.OWNER, user__is_active=True
    )
    member = Membership.objects.filter(workspace=OuterRef("workspace"), user=user)
    rows = _open(now).filter(Exists(inviting), ~Exists(member), user=user)
    return rows.exclude(used_by__contains=[user.pk]).select_related("workspace", "created_by", "user")


def invite(workspace: Workspace, *, user: User, role: str, by: User, now: datetime) -> Invitation:
    """Invite a person to become a member. Owners only.

    Raises Invalid for a wrong role or an inactive person, Conflict for a member, one who is invited already or who
    declined within a day.
    """
    if role not in Role.values:
        raise Invalid(fields={"role": _("Must be one of %s.") % ", ".join(Role.values)})
    if not user.is_active:
        raise Invalid(fields={"username": _("There is no person with this username.")})
    with transaction.atomic():
        lock(workspace)
        get_workspace(by, workspace.public_id, need=Role.OWNER)
        if Membership.objects.filter(workspace=workspace, user=user).exists():
            raise Conflict(_("%s is already a member.") % user.get_username(), code="already_member")
        if invited(workspace, now=now).filter(user=user).exclude(used_by__contains=[user.pk]).exists():
            raise Conflict(_("%s is already invited.") % user.get_username(), code="already_invited")
        declined = Invitation.objects.filter(workspace=workspace, user=user, declined_at__gt=now - PAUSE)
        if declined.exists():
            message = _("%s declined an invitation. You can invite them again a day later.")
            raise Conflict(message % user.get_username(), code="declined")
        made = Invitation.objects.create(
            workspace=workspace, user=user, role=role, created_by=by, created_at=now, expires_at=now + LONGEST
        )
        _note(Verb.INVITATION_MADE, made, by)
    return made


def accept_invited(*, by: User, now: datetime, **which: Any) -> Membership:
    """Become a member. ``which`` names the invitation. NotFound where this person has none that is open."""
    with transaction.atomic():
        found = _lock(by, now, which)
        made = Membership.objects.create(workspace=found.workspace, user=by, role=found.role)
        found.used = 1
        found.used_by.append(by.pk)
        found.save(update_fields=["used", "used_by"])
        _note(Verb.MEMBER_JOINED, found, by)
    return made


def end_invited(*, by: User, now: datetime, **which: Any) -> None:
    """Decline one's own invitation, or withdraw one as an owner. NotFound where it is not open."""
    with transaction.atomic():
        found = _open(now).filter(**which).select_for_update(of=("self",)).select_related("workspace").first()
        if found is None or (found.user_id != by.pk and not _owns(found.workspace, by)):
            raise _none()
        mine = found.user_id == by.pk
        found.revoked_at, found.declined_at = now, now if mine else None
        found.save(update_fields=["revoked_at", "declined_at"])
        _note(Verb.INVITATION_DECLINED if mine else Verb.INVITATION_REVOKED, found, by)


def _open(now: datetime) -> QuerySet[Invitation]:
    return Invitation.objects.filter(
        user__isnull=False, revoked_at=None, expires_at__gt=now, used__lt=F("most")
    )


def _lock(by: User, now: datetime, which: dict[str, Any]) -> Invitation:
    """As every change of members: the workspace first, so that a removal waits or is waited for."""
    found = invitations_of(by, now=now).filter(**which).first()
    if found is None:
        raise _none()
    lock(found.workspace)
    locked = invitations_of(by, now=now).filter(pk=found.pk).select_for_update(of=("self",)).first()
    if locked is None:
        raise _none()
    return locked


def _owns(workspace: Workspace, by: User) -> bool:
    return Membership.objects.filter(workspace=workspace, user=by, role=Role.OWNER).exists()


def _note(verb: Verb, found: Invitation, by: User) -> None:
    details = {"role": found.role, "person": found.user.public_id if found.user else ""}
    record(verb, by=by, workspace=found.workspace, target=found.public_id, details=details)


def _none() -> NotFound:
    return NotFound(_("This invitation does not exist, or it ended long ago."))
