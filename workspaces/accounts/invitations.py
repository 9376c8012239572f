"""Making, revoking and accepting invitations to a workspace. Only its owners invite.

A link's token is the invitation's id, signed with the installation's secret key. The token is not stored, so a leaked
database gives no access, and an owner can copy the link again. An invitation ends when it expires, is used up or
revoked, or when its creator is no longer an owner.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import psycopg
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryhub import mail
from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import get_workspace, role_in
from workspaces.actions.workspaces import lock
from workspaces.audit import Verb, Word, record
from workspaces.models import Invitation, Membership, Role, User, Workspace
from workspaces.quotas import DAY, spend

SALT = "memoryhub.invitation"
MOST_OPEN = 50  # of one workspace
MOST_PEOPLE = 100  # of one invitation
LONGEST = timedelta(days=30)
KEPT = timedelta(days=30)  # after its end; until then its link explains why it does not work


class Ended(Conflict):
    """Raised for an invitation that has ended. The message says why, and what the person can do."""

    status, code = 410, "invitation_ended"


def open_invitations(workspace: Workspace, *, now: datetime) -> QuerySet[Invitation]:
    """Return the workspace's invitation links that still work. One query."""
    invitations = Invitation.objects.filter(
        workspace=workspace, user=None, revoked_at=None, expires_at__gt=now
    )
    return invitations.filter(used__lt=F("most")).select_related("created_by")


def create_invitation(
    workspace: Workspace, *, role: str, most: int, lasts: timedelta, by: User, now: datetime, email: str = ""
) -> Invitation:
    """Create an invitation link, valid for the time ``lasts`` and for at most ``most`` people. Owners only.

    An invitation to an ``email`` address is for one person. Raises Invalid for an invalid value, Conflict if
    ``MOST_OPEN`` invitations are open, and TooManyRequests above the rate limit.
    """
    workspace = get_workspace(by, workspace.public_id, need=Role.OWNER)
    email = email.strip()
    _check(role, 1 if email else most, lasts, email)
    spend("invitations", by, now=now)
    if email:
        spend("invitation mails", by, now=now, per=DAY)
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=workspace.pk)
        if open_invitations(workspace, now=now).count() >= MOST_OPEN:
            raise Conflict(
                _("%d invitations are open, which is as many as there can be. Revoke one first.") % MOST_OPEN
            )
        invitation = Invitation.objects.create(
            workspace=workspace,
            role=role,
            most=1 if email else most,
            email=email,
            created_by=by,
            created_at=now,
            expires_at=now + lasts,
        )
        details: dict[str, Word] = {"role": role, "people": invitation.most, "by_mail": bool(email)}
        record(Verb.INVITATION_MADE, by=by, workspace=workspace, target=invitation.public_id, details=details)
    return invitation


def send_by_mail(invitation: Invitation, *, link: str) -> None:
    by = invitation.created_by
    names = dict.fromkeys(mail.as_name(name) for name in (by.get_username(), by.shown_name))
    text = _(
        "Hello,\n\n"
        "You are invited to a workspace of a MemoryHub.\n\n"
        "Invited by: %(by)s\n"
        "Workspace: %(workspace)s\n\n"
        "Open this link to join:\n\n"
        "%(link)s\n\n"
        "It is for you alone and works until %(until)s UTC. The names above are as people typed them. If you do not\n"
        "know who invites you, leave it: without the link nothing happens.\n"
    ) % {
        "by": " · ".join(names),
        "workspace": mail.as_name(invitation.workspace.name),
        "link": link,
        "until": f"{invitation.expires_at:%Y-%m-%d %H:%M}",
    }
    mail.send(_("An invitation to a MemoryHub"), text, [invitation.email])


def revoke_invitation(workspace: Workspace, public_id: str, *, by: User, now: datetime) -> None:
    """Revoke an invitation. Owners only. People who already joined stay members."""
    workspace = get_workspace(by, workspace.public_id, need=Role.OWNER)
    with transaction.atomic():
        invitations = Invitation.objects.select_for_update(of=("self",)).filter(workspace=workspace)
        held = invitations.filter(public_id=public_id).first()
        if held is None:
            raise _none()
        if held.revoked_at is None:
            held.revoked_at = now
            held.save(update_fields=["revoked_at"])
            record(Verb.INVITATION_REVOKED, by=by, workspace=workspace, target=held.public_id)


def link_token(invitation: Invitation) -> str:
    """Return the token at the end of an invitation's link."""
    return signing.Signer(salt=SALT, sep=".").sign(invitation.public_id)


def read_link(token: str, *, by: int | None, now: datetime) -> Invitation:
    """Return the open invitation with this token. Members of the workspace also get an invitation that has ended.

    ``by``: primary key of the person who opens the link; None for a visitor who is not signed in.
    Raises NotFound if the token is invalid or the invitation was deleted, and Ended if the invitation has ended.
    """
    try:
        public_id = signing.Signer(salt=SALT, sep=".").unsign(token)
    except signing.BadSignature:
        raise NotFound(_unreadable()) from None
    links = Invitation.objects.filter(user=None).select_related("workspace", "created_by")
    invitation = links.filter(public_id=public_id).first()
    if invitation is None:
        raise NotFound(_unreadable())
    if not Membership.objects.filter(workspace=invitation.workspace_id, user=by).exists():
        _require_open(invitation, now)
    return invitation


def accept(token: str, *, by: User, now: datetime) -> Membership:
    """Join the workspace by an invitation link. Return the membership.

    Members keep their role and do not use up the invitation. Raises NotFound if the token is invalid or the invitation
    was deleted, TooManyRequests, and Ended if the invitation has ended. Also raises Ended for a person who used it
    before, or who was removed or given a lesser role after it was made. Only a new invitation lets them in.
    """
    spend("invitations", by, now=now)
    unlocked = read_link(token, by=by.pk, now=now)
    with transaction.atomic():
        # Lock the workspace first, as every change of members does, then check again.
        Workspace.objects.select_for_update().filter(pk=unlocked.workspace_id).first()
        mine = (
            Membership.objects.filter(workspace=unlocked.workspace_id, user=by)
            .select_related("workspace")
            .first()
        )
        if mine is not None:
            return mine
        held = Invitation.objects.select_related("workspace", "created_by").select_for_update(of=("self",))
        invitation = held.filter(pk=unlocked.pk).first()
        if invitation is None:
            raise NotFound(_unreadable())
        _require_open(invitation, now)
        if by.pk in invitation.used_by:
            text = _(
                "You can no longer use this invitation: you have used it already, or an owner has "
                "removed you since it was made. Ask %s for a new one."
            )
            raise Ended(text % invitation.created_by.shown_name)
        membership = Membership.objects.create(workspace=invitation.workspace, user=by, role=invitation.role)
        invitation.used += 1
        invitation.used_by.append(by.pk)
        invitation.save(update_fields=["used", "used_by"])
        words = {"role": invitation.role, "invitation": invitation.public_id}
        record(Verb.MEMBER_JOINED, by=by, workspace=invitation.workspace, target=by.public_id, details=words)
    return membership


def sweep(*, now: datetime) -> int:
    """Delete the invitations that ended more than ``KEPT`` ago. Return the number deleted."""
    return Invitation.objects.filter(expires_at__lt=now - KEPT).delete()[0]


def close_again(newer: psycopg.Connection[Any], say: Callable[[str], None]) -> None:
    """Revoke the invitations in a restored backup that had ended or been used after the backup was made.

    ``newer``: connection to the database before the restore; Django's connection is to the restored one. ``say``:
    prints a line. An invitation that stayed open could let in a person who had used it and was then removed.
    """
    rows = newer.execute(
        "SELECT public_id, used_by FROM workspaces_invitation WHERE revoked_at IS NULL AND used < most"
    ).fetchall()
    left, closed = dict(rows), 0
    for invitation in Invitation.objects.filter(revoked_at=None, used__lt=F("most")):
        if left.get(invitation.public_id) != invitation.used_by:
            closed += Invitation.objects.filter(pk=invitation.pk).update(revoked_at=timezone.now())
    say(f"{closed} invitations were ended or used since: closed")


def _check(role: str, most: int, lasts: timedelta, email: str) -> None:
    wrong: dict[str, str] = {}
    if role not in Role.values:
        wrong["role"] = _("Must be one of %s.") % ", ".join(Role.values)
    elif role == Role.OWNER and most != 1:
        wrong["most"] = _("An invitation to be an owner is for one person only.")
    if not 1 <= most <= MOST_PEOPLE:
        wrong["most"] = _("Must be from %(least)d to %(most)d.") % {"least": 1, "most": MOST_PEOPLE}
    if not timedelta(0) < lasts <= LONGEST:
        wrong["lasts"] = _("At most %d days.") % LONGEST.days
    if email:
        try:
            validate_email(email)
        except ValidationError as error:
            wrong["email"] = error.messages[0]
        if not mail.is_set():
            wrong["email"] = _("No mail can be sent here: pass on the link yourself.")
    if wrong:
        raise Invalid(fields=wrong)


def _require_open(invitation: Invitation, now: datetime) -> None:
    by = invitation.created_by.shown_name
    if invitation.revoked_at is not None:
        raise Ended(_("This invitation has been withdrawn. If that surprises you, ask %s.") % by)
    if invitation.expires_at <= now:
        raise Ended(_("This invitation has expired. Ask %s for a new one.") % by)
    if invitation.used >= invitation.most:
        text = _(
            "This invitation has been used. If it was meant for you and you did not use it, tell %s at once: "
            "someone else has."
        )
        raise Ended(text % by)
    maker = Membership.objects.filter(workspace=invitation.workspace_id, user=invitation.created_by).first()
    if maker is None or maker.role != Role.OWNER or not invitation.created_by.is_active:
        raise Ended(
            _("%s, who made this invitation, can no longer invite. Ask another owner of the workspace.") % by
        )


def _unreadable() -> str:
    return _(
        "This link is not an invitation here, or it ended long ago. Check that you have all of it, "
        "or ask for a new one."
    )


# Invitations to one user, who sees nothing of the workspace before accepting.

PAUSE = timedelta(days=1)  # after a person declined


def open_user_invitations(workspace: Workspace, *, now: datetime) -> QuerySet[Invitation]:
    """Return a workspace's open invitations to existing users, oldest first."""
    return _open(now).filter(workspace=workspace).select_related("user").order_by("created_at", "id")


def invitations_of(user: User, *, now: datetime) -> QuerySet[Invitation]:
    """Return the invitations that this user may accept, each with its workspace and inviter."""
    inviting = Membership.objects.filter(
        workspace=OuterRef("workspace"), user=OuterRef("created_by"), role=Role.OWNER, user__is_active=True
    )
    member = Membership.objects.filter(workspace=OuterRef("workspace"), user=user)
    rows = _open(now).filter(Exists(inviting), ~Exists(member), user=user)
    return rows.exclude(used_by__contains=[user.pk]).select_related("workspace", "created_by", "user")


def invite(workspace: Workspace, *, user: User, role: str, by: User, now: datetime) -> Invitation:
    """Invite a user to become a member. Owners only.

    Raises Invalid for an invalid role or an inactive user. Raises Conflict if the user is a member, is already invited,
    or declined within the last day.
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
        invited = open_user_invitations(workspace, now=now).filter(user=user)
        if invited.exclude(used_by__contains=[user.pk]).exists():
            raise Conflict(_("%s is already invited.") % user.get_username(), code="already_invited")
        declined = Invitation.objects.filter(workspace=workspace, user=user, declined_at__gt=now - PAUSE)
        if declined.exists():
            message = _("%s declined an invitation. You can invite them again a day later.")
            raise Conflict(message % user.get_username(), code="declined")
        invitation = Invitation.objects.create(
            workspace=workspace, user=user, role=role, created_by=by, created_at=now, expires_at=now + LONGEST
        )
        _record_in_audit_log(Verb.INVITATION_MADE, invitation, by)
    return invitation


def accept_invited(*, by: User, now: datetime, **which: Any) -> Membership:
    """Accept an invitation to this user, and return the membership. Raises NotFound if none is open.

    ``which``: lookups that select the invitation.
    """
    with transaction.atomic():
        invitation = _lock(by, now, which)
        membership = Membership.objects.create(workspace=invitation.workspace, user=by, role=invitation.role)
        invitation.used = 1
        invitation.used_by.append(by.pk)
        invitation.save(update_fields=["used", "used_by"])
        _record_in_audit_log(Verb.MEMBER_JOINED, invitation, by)
    return membership


def close_user_invitation(*, by: User, now: datetime, **which: Any) -> None:
    """Decline an invitation to oneself, or as an owner withdraw one. Raises NotFound if it is not open.

    ``which``: lookups that select the invitation.
    """
    with transaction.atomic():
        invitation = (
            _open(now).filter(**which).select_for_update(of=("self",)).select_related("workspace").first()
        )
        mine = invitation is not None and invitation.user_id == by.pk
        if invitation is None or not (mine or role_in(by, invitation.workspace) == Role.OWNER):
            raise _none()
        invitation.revoked_at, invitation.declined_at = now, now if mine else None
        invitation.save(update_fields=["revoked_at", "declined_at"])
        _record_in_audit_log(Verb.INVITATION_DECLINED if mine else Verb.INVITATION_REVOKED, invitation, by)


def _open(now: datetime) -> QuerySet[Invitation]:
    return Invitation.objects.filter(
        user__isnull=False, revoked_at=None, expires_at__gt=now, used__lt=F("most")
    )


def _lock(by: User, now: datetime, which: dict[str, Any]) -> Invitation:
    """Return the invitation that the lookups ``which`` select, with its row locked.

    The workspace is locked first, as for every change of members, so that concurrent removals and joins wait for each
    other.
    """
    invitation = invitations_of(by, now=now).filter(**which).first()
    if invitation is None:
        raise _none()
    lock(invitation.workspace)
    locked = invitations_of(by, now=now).filter(pk=invitation.pk).select_for_update(of=("self",)).first()
    if locked is None:
        raise _none()
    return locked


def _record_in_audit_log(verb: Verb, invitation: Invitation, by: User) -> None:
    details = {"role": invitation.role, "person": invitation.user.public_id if invitation.user else ""}
    record(verb, by=by, workspace=invitation.workspace, target=invitation.public_id, details=details)


def _none() -> NotFound:
    return NotFound(_("This invitation does not exist, or it ended long ago."))
