"""A superuser deletes the account of who asked for it; what others depend on goes on with one of them."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memoryhub.errors import Conflict, Forbidden
from memoryhub.languages import speaking_to
from workspaces.accounts.closing import hand_over
from workspaces.accounts.leaving import delete_account, foresee_leaving
from workspaces.data_requests.requests import end, tell
from workspaces.models import DataRequest, RequestState, User


def carry_out(request: DataRequest, *, by: User, now: datetime) -> None:
    """All or nothing. Where they are the only owner, who has been an editor longest becomes one.

    Raises Forbidden for who is no superuser, Conflict for a request that has ended, for one's own account, and where
    nobody could go on with a workspace: all its other members' accounts are closed.
    """
    if not by.is_superuser:
        raise Forbidden(_("Only superusers delete the accounts of others."))
    with transaction.atomic():
        person = end(request, RequestState.DONE, by=by, now=now).user
        if person is None or person.pk == by.pk:
            raise Conflict(_("You delete your own account on your profile."))
        hand_over(person, by=by)
        if orphaned := foresee_leaving(person).orphaned:
            names = ", ".join(f"“{workspace.name}”" for workspace in orphaned)
            raise Conflict(_("Nobody could take over %s: the other members' accounts are closed.") % names)
        with speaking_to(person):
            said = _("The account %(name)s and its data have been deleted, as you asked.\n")
            tell(person.email, said % {"name": person.get_username()})
        delete_account(person)
