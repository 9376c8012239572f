"""The name by which others read a person: any of their choosing, but none that is taken for somebody else's."""

from __future__ import annotations

import re
import unicodedata

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memoryhub.errors import Invalid
from workspaces.audit import Verb, record
from workspaces.models import User
from workspaces.models.usernames import ALIKE, UNSEEN, looks_of

LENGTH = 80
WEB_ADDRESS = re.compile(r"://|\bwww\.", re.IGNORECASE)
JOINERS = "\u200c\u200d"  # unseen, and part of how Persian and others are written


def set_name(person: User, name: str) -> None:
    """Empty: they are called by their user name again. Raises Invalid.

    It replaces the first and last names from single sign-on or a directory, until those are sent again.
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
    """Raises Invalid for a name that is too long, leads elsewhere, hides something or looks like another."""
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
    """Return the people with a display name in the workspaces that this person is in."""
    others = User.objects.filter(memberships__workspace__memberships__user=person).exclude(pk=person.pk)
    return others.exclude(first_name="", last_name="").only("first_name", "last_name").distinct()
