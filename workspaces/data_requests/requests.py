"""A request from being asked for to its end. Open ones are due ``MEMORYHUB_DATA_REQUEST_DAYS`` after they were asked.

A copy needs nobody: it is done as soon as it is asked for, and made while it is fetched
(``chat.exchange.personal_copy``). A deletion waits for somebody who looks at what others depend on (``carrying_out``);
who needs nobody for that deletes their account themselves (``accounts.leaving``).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from memoryhub import mail
from memoryhub.errors import Conflict, Invalid, NotFound
from memoryhub.languages import speaking_to
from workspaces.audit import Verb, record
from workspaces.models import DataRequest, RequestKind, RequestState, User

COPY_KEPT = timedelta(days=7)  # for which it can be fetched, as often as they like
LISTED = 50


def are_taken() -> bool:
    return settings.DATA_REQUEST_DAYS > 0


def requests_of(person: User) -> list[DataRequest]:
    """The newest of them."""
    return list(DataRequest.objects.filter(user=person).order_by("-pk")[:LISTED])


def ask(person: User, kind: RequestKind, *, now: datetime) -> DataRequest:
    """Asked twice, it is the same one, while that is open or can be fetched.

    Raises Conflict where the operator takes none, NotFound for an account that was closed meanwhile.
    """
    if not are_taken():
        raise Conflict(_("Data requests are not accepted here. Ask your administrator."))
    with transaction.atomic():
        # Held, so that of two at once the second finds what the first one made.
        held = User.objects.select_for_update(of=("self",), no_key=True)
        if held.filter(pk=person.pk, is_active=True).first() is None:
            raise NotFound(_("Your account has been closed."))
        for known in DataRequest.objects.filter(user=person, kind=kind).order_by("-pk")[:1]:
            if known.state == RequestState.OPEN or known.is_ready(now):
                return known
        made = DataRequest(user=person, person=person.public_id, kind=kind, asked_at=now)
        made.due_at = now + timedelta(days=settings.DATA_REQUEST_DAYS)
        if kind == RequestKind.COPY:
            made.state, made.ended_at, made.expires_at = RequestState.DONE, now, now + COPY_KEPT
        made.save()
        record(Verb.DATA_REQUESTED, by=person, target=made.public_id, details={"kind": str(kind)})
    return made


def get_request(person: User, public_id: str) -> DataRequest:
    """NotFound for everybody but who asked it."""
    found = DataRequest.objects.filter(user=person, public_id=public_id).first()
    if found is None:
        raise NotFound(_("This request does not exist, or you do not have access to it."))
    return found


def get_copy(person: User, public_id: str, *, now: datetime) -> DataRequest:
    """One that can be fetched. NotFound else."""
    found = get_request(person, public_id)
    if not found.is_ready(now):
        raise NotFound(_("This copy can no longer be downloaded. Ask for a new one."))
    return found


def withdraw(request: DataRequest, *, by: User, now: datetime) -> DataRequest:
    """Conflict where it has ended already."""
    return end(request, RequestState.WITHDRAWN, by=by, now=now)


def refuse(request: DataRequest, *, reason: str, by: User, now: datetime) -> DataRequest:
    """The person reads the reason with the request, and by mail. Raises Invalid without one, Conflict as above."""
    reason = reason.strip()
    if not reason:
        raise Invalid(fields={"reason": _("Must not be empty.")})
    with transaction.atomic():
        ended = end(request, RequestState.REFUSED, by=by, now=now, reason=reason)
        if ended.user is not None:
            with speaking_to(ended.user):
                said = _("Your account and your data are not deleted. The reason:\n\n%(reason)s\n")
                tell(ended.user.email, said % {"reason": reason})
    return ended


def end(
    request: DataRequest, state: RequestState, *, by: User | None, now: datetime, reason: str = ""
) -> DataRequest:
    """Of one that is open: two at once end it once. Raises Conflict for the other."""
    with transaction.atomic():
        held = DataRequest.objects.select_for_update(of=("self",)).select_related("user")
        locked = held.filter(pk=request.pk, state=RequestState.OPEN).first()
        if locked is None:
            raise Conflict(_("This request is no longer open."))
        locked.state, locked.reason, locked.ended_at, locked.ended_by = state, reason, now, by
        locked.save(update_fields=["state", "reason", "ended_at", "ended_by"])
        record(
            Verb.DATA_REQUEST_ENDED,
            by=by,
            target=locked.public_id,
            details={"kind": locked.kind, "state": str(state)},
        )
    return locked


def tell(address: str, text: str) -> None:
    mail.send(_("Your request for your data"), text, [address] if address else [])
