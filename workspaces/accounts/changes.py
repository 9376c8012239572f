"""Changes to accounts: a person's display name, and a superuser's changes to sign-in and rights.

A superuser's change is recorded in the audit log and mailed to the person, also at the previous address. The view
checks that the user is a superuser who re-authenticated recently (``workspaces.accounts.sign_in.ask_for_password``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryhub import mail
from memoryhub.errors import Invalid
from workspaces.accounts import oauth, sessions
from workspaces.audit import Verb, record
from workspaces.models import Role, User, Workspace
from workspaces.models.people import ALIKE, UNSEEN, looks_of

RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")
CHANGES = {
    "password": gettext_lazy("Your password was changed, and you were signed out everywhere."),
    "two_factor": gettext_lazy("Two-factor sign-in was turned off: your password alone opens your account."),
    "username": gettext_lazy("Your username was changed."),
    "email": gettext_lazy("Your email address was changed."),
    **dict.fromkeys(RIGHTS, gettext_lazy("What you may do as an administrator was changed.")),
}


def change_account(person: User, *, fields: list[str], email_before: str, by: User, now: datetime) -> None:
    """Record and mail the changes of an account that a form has just saved.

    ``fields``: the changed keys of ``CHANGES``.
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
    """End the person's sessions and program authorizations after a password change.

    ``keep``: key of the one session that stays open.
    """
    with transaction.atomic():
        record(Verb.PASSWORD_CHANGED, by=by, target=person.public_id)
        oauth.end_all_of(person, by=by, now=now)
        sessions.end_other_sessions(person, keep=keep, by=by)
        _notify(person, ["password"], to=_addresses(person), by=by, now=now)


def turn_two_factor_off(people: QuerySet[User], *, by: User, now: datetime) -> int:
    """Turn off two-factor sign-in for people who lost their phone and recovery codes. Return the number of people."""
    with transaction.atomic():
        found = list(people.select_for_update(of=("self",)))
        Authenticator.objects.filter(user__in=found).delete()
        for person in found:
            record(Verb.TWO_FACTOR_OFF, by=by, target=person.public_id)
            _notify(person, ["two_factor"], to=_addresses(person), by=by, now=now)
    return len(found)


def tell_owners(workspace: Workspace, came: Iterable[User], *, by: User, now: datetime) -> None:
    """Mail a workspace's owners that an administrator is adding these people. Call it before they are added."""
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
        "people": "\n".join(f"- {person.get_username()}" for person in came),
    }
    to = {address for owner in owners for address in _addresses(owner)}
    mail.send(_("Your workspace has new members"), text, to)


def _addresses(person: User) -> set[str]:
    others = EmailAddress.objects.filter(user=person).values_list("email", flat=True)
    return {address for address in (person.email, *others) if address}


def _use_address(person: User, *, before: str) -> None:
    """Make the account's current address its primary one, and delete the previous address, so that no password reset
    is mailed there.
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
    """Set the display name; with an empty name the user name is shown instead. Raises Invalid as ``require_own`` does.

    The name replaces the first and last names from single sign-on or a directory, until either of them sends new ones.
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
    """Raise Invalid for a name that is too long, contains a web address or hidden characters, or looks like another
    person's user name.
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
