"""Groups of the identity provider, by a real sign-in: they grant, change and revoke only their own roles."""

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from memoryhub.environment import Environment
from tests.conftest import Cast
from tests.factories import add_member, make_invitation
from tests.workspaces.accounts.test_single_sign_on import go, provider, signed_in_as, single_sign_on
from workspaces.accounts.single_sign_on import groups_in
from workspaces.actions import workspaces as actions
from workspaces.models import AuditEvent, GroupGrant, Invitation, Membership, User, Workspace

__all__ = ["provider", "single_sign_on"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def mapped(cast: Cast, single_sign_on: str, settings: Any) -> Cast:
    ws = cast.workspace.public_id
    settings.SSO_GROUPS_CLAIM = "groups"
    settings.SSO_GROUPS = {
        "Readers": [f"{ws}:viewer"],
        "Writers": [f"{ws}:editor"],
        "Heads": [f"{ws}:owner"],
        "Helpdesk": ["staff"],
    }
    return cast


def come(*groups: object, sub: str = "g-1", **claims: object) -> User:
    client = Client()
    go(client, sub, preferred_username="gina", email="gina@example.org", groups=list(groups), **claims)
    name = signed_in_as(client)
    assert name == "gina"
    return User.objects.get(username=name)


def role_of(person: User, workspace: Workspace) -> str | None:
    return Membership.objects.filter(user=person, workspace=workspace).values_list("role", flat=True).first()


def test_each_sign_in_adds_changes_and_takes_away_what_groups_gave(mapped: Cast) -> None:
    ws = mapped.workspace
    gina = come("Readers", "Strangers", 7, None)
    assert (role_of(gina, ws), gina.is_staff) == ("viewer", False)
    gina = come("Readers", "Writers", "Helpdesk")
    assert (role_of(gina, ws), gina.is_staff) == ("editor", True)
    gina = come("Readers")
    assert (role_of(gina, ws), gina.is_staff) == ("viewer", False)
    gina = come()
    assert role_of(gina, ws) is None
    assert not GroupGrant.objects.exists()
    noted = AuditEvent.objects.filter(target=gina.public_id, by_id="").order_by("pk")
    assert sorted(noted.values_list("verb", flat=True)) == sorted(
        ["member_added", "member_removed", *["role_changed", "rights_changed"] * 2]
    )


def test_what_people_decide_stays(mapped: Cast) -> None:
    ws, gina = mapped.workspace, come("Writers")
    actions.change_role(ws, user=gina, role="viewer", by=mapped.owner)
    assert role_of(come("Writers"), ws) == "viewer"
    assert role_of(come(), ws) == "viewer", "an owner has chosen it"
    actions.remove_member(ws, user=gina, by=mapped.owner)
    come("Writers")
    actions.remove_member(ws, user=gina, by=mapped.owner)
    assert role_of(come("Writers"), ws) is None, "removed, and not let in by the same group again"
    come()
    assert role_of(come("Writers"), ws) == "editor", "left the group, and joined it anew"
    actions.remove_member(ws, user=gina, by=mapped.owner)
    come()
    add_member(ws, user=gina, role="editor", by=mapped.owner)
    assert role_of(come("Readers"), ws) == "editor"
    assert role_of(come(), ws) == "editor"
    User.objects.filter(pk=gina.pk).update(is_staff=True)
    come("Helpdesk")
    assert come().is_staff, "made staff by a superuser"


def test_the_last_owner_stays_and_invitations_do_not_bring_back_who_left(mapped: Cast) -> None:
    ws, gina = mapped.workspace, come("Heads")
    Membership.objects.filter(user=mapped.owner, workspace=ws).update(role="editor")
    assert role_of(come("Readers"), ws) == "owner"
    Membership.objects.filter(user=mapped.owner, workspace=ws).update(role="owner")
    link = make_invitation(ws, mapped.owner)
    assert role_of(come(), ws) is None
    assert gina.pk in Invitation.objects.get(pk=link.pk).used_by


def test_without_a_mapping_claims_give_nothing_and_what_is_left_out_takes_nothing(
    mapped: Cast, settings: Any
) -> None:
    gina = come("Writers")
    overage = {"userinfo": {"_claim_names": {"groups": "src1"}}}
    assert groups_in(overage) is None
    assert groups_in({"userinfo": {}, "id_token": {"groups": ["Writers"]}}) == ["Writers"]
    assert groups_in({"userinfo": {"groups": "Writers"}}) == ["Writers"]
    assert groups_in({"userinfo": {"groups": {"Writers": 1}}}) == []
    settings.SSO_GROUPS = {}
    assert role_of(come(), mapped.workspace) == "editor"
    assert not AuditEvent.objects.filter(verb="member_removed", target=gina.public_id).exists()


def test_a_mapping_that_is_none_stops_the_start() -> None:
    shape = r"staff|ws_[A-Za-z0-9]{24}:(owner|editor|viewer)"
    for value in ["[]", "{", '{"a": "ws_1:editor"}', '{"a": ["superuser"]}', '{"a": [1]}', '{"a": 1}']:
        with pytest.raises(ImproperlyConfigured, match="MEMORYHUB_SSO_GROUPS"):
            Environment("MEMORYHUB_", {"MEMORYHUB_SSO_GROUPS": value}).lists("SSO_GROUPS", shape, "staff")
