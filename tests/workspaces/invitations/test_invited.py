"""A person added to a workspace is invited, and becomes a member on accepting."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.api import Api
from tests.conftest import Cast
from tests.factories import make_memory
from tests.rollback import rolled_back
from tests.signing_in import signed_in
from workspaces.accounts import invitations
from workspaces.accounts.invitations import LONGEST, link_token
from workspaces.actions.workspaces import change_role, remove_member
from workspaces.models import Invitation, Membership, User, Workspace

pytestmark = pytest.mark.django_db


def at(cast: Cast) -> str:
    return f"workspaces/{cast.workspace.public_id}"


def invite(cast: Cast, role: str = "editor") -> Any:
    return Api(cast.owner).post(f"{at(cast)}/members", {"username": "sam", "role": role})


def is_member(person: User, workspace: Workspace) -> bool:
    return Membership.objects.filter(workspace=workspace, user=person).exists()


def test_who_is_added_is_invited_and_sees_nothing_until_they_accept(cast: Cast) -> None:
    make_memory("The safe's code is in the blue book.", cast.owner, cast.workspace)
    sam, owner = Api(cast.stranger), Api(cast.owner)
    made = invite(cast)
    assert (made.status_code, made.json()["status"], made.json()["joined_at"]) == (201, "invited", None)
    assert not is_member(cast.stranger, cast.workspace)
    for path in ("", "/members", "/documents", "/memories"):
        assert sam.get(at(cast) + path).status_code == 404, path
    assert sam.post(f"{at(cast)}/search", {"query": "safe"}).status_code == 404
    assert cast.workspace.public_id not in sam.get("workspaces").content.decode()
    assert owner.get(at(cast)).json()["member_count"] == 3
    assert "sam" not in owner.get(f"{at(cast)}/members").content.decode()
    [waiting] = owner.get(f"{at(cast)}/members", status="invited").json()["items"]
    assert (waiting["username"], waiting["role"], waiting["status"]) == ("sam", "editor", "invited")
    assert Api(cast.editor).get(f"{at(cast)}/members", status="invited").status_code == 403
    [mine] = sam.get("invitations").json()["items"]
    assert (mine["workspace_id"], mine["role"], mine["invited_by"]["username"]) == (
        cast.workspace.public_id,
        "editor",
        "olive",
    )
    assert Api(cast.viewer).post(f"{at(cast)}/members/accept").status_code == 404
    accepted = sam.post(f"{at(cast)}/members/accept")
    assert (accepted.status_code, accepted.json()["status"]) == (200, "member")
    assert sam.get(at(cast)).status_code == 200 and is_member(cast.stranger, cast.workspace)
    assert sam.post(f"{at(cast)}/members/accept").status_code == 404
    assert sam.get("invitations").json()["items"] == []


def test_the_page_shows_it_to_both_and_takes_the_answer(cast: Cast) -> None:
    settings_page = f"/workspaces/{cast.workspace.public_id}/settings/"
    owner, sam = signed_in(cast.owner), signed_in(cast.stranger)
    owner.post(f"/workspaces/{cast.workspace.public_id}/members/", {"username": "sam", "role": "viewer"})
    assert "Invited, has not accepted yet" in owner.get(settings_page).content.decode()
    [invitation] = Invitation.objects.filter(user=cast.stranger)
    home = sam.get("/", follow=True).content.decode()
    answer = f"/invitations/{invitation.public_id}/"
    assert "invites you to" in home and answer in home and not is_member(cast.stranger, cast.workspace)
    sam.post(answer, {"answer": "later"})
    assert answer not in sam.get("/", follow=True).content.decode()
    assert answer in sam.get("/workspaces/").content.decode()
    assert signed_in(cast.viewer).post(answer, {"answer": "accept"}).status_code == 404
    assert sam.post(answer, {"answer": "accept"}).status_code == 302
    assert is_member(cast.stranger, cast.workspace)


def test_declined_or_withdrawn_it_lets_nobody_in(cast: Cast) -> None:
    for who in rolled_back(["stranger", "owner"]):
        invite(cast)
        path = f"{at(cast)}/members/{cast.stranger.public_id}"
        assert Api(cast.editor).delete(path).status_code in (403, 404), who
        assert Api(getattr(cast, who)).delete(path).status_code == 204, who
        assert Api(cast.stranger).post(f"{at(cast)}/members/accept").status_code == 404, who
        assert not is_member(cast.stranger, cast.workspace), who


def test_it_ends_with_its_time_and_with_the_right_of_who_invited(cast: Cast) -> None:
    invite(cast)
    change_role(cast.workspace, user=cast.editor, role="owner", by=cast.owner)
    change_role(cast.workspace, user=cast.owner, role="viewer", by=cast.editor)
    assert Api(cast.stranger).post(f"{at(cast)}/members/accept").status_code == 404
    change_role(cast.workspace, user=cast.owner, role="owner", by=cast.editor)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Api(cast.stranger).post(f"{at(cast)}/members/accept").status_code == 404
    assert invite(cast).status_code == 201  # again
    assert invite(cast).json()["error"]["code"] == "already_invited"


def test_it_has_no_link_and_does_not_let_a_removed_person_back_in(cast: Cast) -> None:
    invite(cast)
    [named] = Invitation.objects.all()
    assert named.expires_at - named.created_at == LONGEST
    assert signed_in(cast.viewer).get(f"/join/{link_token(named)}/").status_code == 404
    Membership.objects.create(workspace=cast.workspace, user=cast.stranger, role="viewer")  # by a group
    assert Api(cast.stranger).get("invitations").json()["items"] == []
    remove_member(cast.workspace, user=cast.stranger, by=cast.owner)
    assert Api(cast.stranger).post(f"{at(cast)}/members/accept").status_code == 404


def test_who_declined_is_not_asked_again_for_a_day(cast: Cast) -> None:
    now = timezone.now()
    first = invitations.invite(cast.workspace, user=cast.stranger, role="editor", by=cast.owner, now=now)
    invitations.close_user_invitation(by=cast.owner, now=now, pk=first.pk)  # withdrawn, as for another role
    second = invitations.invite(cast.workspace, user=cast.stranger, role="viewer", by=cast.owner, now=now)
    invitations.close_user_invitation(by=cast.stranger, now=now, pk=second.pk)
    again = invite(cast)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "declined")
    later = now + timedelta(days=1, seconds=1)
    assert invitations.invite(cast.workspace, user=cast.stranger, role="viewer", by=cast.owner, now=later)
