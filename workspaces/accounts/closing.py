"""Closing, reopening and deleting accounts.

Closing deletes no data. API keys, authorized programs, streams, links and webhooks check at each use that the account
is open, so they work again after it is reopened. Sessions end for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Case, Exists, IntegerField, OuterRef, Value, When
from django.utils.translation import gettext as _

from memoryhub import events, mail
from memoryhub.errors import Conflict, Forbidden
from memoryhub.languages import speaking_to
from workspaces.accounts.sessions import end_other_sessions
from workspaces.actions.removal import Counts, counted, empty
from workspaces.actions.workspaces import lock, remove_workspace
from workspaces.audit import Verb, record
from workspaces.models import Membership, Role, User, Workspace
from workspaces.webhooks.hooks import queue_sending

Closing = Callable[[User, datetime], None]
_also: list[Closing] = []


def on_closing(act: Closing) -> None:
    """Register a function to call in the transaction that closes an account. For apps that this one cannot import."""
    if act not in _also:
        _also.append(act)


def close_account(
    person: User, *, by: User | None, now: datetime, hands_over: bool = True
) -> list[Membership]:
    """Close an account and return the memberships that were made owners in its place. Idempotent.

    ``by=None``: the directory closed it.
    """
    with transaction.atomic():
        locked = User.objects.select_for_update(of=("self",), no_key=True).get(pk=person.pk)
        if locked.is_active:
            User.objects.filter(pk=person.pk).update(is_active=False)
            record(Verb.ACCOUNT_CLOSED, by=by, target=person.public_id)
        person.is_active = False
        end_other_sessions(person, keep=None, by=by)
        for end in _also:
            end(person, now)
        handed = hand_over(person, by=by) if hands_over else []
        queue_sending()  # sending turns off the webhooks of a former owner
        events.publish(
            f"user:{person.public_id}", "account.closed"
        )  # the person's open pages reconnect and are refused
    return handed


def reopen_account(person: User, *, by: User | None) -> None:
    """Reopen an account. The person owns the same workspaces as before, next to any new owners. Idempotent."""
    with transaction.atomic():
        if User.objects.filter(pk=person.pk, is_active=False).update(is_active=True):
            record(Verb.ACCOUNT_REOPENED, by=by, target=person.public_id)
    person.is_active = True


def left_behind(person: User) -> list[Workspace]:
    """Return the workspaces that have other active members but this person as their only active owner.

    Excludes the person's default workspace.
    """
    open_ones = Membership.objects.filter(workspace=OuterRef("pk"), user__is_active=True).exclude(user=person)
    owned = Workspace.objects.filter(
        memberships__user=person, memberships__role=Role.OWNER, default_of=None
    ).filter(Exists(open_ones), ~Exists(open_ones.filter(role=Role.OWNER)))
    return list(owned.order_by("pk"))


def hand_over(person: User, *, by: User | None, to: User | None = None) -> list[Membership]:
    """Make another member the owner of each workspace that ``left_behind`` returns; return the new owners' memberships.

    The new owner is ``to`` where they are a member, else the longest-serving editor, else the longest-serving viewer,
    and is notified by mail. Raises Conflict if the account of ``to`` is closed.
    """
    if to is not None and not to.is_active:
        raise Conflict(_("The account of %s is closed.") % to.get_username())
    with transaction.atomic():
        return [made for workspace in left_behind(person) if (made := _hand_on(workspace, person, by, to))]


def _hand_on(workspace: Workspace, person: User, by: User | None, to: User | None) -> Membership | None:
    lock(workspace)
    members = workspace.memberships.filter(user__is_active=True).exclude(user=person).select_related("user")
    if members.filter(role=Role.OWNER).exists():  # another member was made an owner in the meantime
        return None
    first = Case(When(role=Role.EDITOR, then=Value(0)), default=Value(1), output_field=IntegerField())
    chosen = members.filter(user=to) if to is not None else members.order_by(first, "created_at", "pk")
    heir = chosen.first()
    if heir is None:
        return None
    before, heir.role = heir.role, Role.OWNER
    heir.save(update_fields=["role"])
    details = {"before": str(before), "of": person.public_id}
    record(Verb.HANDED_OVER, by=by, workspace=workspace, target=heir.user.public_id, details=details)
    _tell(heir, person)
    heir.workspace = workspace
    return heir


def _tell(heir: Membership, person: User) -> None:
    with speaking_to(heir.user):
        said = _(
            "The account of %(person)s was closed, who was the only owner of the workspace “%(workspace)s”.\n"
            "You are its owner now: you manage its members and settings.\n"
        ) % {"person": person.get_username(), "workspace": mail.as_name(heir.workspace.name)}
        to: Iterable[str] = [heir.user.email] if heir.user.email else []
        mail.send(_("You own a workspace now"), said, to)


# Deleting an account: a person's own data is removed for good; what they shared with others stays.


@dataclass(frozen=True)
class Leaving:
    """Effects of deleting an account on the workspaces its person is in."""

    removed: list[Workspace]  # the default workspace, and workspaces without other members
    left: list[Workspace]  # other people's workspaces: shared content stays, without a name
    orphaned: list[Workspace]  # has other members, none an owner: blocks the deletion


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
    """Delete a person's account, own workspaces and personal memories. Return the numbers of deleted rows.

    Sessions and memberships end; content shared in other people's workspaces stays, without the person's name. ``by``:
    the user who deletes it, if not the person. Raises Conflict if a workspace with other members has no other owner.
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

    Workspaces of which the person is the only owner are handed over first. Raises Forbidden if ``by`` is no superuser;
    Conflict for one's own account, and for a workspace in which all other members' accounts are closed.
    """
    if not by.is_superuser:
        raise Forbidden(_("Only superusers delete the accounts of others."))
    if person.pk == by.pk:
        raise Conflict(_("You delete your own account on your account page."))
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
