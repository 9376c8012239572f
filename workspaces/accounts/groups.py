"""Memberships and staff rights granted by groups of the identity provider or of the directory.

They are updated at each single sign-on and at each change by the directory. A role that a person changed by hand since
is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from memoryhub.errors import Conflict
from workspaces.actions.workspaces import lock, lost_right, record_member, refuse_to_lose
from workspaces.audit import Verb, record
from workspaces.models import DirectoryGroup, GroupGrant, Membership, Role, User, Workspace

logger = logging.getLogger(__name__)
MOST_GROUPS = 2000  # read from one claim; further groups are ignored
STAFF = "staff"


def groups_in(claims: Mapping[str, Any]) -> list[str] | None:
    """Return the groups in the provider's claims that the settings map to rights.

    Returns None if the provider left the groups out, as some do for long lists; rights must not change then.
    """
    name = settings.SSO_GROUPS_CLAIM
    for said in (claims.get("userinfo"), claims.get("id_token"), claims):
        if isinstance(said, Mapping) and name in said:
            found = said[name]
            named = {found} if isinstance(found, str) else set(_words(found))
            return sorted(named & settings.SSO_GROUPS.keys())
        if isinstance(said, Mapping) and name in (said.get("_claim_names") or ()):
            logger.warning(
                "Single sign-on left out somebody's groups, since they are many: nothing was changed."
            )
            return None
    return []


def of_directory(person: User) -> list[str]:
    """Return the person's groups in the directory (``workspaces.accounts.provisioning``) that the settings map to
    rights.
    """
    said = DirectoryGroup.objects.filter(members=person, name__in=settings.SSO_GROUPS)
    return list(said.values_list("name", flat=True))


def apply_groups(person: User, groups: Collection[str]) -> None:
    """Grant the rights of these groups, and revoke rights that only the previous groups granted.

    Atomic and idempotent.
    """
    given = [place for group in groups for place in settings.SSO_GROUPS.get(group, ())]
    roles: dict[str, Role] = {}
    for workspace_id, _, role in (place.partition(":") for place in given if place != STAFF):
        roles[workspace_id] = max(Role(role), roles.get(workspace_id, Role(role)), key=lambda each: each.rank)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=person.pk)
        grants = {grant.workspace_id: grant for grant in GroupGrant.objects.filter(user=person)}
        _staff(person, STAFF in given, grants.pop(None, None))
        places = Workspace.objects.filter(Q(public_id__in=roles) | Q(pk__in=grants)).order_by("pk")
        for workspace in places:
            _place(workspace, person, roles.get(workspace.public_id), grants.get(workspace.pk))


def _words(found: object) -> list[str]:
    return [each for each in found[:MOST_GROUPS] if isinstance(each, str)] if isinstance(found, list) else []


def _staff(person: User, wanted: bool, grant: GroupGrant | None) -> None:
    if wanted == (grant is not None) or (wanted and person.is_staff):
        return
    if grant is None:
        GroupGrant.objects.create(user=person, workspace=None)
    else:
        grant.delete()
    if not person.is_superuser and person.is_staff != wanted:
        person.is_staff = wanted
        person.save(update_fields=["is_staff"])
        record(Verb.RIGHTS_CHANGED, by=None, target=person.public_id, details={"fields": ["is_staff"]})


def _place(workspace: Workspace, person: User, role: Role | None, grant: GroupGrant | None) -> None:
    lock(workspace)
    member = Membership.objects.filter(workspace=workspace, user=person).first()
    if grant is None:
        if role is not None and member is None:
            Membership.objects.create(workspace=workspace, user=person, role=role)
            GroupGrant.objects.create(user=person, workspace=workspace, role=role)
            record_member(Verb.MEMBER_ADDED, workspace, person, None, role=role, given_by="group")
    elif member is None or member.role != grant.role:  # a person changed the role by hand since
        if role is None:
            grant.delete()
    elif role != member.role:
        _change(workspace, member, role, grant)


def _change(workspace: Workspace, member: Membership, role: Role | None, grant: GroupGrant) -> None:
    had = Role(member.role)
    try:
        if role != Role.OWNER:
            refuse_to_lose(workspace, member)
    except Conflict:
        logger.warning(
            "Somebody left a group, and stays the only owner of a workspace that it made them one of."
        )
        return
    if role is None:
        member.delete()
        grant.delete()
        record_member(Verb.MEMBER_REMOVED, workspace, member.user, None, role=had, given_by="group")
    else:
        member.role = grant.role = role
        member.save(update_fields=["role"])
        grant.save(update_fields=["role"])
        record_member(
            Verb.ROLE_CHANGED, workspace, member.user, None, role=role, before=had, given_by="group"
        )
    if role is None or not role.allows(had):
        lost_right(workspace, member.user, None, had=had)
