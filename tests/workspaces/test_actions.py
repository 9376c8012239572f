"""Changes to workspaces and members: permissions, and that a workspace always has an owner."""

import threading
from collections.abc import Callable

import pytest
from django.db import IntegrityError, connection

from memoryhub.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.conftest import Cast
from tests.factories import add_member, make_chat, make_message, make_user, make_workspace
from workspaces.access import default_workspace, role_in
from workspaces.actions import workspaces as actions
from workspaces.models import Membership, Role, User, Workspace


@pytest.mark.django_db
def test_create_workspace_makes_its_maker_the_owner() -> None:
    person = make_user()
    workspace = actions.create_workspace(name="  Launch\n plan ", description=" spring ", by=person)
    assert (workspace.name, workspace.description) == ("Launch plan", "spring")
    assert role_in(person, workspace) == Role.OWNER
    assert not workspace.is_default


@pytest.mark.django_db
def test_create_workspace_refuses_names_that_cannot_be_stored() -> None:
    for name in ["", "   ", "\u200b \u2800", "x" * 121, "a\0b", "a\ud800b"]:
        with pytest.raises(Invalid) as refused:
            actions.create_workspace(name=name, by=make_user())
        assert "name" in refused.value.fields, name
        assert not Workspace.objects.exists(), name


def test_update_workspace_changes_only_what_is_passed(cast: Cast) -> None:
    actions.update_workspace(cast.workspace, by=cast.owner, description="New")
    cast.workspace.refresh_from_db()
    assert (cast.workspace.name, cast.workspace.description) == ("Shared", "New")


CHANGES: list[Callable[[Cast, User], object]] = [
    lambda cast, by: actions.update_workspace(cast.workspace, by=by, name="Mine"),
    lambda cast, by: actions.delete_workspace(cast.workspace, by=by),
    lambda cast, by: add_member(cast.workspace, user=cast.stranger, role="viewer", by=by),
    lambda cast, by: actions.change_role(cast.workspace, user=cast.viewer, role="editor", by=by),
    lambda cast, by: actions.remove_member(cast.workspace, user=cast.owner, by=by),
]


def test_only_owners_change_a_workspace(cast: Cast) -> None:
    before = list(Membership.objects.values_list("user", "role"))
    for change in CHANGES:
        for person, error in ((cast.editor, Forbidden), (cast.viewer, Forbidden), (cast.stranger, NotFound)):
            with pytest.raises(error):
                change(cast, person)
        assert list(Membership.objects.values_list("user", "role")) == before
        assert Workspace.objects.get(pk=cast.workspace.pk).name == "Shared"


def test_default_workspace_stays_and_keeps_its_person(cast: Cast) -> None:
    own = default_workspace(cast.owner)
    add_member(own, user=cast.editor, role="owner", by=cast.owner)
    for change in (
        lambda: actions.delete_workspace(own, by=cast.owner),
        lambda: actions.remove_member(own, user=cast.owner, by=cast.editor),
        lambda: actions.remove_member(own, user=cast.owner, by=cast.owner),
        lambda: actions.change_role(own, user=cast.owner, role="viewer", by=cast.editor),
    ):
        with pytest.raises(Conflict):
            change()
    assert default_workspace(cast.owner) == own


def test_add_member_refuses_who_is_in_already(cast: Cast) -> None:
    with pytest.raises(Conflict) as refused:
        add_member(cast.workspace, user=cast.viewer, role="owner", by=cast.owner)
    assert refused.value.code == "already_member"
    assert role_in(cast.viewer, cast.workspace) == Role.VIEWER


def test_add_member_refuses_unknown_roles_and_closed_accounts(cast: Cast) -> None:
    with pytest.raises(Invalid) as refused:
        add_member(cast.workspace, user=cast.stranger, role="king", by=cast.owner)
    assert "owner, editor, viewer" in refused.value.fields["role"]
    cast.stranger.is_active = False
    with pytest.raises(Invalid):
        add_member(cast.workspace, user=cast.stranger, role="viewer", by=cast.owner)


def test_last_owner_neither_leaves_nor_steps_down(cast: Cast) -> None:
    with pytest.raises(Conflict):
        actions.remove_member(cast.workspace, user=cast.owner, by=cast.owner)
    with pytest.raises(Conflict):
        actions.change_role(cast.workspace, user=cast.owner, role="editor", by=cast.owner)
    actions.change_role(cast.workspace, user=cast.editor, role="owner", by=cast.owner)
    actions.remove_member(cast.workspace, user=cast.owner, by=cast.owner)
    assert role_in(cast.owner, cast.workspace) is None


def test_anybody_may_leave(cast: Cast) -> None:
    actions.remove_member(cast.workspace, user=cast.viewer, by=cast.viewer)
    assert role_in(cast.viewer, cast.workspace) is None


def test_strangers_cannot_be_removed(cast: Cast) -> None:
    with pytest.raises(NotFound):
        actions.remove_member(cast.workspace, user=cast.stranger, by=cast.owner)


@pytest.mark.django_db(transaction=True)
def test_two_owners_stepping_down_at_once_leave_one() -> None:
    owners = [make_user("ann"), make_user("ben")]
    workspace = make_workspace(owner=owners[0])
    Membership.objects.create(workspace=workspace, user=owners[1], role=Role.OWNER)
    start = threading.Barrier(2)
    refused: list[DomainError] = []

    def step_down(person: User) -> None:
        start.wait()
        try:
            actions.change_role(workspace, user=person, role="viewer", by=person)
        except DomainError as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=step_down, args=[person]) for person in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(error) for error in refused] == [Conflict]
    assert Membership.objects.filter(workspace=workspace, role=Role.OWNER).count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_message_written_while_its_workspace_is_deleted_does_not_stop_the_delete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = make_user()
    workspace = make_workspace(owner=owner)
    chat = make_chat(owner, workspace)
    lost: list[bool] = []

    def write() -> None:
        try:
            make_message(chat, "In the last moment")
        except IntegrityError:
            lost.append(True)
        finally:
            connection.close()

    late = threading.Thread(target=write)
    collect = Workspace.delete

    def delete_a_little_later(self: Workspace) -> object:
        late.start()
        late.join(0.3)  # it waits for the deletion, which locks the chat
        return collect(self)

    monkeypatch.setattr(Workspace, "delete", delete_a_little_later)
    actions.delete_workspace(workspace, by=owner)
    late.join(10)
    assert lost == [True]
    assert not Workspace.objects.filter(pk=workspace.pk).exists()
