"""Closing, reopening and deleting accounts, and a superuser's changes to sign-in and rights.

Closing deletes no data. API keys, authorized programs, streams, links and webhooks check at each use that the account
is open, so they work again when it is reopened. Sessions do not.

A superuser's change is recorded in the audit log and mailed to the person, also at the previous address. The view
checks that the user is a superuser who re-authenticated recently (``reauthentication.ask_for_password``).
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.db import transaction
from django.db.models import Case, Exists, IntegerField, OuterRef, QuerySet, Value, When
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryhub import mail, pubsub
from memoryhub.errors import Conflict, Forbidden, Invalid
from memoryhub.localization import speaking_to
from workspaces.access import DEFAULT_NAME
from workspaces.accounts import program_authorizations, sessions
from workspaces.accounts.sessions import end_other_sessions
from workspaces.actions.purging import Counts, counted, remove_in_other_apps
from workspaces.actions.workspaces import lock, remove_workspace
from workspaces.audit import Verb, record
from workspaces.models import Membership, Role, User, Workspace
from workspaces.models.users import ALIKE, UNSEEN, looks_of
from workspaces.webhooks.hooks import queue_sending

Closing = Callable[[User, datetime], None]
_also: list[Closing] = []


def on_closing(act: Closing) -> None:
    """Register a function that is called with the account and the time, in the transaction that closes an account.

    Apps that this module may not import use it to end their own things of the person.
    """
    if act not in _also:
        _also.append(act)


def close_account(
    person: User, *, by: User | None, now: datetime, hands_over: bool = True
) -> list[Membership]:
    """Close an account, so that its person cannot sign in, and end their sessions. Idempotent.

    ``by``: None if the company's directory closed it. With ``hands_over``, each workspace of which the person was the
    only active owner gets a new owner. Returns the memberships of these new owners.
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
        # The person's open pages then reconnect and are refused.
        pubsub.publish(f"user:{person.public_id}", "account.closed")
    return handed


def reopen_account(person: User, *, by: User | None) -> None:
    """Reopen a closed account. Idempotent.

    The person still owns the same workspaces. People who became owners when the account was closed stay owners too.
    """
    with transaction.atomic():
        if User.objects.filter(pk=person.pk, is_active=False).update(is_active=True):
            record(Verb.ACCOUNT_REOPENED, by=by, target=person.public_id)
    person.is_active = True


def left_behind(person: User) -> list[Workspace]:
    """Return the workspaces that have other active members, but this person as their only active owner.

    The person's default workspace is not included.
    """
    open_ones = Membership.objects.filter(workspace=OuterRef("pk"), user__is_active=True).exclude(user=person)
    owned = Workspace.objects.filter(
        memberships__user=person, memberships__role=Role.OWNER, default_of=None
    ).filter(Exists(open_ones), ~Exists(open_ones.filter(role=Role.OWNER)))
    return list(owned.order_by("pk"))


def hand_over(person: User, *, by: User | None) -> list[Membership]:
    """Give each workspace that ``left_behind`` returns a new owner. Return the memberships of the new owners.

    The new owner is the longest-serving editor, else the longest-serving viewer, and is notified by mail.
    """
    with transaction.atomic():
        return [
            membership for workspace in left_behind(person) if (membership := _hand_on(workspace, person, by))
        ]


def _hand_on(workspace: Workspace, person: User, by: User | None) -> Membership | None:
    lock(workspace)
    members = workspace.memberships.filter(user__is_active=True).exclude(user=person).select_related("user")
    if members.filter(role=Role.OWNER).exists():  # another member was made an owner in the meantime
        return None
    first = Case(When(role=Role.EDITOR, then=Value(0)), default=Value(1), output_field=IntegerField())
    heir = members.order_by(first, "created_at", "pk").first()
    if heir is None:
        return None
    before, heir.role = heir.role, Role.OWNER
    heir.save(update_fields=["role"])
    details = {"before": str(before), "of": person.public_id}
    record(Verb.HANDED_OVER, by=by, workspace=workspace, target=heir.user.public_id, details=details)
    _notify_heir(heir, person)
    heir.workspace = workspace
    return heir


def _notify_heir(heir: Membership, person: User) -> None:
    with speaking_to(heir.user):
        body = _(
            "The account of %(person)s was closed, who was the only owner of the workspace “%(workspace)s”.\n"
            "You are its owner now: you manage its members and settings.\n"
        ) % {"person": person.get_username(), "workspace": mail.as_name(heir.workspace.name)}
        to: Iterable[str] = [heir.user.email] if heir.user.email else []
        mail.send(_("You own a workspace now"), body, to)


# Deleting an account: a person's own data is removed for good; what they shared with others stays.


@dataclass(frozen=True)
class Leaving:
    """The workspaces that are affected if a person deletes their account, by what happens to them."""

    removed: list[Workspace]  # workspaces without other members
    left: list[Workspace]  # other people's workspaces: shared content stays, without a name
    orphaned: list[Workspace]  # has other members, none an owner: blocks the deletion


def foresee_leaving(user: User) -> Leaving:
    removed, left, orphaned = [], [], []
    for workspace in Workspace.objects.filter(memberships__user=user).order_by("pk"):
        others = Membership.objects.filter(workspace=workspace).exclude(user=user)
        if not others.exists():
            removed.append(workspace)
        elif others.filter(role=Role.OWNER).exists():
            left.append(workspace)
        else:
            orphaned.append(workspace)
    return Leaving(removed, left, orphaned)


def delete_account(user: User, *, by: User | None = None) -> Counts:
    """Delete an account, its workspaces without other members, and its personal memories. Return the numbers of deleted
    rows.

    Content shared in other people's workspaces stays, without the person's name. ``by``: the user who deletes the
    account, if not the person. Raises Conflict if a workspace with other members has no other owner.
    """
    with transaction.atomic():
        mine = Workspace.objects.filter(memberships__user=user).order_by("pk")
        list(mine.select_for_update(of=("self",)).values_list("pk", flat=True))
        _keep_shared_default_workspace(user)
        plan = foresee_leaving(user)
        if plan.orphaned:
            names = ", ".join(f"“{workspace.name}”" for workspace in plan.orphaned)
            raise Conflict(
                _("You are the only owner of %s. Make another member an owner first, or remove the others.")
                % names,
                code="last_owner",
            )
        end_other_sessions(user, keep=None, by=by or user)
        record(Verb.ACCOUNT_DELETED, by=by or user, target=user.public_id)
        gone: Counts = remove_in_other_apps(workspace_ids=[], user_id=user.pk, by=user)
        for workspace in plan.removed:
            gone += remove_workspace(workspace, by=user)
        return gone + counted(user.delete()[1])


def _keep_shared_default_workspace(user: User) -> None:
    """Make the default workspace an ordinary one if it has other members, so that it is not deleted with the account.

    A workspace that is still called "Personal" is renamed.
    """
    others = Membership.objects.filter(workspace=OuterRef("pk")).exclude(user=user)
    home = Workspace.objects.filter(Exists(others), default_of=user).first()
    if home is None:
        return
    home.default_of = None
    if home.name == DEFAULT_NAME:  # each member has one of this name
        home.name = "Formerly personal"
    home.save(update_fields=["default_of", "name", "updated_at"])


def delete_account_of(person: User, *, by: User) -> Counts:
    """Delete the account of a person who asked for it, and confirm by mail. For superusers.

    Workspaces of which the person is the only owner are handed over first. Raises Forbidden if ``by`` is not a
    superuser. Raises Conflict for one's own account, and for a workspace in which all other members' accounts are
    closed.
    """
    if not by.is_superuser:
        raise Forbidden(_("Only superusers delete the accounts of others."))
    if person.pk == by.pk:
        raise Conflict(_("You delete your own account on your account page."))
    with transaction.atomic():
        _keep_shared_default_workspace(person)
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


RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")
CHANGES = {
    "password": gettext_lazy("Your password was changed, and you were signed out everywhere."),
    "two_factor": gettext_lazy("Two-factor sign-in was turned off: your password alone opens your account."),
    "username": gettext_lazy("Your username was changed."),
    "email": gettext_lazy("Your email address was changed."),
    **dict.fromkeys(RIGHTS, gettext_lazy("What you may do as an administrator was changed.")),
}


def change_account(person: User, *, fields: list[str], email_before: str, by: User, now: datetime) -> None:
    """Record the changes to an account that a form has just saved in the audit log, and mail them to the person.

    ``fields``: names of the changed fields, which are keys of ``CHANGES``. ``email_before``: the previous email
    address, to which the mail is sent too. A new email address becomes the account's primary one.
    """
    to = {email_before, *_addresses(person)}
    with transaction.atomic():
        if "username" in fields:
            record(Verb.USERNAME_CHANGED, by=by, target=person.public_id)
        if "email" in fields:
            record(Verb.EMAIL_CHANGED, by=by, target=person.public_id)
            _use_address(person, before=email_before)
        if rights := [name for name in fields if name in RIGHTS]:
            record(Verb.RIGHTS_CHANGED, by=by, target=person.public_id, details={"fields": [*rights]})
        _notify(person, fields, to=to, by=by, now=now)


def change_password(person: User, *, keep: str | None, by: User, now: datetime) -> None:
    """Record a password change that was just saved, mail it to the person, and end their sessions and OAuth
    authorizations.

    ``keep``: key of the one session that stays open; None ends all of them.
    """
    with transaction.atomic():
        record(Verb.PASSWORD_CHANGED, by=by, target=person.public_id)
        program_authorizations.end_all_of(person, by=by, now=now)
        sessions.end_other_sessions(person, keep=keep, by=by)
        _notify(person, ["password"], to=_addresses(person), by=by, now=now)


def turn_two_factor_off(people: QuerySet[User], *, by: User, now: datetime) -> int:
    """Turn off two-factor sign-in for people who lost their second factor. Return the number of people."""
    with transaction.atomic():
        users = list(people.select_for_update(of=("self",)))
        Authenticator.objects.filter(user__in=users).delete()
        for person in users:
            record(Verb.TWO_FACTOR_OFF, by=by, target=person.public_id)
            _notify(person, ["two_factor"], to=_addresses(person), by=by, now=now)
    return len(users)


def mail_owners(workspace: Workspace, people: Iterable[User], *, by: User, now: datetime) -> None:
    """Mail a workspace's owners that an administrator adds these people. Call it before they are added."""
    owners = User.objects.filter(memberships__workspace=workspace, memberships__role=Role.OWNER)
    text = _(
        "An administrator (%(by)s) made new members of the workspace “%(workspace)s” on %(at)s UTC:\n\n"
        "%(people)s\n\n"
        "If you expected this, there is nothing to do. If you did not, someone may be using an administrator's\n"
        "account: ask the people who run your MemoryHub, by another way than this mail.\n"
    ) % {
        "by": by.get_username(),
        "workspace": mail.as_name(workspace.name),
        "at": f"{now:%Y-%m-%d %H:%M}",
        "people": "\n".join(f"- {person.get_username()}" for person in people),
    }
    to = {address for owner in owners for address in _addresses(owner)}
    mail.send(_("Your workspace has new members"), text, to)


def _addresses(person: User) -> set[str]:
    others = EmailAddress.objects.filter(user=person).values_list("email", flat=True)
    return {address for address in (person.email, *others) if address}


def _use_address(person: User, *, before: str) -> None:
    """Make the account's current address its primary one, unverified, and delete the address ``before``.

    Password resets are then no longer mailed to the deleted address.
    """
    theirs = EmailAddress.objects.filter(user=person)
    theirs.filter(email__iexact=before).delete()
    theirs.update(primary=False)
    if person.email:
        values = {"primary": True, "verified": False}
        theirs.update_or_create(user=person, email=person.email.lower(), defaults=values)


def _notify(person: User, fields: Iterable[str], *, to: Iterable[str], by: User, now: datetime) -> None:
    changes = dict.fromkeys(str(CHANGES[name]) for name in fields)
    text = _(
        "Hello %(person)s,\n\n"
        "An administrator (%(by)s) changed your MemoryHub account on %(at)s UTC:\n\n"
        "%(changes)s\n\n"
        "If you expected this, there is nothing to do. If you did not, someone may be using an administrator's\n"
        "account: ask the people who run your MemoryHub, by another way than this mail, and change your password.\n"
    ) % {
        "person": person.get_username(),
        "by": by.get_username(),
        "at": f"{now:%Y-%m-%d %H:%M}",
        "changes": "\n".join(f"- {change}" for change in changes),
    }
    mail.send(_("Your MemoryHub account was changed"), text, filter(None, to))


LENGTH = 80
WEB_ADDRESS = re.compile(r"://|\bwww\.", re.IGNORECASE)
JOINERS = "\u200c\u200d"  # invisible, but needed to write Persian and other languages


def set_name(person: User, name: str) -> None:
    """Set the person's display name. If it is empty, pages show the user name instead.

    Raises Invalid if the name is too long, contains a web address or hidden characters, or looks like another person's
    user name or like the display name of a person in the same workspace. The name is replaced when single sign-on or a
    directory sends a new first or last name.
    """
    name = " ".join(name.split())
    require_own(name, person)
    looks = set(looks_of(name))
    if name and any(looks.intersection(looks_of(each.get_full_name())) for each in _named_beside(person)):
        raise Invalid(str(ALIKE))
    person.first_name, person.last_name = name, ""
    person.save(update_fields=["first_name", "last_name"])
    record(Verb.NAME_CHANGED, by=person)


def require_own(name: str, person: User) -> None:
    """Raise Invalid for a display name that is not allowed.

    It may not be too long, contain a web address or hidden characters, or look like another person's user name.
    """
    if len(name) > LENGTH:
        raise Invalid(_("A name has %d characters at most.") % LENGTH)
    if any(unicodedata.category(sign) in {"Cc", "Cf", "Cs"} and sign not in JOINERS for sign in name):
        raise Invalid(str(UNSEEN))
    if WEB_ADDRESS.search(name):
        raise Invalid(_("A name cannot contain a web address."))
    looks = looks_of(name)
    if name and not all(looks):
        raise Invalid(str(UNSEEN))
    if User.objects.exclude(pk=person.pk).filter(looks__overlap=looks).exists():
        raise Invalid(str(ALIKE))


def _named_beside(person: User) -> QuerySet[User]:
    """Return the other members of this person's workspaces who have set a display name."""
    others = User.objects.filter(memberships__workspace__memberships__user=person).exclude(pk=person.pk)
    return others.exclude(first_name="", last_name="").only("first_name", "last_name").distinct()
