"""Deleting an account: what is the person's own goes for good, what was shared with others stays theirs."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext as _

from memoryhub import mail
from memoryhub.errors import Conflict, Forbidden
from memoryhub.languages import speaking_to
from workspaces.accounts.closing import hand_over
from workspaces.accounts.sessions import end_other_sessions
from workspaces.actions.removal import Counts, counted, empty
from workspaces.actions.workspaces import remove_workspace
from workspaces.audit import Verb, record
from workspaces.models import Membership, Role, User, Workspace


@dataclass(frozen=True)
class Leaving:
    """Effects of deleting an account on the workspaces its person is in."""

    removed: list[Workspace]  # their own one, and those nobody else is in
    left: list[Workspace]  # of others: what was shared there stays, without a name
    orphaned: list[Workspace]  # others are in it, and nobody of them is an owner: in the way


def foresee_leaving(user: User) -> Leaving:
    removed, left, orphaned = [], [], []
    for workspace in Workspace.objects.filter(memberships__user=user).order_by("pk"):
        others = Membership.objects.filter(workspace=workspace).exclude(user=user)
        if workspace.default_of_id == user.pk or not others.exists():
            removed.append(workspace)
        elif others.filter(role=Role.OWNER).exists():
            left.append(workspace)
        else:
            orphaned.append(workspace)
    return Leaving(removed, left, orphaned)


def delete_account(user: User, *, by: User | None = None) -> Counts:
    """Delete a person with their own workspaces and personal memories, for good; what went. ``by``: who else does it.

    Their sessions end. In the workspaces of others their memberships go; what they shared there stays, without their
    name. Conflict while others depend on a workspace that only they own.
    """
    with transaction.atomic():
        mine = Workspace.objects.filter(memberships__user=user).order_by("pk")
        list(mine.select_for_update(of=("self",)).values_list("pk", flat=True))
        plan = foresee_leaving(user)
        if plan.orphaned:
            names = ", ".join(f"“{workspace.name}”" for workspace in plan.orphaned)
            raise Conflict(
                _("You are the only owner of %s. Make another member an owner first, or delete it.") % names,
                code="last_owner",
            )
        end_other_sessions(user, keep=None, by=by or user)
        record(Verb.ACCOUNT_DELETED, by=by or user, target=user.public_id)
        gone: Counts = empty(workspace_ids=[], user_id=user.pk, by=user)
        for workspace in plan.removed:
            gone += remove_workspace(workspace, by=user)
        return gone + counted(user.delete()[1])


def delete_account_of(person: User, *, by: User) -> Counts:
    """Delete an account at the request of its person, and confirm by mail.

    Where they are the only owner, who has been an editor longest becomes one. Raises Forbidden for who is no superuser,
    Conflict for one's own account and where all other members' accounts are closed.
    """
    if not by.is_superuser:
        raise Forbidden(_("Only superusers delete the accounts of others."))
    if person.pk == by.pk:
        raise Conflict(_("You delete your own account on your profile."))
    with transaction.atomic():
        hand_over(person, by=by)
        if orphaned := foresee_leaving(person).orphaned:
            names = ", ".join(f"“{workspace.name}”" for workspace in orphaned)
            raise Conflict(_("Nobody could take over %s: the other members' accounts are closed.") % names)
        with speaking_to(person):
            text = _("The account %(name)s and its data have been deleted.\n") % {
                "name": person.get_username()
            }
            mail.send(_("Your account has been deleted"), text, [person.email] if person.email else [])
        return delete_account(person, by=by)
