"""Access checks: load what a user may see, or raise NotFound. Used by pages and API."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from memoryhub.database.queries import PreparedQuery
from memoryhub.database.replicas import pin_to_primary
from memoryhub.errors import Conflict, Forbidden, NotFound
from memoryhub.ids import PATTERN
from workspaces.audit import Verb, record
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.models import Artifact, Document, Membership, OwnedQuerySet, Role, User, Workspace

_WORKSPACE = PreparedQuery(
    lambda user, public_id: Workspace.objects.visible_to(User(pk=user)).filter(public_id=public_id),
    user=int,
    public_id=str,
)
DEFAULT_NAME = "Personal"
_DEFAULT = PreparedQuery(
    lambda user: Workspace.objects.visible_to(User(pk=user)).filter(default_of=user), user=int
)


def get_workspace(user: User, public_id: str, *, need: Role = Role.VIEWER) -> Workspace:
    """Return the workspace with this public id. Its ``role`` is the person's role in it.

    Raises NotFound if the person is no member, Forbidden if their role is below ``need``.
    """
    workspace = _WORKSPACE.first(user=user.pk, public_id=public_id)
    if workspace is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    require(workspace.role, need)
    return workspace


def named_workspace(user: User, public_id: str, *, need: Role = Role.VIEWER) -> Workspace:
    """Return the workspace with this public id, which may be malformed because no URL converter has checked it.

    Raises NotFound for a malformed or unknown id or if the user is no member, Forbidden if their role is below
    ``need``.
    """
    if not PATTERN.fullmatch(public_id):
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    return get_workspace(user, public_id, need=need)


def workspaces_of(user: User) -> list[Workspace]:
    """Return the workspaces of which this user is a member, by name, each with the user's ``role``."""
    return list(Workspace.objects.visible_to(user))


def owners_of_personal(workspaces: Iterable[Workspace], user: User) -> dict[int, str]:
    """Return the owners' names of other people's personal workspaces, by the workspace's primary key.

    All personal workspaces have the same name, so lists show the owner's name too. Runs no query if ``workspaces`` has
    none of them.
    """
    others = {each.default_of_id: each.pk for each in workspaces if each.default_of_id not in (None, user.pk)}
    return (
        {others[person.pk]: person.shown_name for person in User.objects.filter(pk__in=others)}
        if others
        else {}
    )


def require(role: str, need: Role) -> None:
    """Raise Forbidden if ``role`` is below ``need``."""
    if not Role(role).allows(need):
        raise Forbidden(
            _("You need the role %(need)s for this; yours here is %(role)s.")
            % {"need": need.label, "role": Role(role).label}
        )


def lock_to_count(whose: User | Workspace) -> None:
    """Lock this user or workspace before counting its rows, so that concurrent requests cannot exceed a limit.

    Raises NotFound if it was deleted.
    """
    rows = whose.__class__.objects.select_for_update(of=("self",), no_key=True)
    if rows.filter(pk=whose.pk).first() is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))


def lock_as_editor(workspace: Workspace, by: User) -> None:
    """Lock the user's membership, so that it cannot be removed before the commit.

    Raises NotFound if the user is no member, Forbidden for a viewer.
    """
    membership = Membership.objects.select_for_update().filter(workspace=workspace, user=by).first()
    if membership is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    require(membership.role, Role.EDITOR)


def role_in(user: User, workspace: Workspace) -> Role | None:
    role = Membership.objects.filter(user=user, workspace=workspace).values_list("role", flat=True).first()
    return Role(role) if role else None


def default_workspace(user: User) -> Workspace:
    """Return the person's personal workspace, created on first use. Concurrent requests create only one."""
    workspace = _DEFAULT.first(user=user.pk)
    if workspace is None:
        with suppress(IntegrityError), transaction.atomic():  # refused if another request created it first
            new_workspace = Workspace.objects.create(name=DEFAULT_NAME, default_of=user)
            Membership.objects.create(workspace=new_workspace, user=user, role=Role.OWNER)
        pin_to_primary(user.pk)  # also in GET requests, which may read from a replica
        workspace = Workspace.objects.visible_to(user).get(default_of=user)
    return workspace


def personal_place(user: User, *, said_in: Workspace, stays_here: bool = False) -> Workspace:
    """Return the user's personal workspace, in which a new personal item is stored.

    ``said_in``: the workspace of the chat or form that the item comes from. ``stays_here``: the item is based on text
    of another workspace that is local-only. Texts of a local-only workspace never leave this machine. So Conflict is
    raised if ``said_in`` is local-only or ``stays_here`` is True, and the personal workspace is not local-only.
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


Owned = TypeVar("Owned", Document, Artifact)


def get_owned(
    rows: OwnedQuerySet[Owned],
    user: User,
    public_id: str,
    *,
    workspace: Workspace | None,
    need: Role,
    or_deleted: bool,
) -> Owned | None:
    """Return the document or artifact in ``rows`` with this public id, or None if the user may not see it.

    ``workspace``: if given, the item must be shared there, or be one of the user's personal items, which are visible in
    all their workspaces. ``or_deleted``: include soft-deleted items. Sets the user's role as ``role`` on the item and
    on its workspace. Raises Forbidden if the role is below ``need``.
    """
    queryset = rows.visible_to(user).select_related("workspace", "created_by")
    if workspace is not None:
        queryset = within_policy(queryset, workspace, user, DataPolicy.here(workspace))
    one = (queryset if or_deleted else queryset.live()).filter(public_id=public_id).first()
    if one is not None:
        require(one.role, need)
        one.workspace.role = one.role
    return one


def home(workspace: Workspace, by: User, *, personal: bool) -> tuple[Workspace, User | None]:
    """Return the workspace that stores a new document or artifact, and the item's owner.

    A shared item is stored in ``workspace`` and has no owner (None). A personal item belongs to ``by`` and is stored in
    their personal workspace. Raises Conflict if its text may not leave ``workspace`` (see ``personal_place``).
    """
    return (personal_place(by, said_in=workspace), by) if personal else (workspace, None)


def require_right_to_move(item: Document | Artifact, to: Workspace, owner: User | None, by: User) -> None:
    """Check that ``by`` may move the document or artifact ``item`` to the workspace ``to``.

    ``owner``: the only person who may see it after the move, None if it is shared. Raises Forbidden if other members
    would lose access to it, unless ``by`` is the editor who added it or owns its present workspace. Raises Conflict if
    it would leave a local-only workspace for one that is not local-only.
    """
    is_withdrawn = item.owner_id is None and (owner is not None or to != item.workspace)
    if is_withdrawn and not may_move_away(item, by, role_in(by, item.workspace)):
        raise Forbidden(_("Only the person who added it or an owner of the workspace can move it."))
    require_stays_local(item.workspace, to)


def require_stays_local(current: Workspace, to: Workspace) -> None:
    """Raise Conflict if ``current`` is local-only, so that its texts never leave this machine, and ``to`` is not."""
    if current.local_only and not to.local_only:
        raise Conflict(
            _("It belongs to a workspace that keeps everything on this machine, and “%(name)s” does not.")
            % {"name": to.name},
            code="would_leave",
        )


def lock_owned(rows: OwnedQuerySet[Owned], item: Owned, by: User) -> Owned | None:
    """Lock the document or artifact ``item`` until the commit, and return its current row.

    Returns None if it was moved, or is no longer in ``rows``, since it was loaded. Also locks the user's membership in
    its workspace. Raises NotFound if they are no member, Forbidden if they are a viewer.
    """
    lock_as_editor(item.workspace, by)
    there = rows.filter(pk=item.pk, workspace=item.workspace_id, owner=item.owner_id)
    return there.select_for_update(of=("self",)).select_related("workspace").first()


def lock_places(by: User, *places: Workspace) -> None:
    """Lock the user's membership in each of these workspaces until the commit.

    Locks in the order of the primary keys, so that concurrent moves do not deadlock. Raises NotFound if the user is no
    member of one, Forbidden if they are a viewer there.
    """
    for place in sorted(set(places), key=lambda each: each.pk):
        lock_as_editor(place, by)


def may_move_away(item: Document | Artifact, by: User, role: str | None) -> bool:
    """Return whether this person may remove a document or artifact from its workspace.

    Its creator may while they are an editor, and so may the workspace's owners. ``role``: the person's role there.
    """
    if role is None or not Role(role).allows(Role.EDITOR):
        return False
    return role == Role.OWNER or item.created_by_id == by.pk


def require_right_to_forget(item: Document | Artifact, by: User) -> None:
    if not may_move_away(item, by, role_in(by, item.workspace)):
        raise Forbidden(
            _("Only the person who added it or an owner of the workspace can delete it for good.")
        )


def record_in_audit_log(verb: Verb, item: Document | Artifact, by: User, **details: Any) -> None:
    """Record an action on a document or artifact in the audit log.

    If the item is personal, leave the workspace out, because its owners read that log.
    """
    workspace = item.workspace if item.owner_id is None else None
    record(verb, by=by, workspace=workspace, target=item.public_id, details=details or None)
