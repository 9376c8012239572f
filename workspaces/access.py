"""Load what a person may see, or say that it is not there. Pages and API both begin here."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from memoryhub.database.queries import Ready
from memoryhub.database.replicas import pin_to_primary
from memoryhub.errors import Conflict, Forbidden, NotFound
from memoryhub.ids import PATTERN
from workspaces.models import Membership, Role, User, Workspace

_WORKSPACE = Ready(
    lambda user, public_id: Workspace.objects.visible_to(User(pk=user)).filter(public_id=public_id),
    user=int,
    public_id=str,
)
_DEFAULT = Ready(lambda user: Workspace.objects.visible_to(User(pk=user)).filter(default_of=user), user=int)


def get_workspace(user: User, public_id: str, *, need: Role = Role.VIEWER) -> Workspace:
    """The workspace with its ``role`` for this person. NotFound for strangers, Forbidden below ``need``."""
    workspace = _WORKSPACE.first(user=user.pk, public_id=public_id)
    if workspace is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    require(workspace.role, need)
    return workspace


def named_workspace(user: User, public_id: str, *, need: Role = Role.VIEWER) -> Workspace:
    """The same for an id from a query or a body, which no route has looked at."""
    if not PATTERN.fullmatch(public_id):
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    return get_workspace(user, public_id, need=need)


def workspaces_of(user: User) -> list[Workspace]:
    """All that they are a member of, each with their ``role``, by name."""
    return list(Workspace.objects.visible_to(user))


def whose_own(workspaces: Iterable[Workspace], user: User) -> dict[int, str]:
    """Return the owners of those workspaces that are somebody else's own: all of them begin with one name. No query
    where there is none, which is nearly always.
    """
    others = {each.default_of_id: each.pk for each in workspaces if each.default_of_id not in (None, user.pk)}
    return (
        {others[person.pk]: person.shown_name for person in User.objects.filter(pk__in=others)}
        if others
        else {}
    )


def require(role: str, need: Role) -> None:
    """Forbidden, with a sentence, when ``role`` allows less than ``need``."""
    if not Role(role).allows(need):
        raise Forbidden(
            _("You need the role %(need)s for this; yours here is %(role)s.")
            % {"need": need.label, "role": Role(role).label}
        )


def lock_to_count(whose: User | Workspace) -> None:
    """Before counting what there may be at most: of two requests at once the second waits, and counts the first's."""
    rows = whose.__class__.objects.select_for_update(of=("self",), no_key=True)
    if rows.filter(pk=whose.pk).first() is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))


def lock_as_editor(workspace: Workspace, by: User) -> None:
    """The right, asked under a lock: who is being removed, or deletes the workspace, waits or is waited for."""
    membership = Membership.objects.select_for_update().filter(workspace=workspace, user=by).first()
    if membership is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    require(membership.role, Role.EDITOR)


def role_in(user: User, workspace: Workspace) -> Role | None:
    role = Membership.objects.filter(user=user, workspace=workspace).values_list("role", flat=True).first()
    return Role(role) if role else None


def default_workspace(user: User) -> Workspace:
    """The person's own workspace, made on first sight. Two requests at once make one."""
    workspace = _DEFAULT.first(user=user.pk)
    if workspace is None:
        with suppress(IntegrityError), transaction.atomic():  # refused: the other request was first
            made = Workspace.objects.create(name="Personal", default_of=user)
            Membership.objects.create(workspace=made, user=user, role=Role.OWNER)
        pin_to_primary(user.pk)  # in requests that only read, too
        workspace = Workspace.objects.visible_to(user).get(default_of=user)
    return workspace


def personal_place(user: User, *, said_in: Workspace, stays_here: bool = False) -> Workspace:
    """Return the workspace that holds what a person says in a private chat of ``said_in``: their own.

    Conflict if texts of ``said_in`` never leave this machine and those of their own may. ``stays_here``: it rests
    on text of another workspace for which that is so.
    """
    own = default_workspace(user)
    if stays_here and not own.local_only:
        raise Conflict(
            _(
                "This rests on text that never leaves this machine, and your personal workspace may send its own "
                "elsewhere. Nothing of it is kept until you turn the same setting on there."
            ),
            code="would_leave",
        )
    if said_in.local_only and not own.local_only:
        raise Conflict(
            _(
                "This workspace keeps everything on this machine, and your personal workspace does not. "
                "Nothing from a private chat here is remembered until you turn the same setting on there."
            ),
            code="would_leave",
        )
    return own
