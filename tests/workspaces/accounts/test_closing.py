"""Closing an account: the user's own things end at once, and others' things go on."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from chat.models import Run, RunStatus
from memoryhub.errors import Conflict
from tests.admin_pages import run_action, said, staff
from tests.api import Api
from tests.conftest import Cast
from tests.factories import PASSWORD, make_key_text, make_token_text, make_user, make_webhook, make_workspace
from workspaces import tasks
from workspaces.access import default_workspace
from workspaces.accounts.account_changes import close_account, hand_over, left_behind, reopen_account
from workspaces.actions.workspaces import remove_member
from workspaces.models import AuditEvent, Membership, SignIn, User, Workspace
from workspaces.views import event_streams

pytestmark = pytest.mark.django_db
PEOPLE = "/admin/workspaces/user/"


def role_of(person: User, workspace: Workspace) -> str:
    return Membership.objects.get(user=person, workspace=workspace).role


def test_everything_of_theirs_ends_at_once_and_comes_back_but_for_sessions(cast: Cast) -> None:
    key, token = make_key_text(cast.owner, cast.workspace), make_token_text(cast.owner, cast.workspace)
    browser, hook = Client(), make_webhook(cast.workspace, cast.owner)
    browser.force_login(cast.owner)
    session = browser.session.session_key or ""
    run = Run.objects.create(
        workspace=cast.workspace,
        user=cast.owner,
        objective="Look",
        status=RunStatus.RUNNING,
        mode="loop",
        deadline_at=timezone.now(),
    )
    path = f"workspaces/{cast.workspace.public_id}/memories"

    def opens() -> list[int]:
        return [Api(key=each).get(path).status_code for each in (key, token)]

    assert (opens(), browser.get("/profile/").status_code) == ([200, 200], 200)
    assert event_streams._may_still_see(cast.workspace.pk, cast.owner.pk, session, has_news=False)
    close_account(cast.owner, by=None, now=timezone.now())
    assert (opens(), browser.get("/profile/").status_code) == ([401, 401], 302)
    assert not event_streams._may_still_see(cast.workspace.pk, cast.owner.pk, session, has_news=False)
    tasks.tell_webhooks()
    hook.refresh_from_db()
    run.refresh_from_db()
    assert (hook.is_enabled, run.status) == (False, RunStatus.STOPPED)
    assert not SignIn.objects.filter(user=cast.owner).exists()
    assert not Client().login(username="olive", password=PASSWORD)
    reopen_account(cast.owner, by=None)
    assert (opens(), browser.get("/profile/").status_code) == ([200, 200], 302)
    assert Client().login(username="olive", password=PASSWORD)


def test_workspaces_go_on_with_the_longest_editor_and_are_owned_by_both_afterwards(
    cast: Cast, mailoutbox: Any, django_capture_on_commit_callbacks: Any, settings: Any
) -> None:
    newer = make_user("nora")
    Membership.objects.create(workspace=cast.workspace, user=newer, role="editor")
    User.objects.filter(pk=cast.editor.pk).update(email="eddie@example.org")
    alone, two = make_workspace(owner=cast.owner, name="Alone"), make_workspace(owner=cast.owner, name="Two")
    Membership.objects.create(workspace=two, user=newer, role="owner")
    home = default_workspace(cast.owner)
    Membership.objects.create(workspace=home, user=newer, role="editor")
    with django_capture_on_commit_callbacks(execute=True):
        [handed] = close_account(cast.owner, by=cast.stranger, now=timezone.now())
    assert (handed.user, handed.workspace) == (cast.editor, cast.workspace)
    assert (role_of(cast.editor, cast.workspace), role_of(newer, cast.workspace)) == ("owner", "editor")
    assert (role_of(newer, home), role_of(cast.owner, alone)) == ("editor", "owner")
    [mail] = mailoutbox
    assert mail.to == ["eddie@example.org"]
    assert "olive" in mail.body
    event = AuditEvent.objects.get(verb="handed_over")
    assert (event.by_name, event.workspace_id, event.target) == (
        "sam",
        cast.workspace.public_id,
        cast.editor.public_id,
    )
    assert event.details == {"before": "editor", "of": cast.owner.public_id}
    assert close_account(cast.owner, by=None, now=timezone.now()) == []
    with pytest.raises(Conflict):  # closed accounts do not count as owners
        remove_member(cast.workspace, user=cast.editor, by=cast.editor)
    reopen_account(cast.owner, by=None)
    assert role_of(cast.owner, cast.workspace) == "owner"
    remove_member(cast.workspace, user=cast.editor, by=cast.editor)


def test_a_closed_account_inherits_nothing(cast: Cast) -> None:
    close_account(cast.editor, by=None, now=timezone.now())
    close_account(cast.owner, by=None, now=timezone.now(), hands_over=False)
    assert left_behind(cast.owner) == [cast.workspace]
    assert [made.user for made in hand_over(cast.owner, by=None)] == [cast.viewer]
    assert left_behind(cast.owner) == []


def test_superusers_hand_over_as_they_close_other_staff_only_close(cast: Cast) -> None:
    helper = make_user("helper", is_staff=True)
    helper.user_permissions.add(*Permission.objects.filter(codename__in=["view_user", "change_user"]))
    client = Client()
    client.force_login(helper)
    sentences = said(run_action(client, PEOPLE, "close", cast.owner))
    assert sentences == [
        "1 account closed.",
        "1 workspace has no owner now whose account is open. A superuser can hand them over.",
    ]
    assert role_of(cast.editor, cast.workspace) == "editor"
    refused: Any = run_action(client, PEOPLE, "hand_over", cast.owner)
    assert refused.status_code == 403
    assert role_of(cast.editor, cast.workspace) == "editor"
    boss = staff(username="root", is_superuser=True)
    assert said(run_action(boss, PEOPLE, "hand_over", cast.owner)) == ["Handed over: “Shared” to eddie."]
    assert said(run_action(boss, PEOPLE, "hand_over", cast.owner)) == ["None was left behind."]
    run_action(boss, PEOPLE, "reopen", cast.owner)
    again = Membership.objects.filter(user=cast.editor, workspace=cast.workspace)
    again.update(role="viewer")
    closed = said(run_action(boss, PEOPLE, "close", cast.owner))
    assert closed == ["1 account closed.", "Handed over: “Shared” to eddie."]


def test_signing_somebody_out_everywhere_leaves_their_keys(cast: Cast) -> None:
    key, token = make_key_text(cast.editor, cast.workspace), make_token_text(cast.editor, cast.workspace)
    browser, boss = Client(), staff(username="root", is_superuser=True)
    browser.force_login(cast.editor)
    assert said(run_action(boss, PEOPLE, "sign_out", cast.editor)) == ["1 session ended."]
    assert browser.get("/profile/").status_code == 302
    path = f"workspaces/{cast.workspace.public_id}/memories"
    assert [Api(key=each).get(path).status_code for each in (key, token)] == [200, 401]
    assert boss.get("/admin/").status_code == 200
    old = SignIn.objects.filter(user__username="root").first()
    assert old is not None
    assert old.created_at > timezone.now() - timedelta(hours=1)
