"""Changes by the directory to groups: their members, and so the rights of these people in workspaces."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.db import connection, transaction

from memoryhub.ids import PATTERN
from workspaces.accounts.groups import apply_groups, of_directory
from workspaces.models import DirectoryGroup, User
from workspaces.scim.errors import ScimError
from workspaces.scim.reading import Group

_LOCK = 7_640_031  # one after the other: two groups may have the same people, and give the same workspaces


def group_with(public_id: str) -> DirectoryGroup:
    group = (
        DirectoryGroup.objects.filter(public_id=public_id).first() if PATTERN.fullmatch(public_id) else None
    )
    if group is None:
        raise ScimError(404, "There is no such group.")
    return group


def make_group(wanted: Group) -> DirectoryGroup:
    with transaction.atomic():
        _lock()
        return _put(DirectoryGroup(), Group(), wanted)


def change_group(public_id: str, change: Callable[[Group], Group | None]) -> None:
    """None: it goes. In one transaction with what becomes of its people, so a directory may just send it again."""
    with transaction.atomic():
        _lock()
        group = group_with(public_id)
        members = group.members.values_list("public_id", flat=True)
        before = Group(group.name, group.external_id, frozenset(members))
        wanted = change(before)
        if wanted is not None:
            _put(group, before, wanted)
        else:
            group.delete()
            _bring_up_to_date(before, Group())


def _put(group: DirectoryGroup, before: Group, wanted: Group) -> DirectoryGroup:
    if not wanted.name:
        raise ScimError(400, "displayName is required.", "invalidValue")
    if DirectoryGroup.objects.filter(name__iexact=wanted.name).exclude(pk=group.pk).exists():
        raise ScimError(409, "There is a group of this name.", "uniqueness")
    group.name, group.external_id = wanted.name, wanted.external_id
    group.save()
    group.members.remove(*_people(before.members - wanted.members))
    come = _people(wanted.members - before.members)
    if len(come) < len(wanted.members - before.members):
        raise ScimError(400, "There is no such user among the members.", "invalidValue")
    group.members.add(*come)
    _bring_up_to_date(before, wanted)
    return group


def _bring_up_to_date(before: Group, now: Group) -> None:
    """Update the people who came or left, and all of them if the group is renamed."""
    if not {before.name, now.name} & settings.SSO_GROUPS.keys():
        return
    changed = before.members ^ now.members if before.name == now.name else before.members | now.members
    for person in _people(changed):
        apply_groups(person, of_directory(person))


def _people(public_ids: frozenset[str]) -> list[User]:
    return list(User.objects.filter(public_id__in=public_ids).order_by("pk"))


def _lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
