"""The first account, on the machine that alone can reach this MemoryHub, is its administrator's.

They run it: else the first thing to learn would be two environment variables (docs/decisions/0027).
"""

from __future__ import annotations

from django.http import HttpRequest

from memoryhub.http.only_here import comes_from_here, serves_only_here
from workspaces.accounts.usernames import hold_usernames
from workspaces.audit import Verb, record
from workspaces.models import User

TOLD = "is_first_account"  # in the session, for the page that says so
RIGHTS = ("is_staff", "is_superuser")


def is_next(request: HttpRequest) -> bool:
    """Whether who signs up by this request would be the first. Within the transaction that makes them: until it is
    over nobody else is made, so that of two at once one is.
    """
    if not (serves_only_here() and comes_from_here(request)):
        return False
    hold_usernames()
    return not User.objects.exists()


def make_administrator(user: User, request: HttpRequest) -> None:
    user.is_staff = user.is_superuser = True
    user.save(update_fields=RIGHTS)
    record(Verb.RIGHTS_CHANGED, by=None, target=user.public_id, details={"fields": [*RIGHTS], "why": "first"})
    request.session[TOLD] = True
