"""A superuser deletes an account on its user's request; workspaces that others use get another owner."""

from typing import Any

import pytest
from django.utils import timezone

from memories.models import Memory
from memoryhub.errors import Conflict, Forbidden
from tests.admin_pages import run_action, said, staff
from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import make_memory, make_user, make_workspace
from workspaces.accounts.account_changes import close_account, delete_account_of
from workspaces.models import AuditEvent, Membership, User, Workspace

pytestmark = pytest.mark.django_db
LIST = "/admin/workspaces/user/"


def test_a_superuser_deletes_an_account_and_who_depends_on_it_goes_on(
    cast: Cast, mailoutbox: Any, django_capture_on_commit_callbacks: Any
) -> None:
    """The cast's owner is the only one of a shared workspace, and alone in another."""
    User.objects.filter(pk=cast.owner.pk).update(email="olive@example.org")
    alone = make_workspace(owner=cast.owner, name="Alone")
    make_memory("Mine", cast.owner, cast.workspace, scope="user")
    root = staff(is_superuser=True)
    asked = run_action(root, LIST, "delete_accounts", cast.owner)
    assert asked.redirect_chain[-1][0].startswith("/accounts/reauthenticate/")
    assert User.objects.filter(pk=cast.owner.pk).exists()
    type_password_again(root)
    with django_capture_on_commit_callbacks(execute=True):
        assert "1 user deleted." in said(run_action(root, LIST, "delete_accounts", cast.owner))
    assert not User.objects.filter(pk=cast.owner.pk).exists()
    assert not Workspace.objects.filter(pk=alone.pk).exists()
    assert not Memory.objects.filter(content="Mine").exists()
    assert Membership.objects.get(user=cast.editor, workspace=cast.workspace).role == "owner"
    event = AuditEvent.objects.get(verb="account_deleted")
    assert (event.target, event.by_id != cast.owner.public_id) == (cast.owner.public_id, True)
    assert "olive@example.org" in [mail.to[0] for mail in mailoutbox]


def test_nothing_happens_where_nobody_could_go_on(cast: Cast) -> None:
    for member in (cast.editor, cast.viewer):
        close_account(member, by=None, now=timezone.now())
    with pytest.raises(Conflict, match="Nobody could take over"):
        delete_account_of(cast.owner, by=make_user("root", is_superuser=True))
    assert User.objects.filter(pk=cast.owner.pk).exists()


def test_a_closed_account_is_deleted_all_the_same(cast: Cast) -> None:
    close_account(cast.editor, by=None, now=timezone.now())
    delete_account_of(cast.editor, by=make_user("root", is_superuser=True))
    assert not User.objects.filter(pk=cast.editor.pk).exists()


def test_no_superuser_deletes_their_own_account_in_the_admin() -> None:
    root = make_user("root", is_superuser=True)
    with pytest.raises(Conflict):
        delete_account_of(root, by=root)
    assert User.objects.filter(pk=root.pk).exists()


def test_staff_who_may_change_people_delete_nobody(cast: Cast) -> None:
    keeper = staff("view_user", "change_user", username="keeper")
    type_password_again(keeper)
    assert run_action(keeper, LIST, "delete_accounts", cast.editor).status_code == 403
    with pytest.raises(Forbidden):
        delete_account_of(cast.editor, by=cast.owner)
    assert User.objects.filter(pk=cast.editor.pk).exists()
