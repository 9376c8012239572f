"""Moderating workspaces, their members and people."""

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Group, Permission
from django.core import mail
from django.test import Client
from django.utils import timezone

from tests.admin_pages import run_action, said, staff
from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import make_document, make_user
from workspaces.access import default_workspace, role_in
from workspaces.accounts.invitations import accept_invited
from workspaces.documents import documents, reading_jobs
from workspaces.models import AuditEvent, Invitation, Membership, Role, User, Workspace

pytestmark = pytest.mark.django_db
WORKSPACES = "/admin/workspaces/workspace/"
PEOPLE = "/admin/workspaces/user/"


@pytest.fixture
def admin_client() -> Client:
    client = Client()
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    return client


def form(workspace: Workspace, *, extra: tuple[User, Role] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a workspace's form as its page sends it. ``changes``: a username → a role, or "" to remove it."""
    members = list(Membership.objects.filter(workspace=workspace).select_related("user"))
    values: dict[str, Any] = {
        "name": workspace.name,
        "description": workspace.description,
        "memberships-TOTAL_FORMS": str(len(members) + (1 if extra else 0)),
        "memberships-INITIAL_FORMS": str(len(members)),
    }
    for number, member in enumerate(members):
        row = {"id": member.pk, "workspace": workspace.pk, "user": member.user_id, "role": member.role}
        change = changes.get(member.user.username)
        if change == "":
            row["DELETE"] = "on"
        elif change:
            row["role"] = change
        values |= {f"memberships-{number}-{name}": value for name, value in row.items()}
    if extra:
        row = {"id": "", "workspace": workspace.pk, "user": extra[0].pk, "role": extra[1]}
        values |= {f"memberships-{len(members)}-{name}": value for name, value in row.items()}
    return values


def test_making_a_workspace_makes_its_owner(admin_client: Client) -> None:
    response = admin_client.post(
        f"{WORKSPACES}add/", {"name": "  Tea   club ", "description": "We drink tea."}
    )
    assert response.status_code == 302
    workspace = Workspace.objects.get()
    assert workspace.name == "Tea club"
    assert role_in(User.objects.get(username="root"), workspace) == Role.OWNER


def test_members_come_change_and_go(admin_client: Client, cast: Cast) -> None:
    page = f"{WORKSPACES}{cast.workspace.pk}/change/"
    type_password_again(admin_client)
    values = form(cast.workspace, extra=(cast.stranger, Role.VIEWER), eddie=Role.OWNER, vera="")
    assert admin_client.post(page, values).status_code == 302
    assert role_in(cast.stranger, cast.workspace) is None
    accept_invited(by=cast.stranger, now=timezone.now(), workspace=cast.workspace)
    assert role_in(cast.stranger, cast.workspace) == Role.VIEWER
    assert role_in(cast.editor, cast.workspace) == Role.OWNER
    assert role_in(cast.viewer, cast.workspace) is None


@pytest.mark.parametrize("way", ["new", "raised"])
def test_who_lets_somebody_in_shows_who_they_are_and_the_owners_are_told(
    admin_client: Client,
    cast: Cast,
    way: str,
    django_capture_on_commit_callbacks: Any,
) -> None:
    root = User.objects.get(username="root")
    User.objects.filter(pk=cast.owner.pk).update(email="olive@example.org")
    values = form(cast.workspace, extra=(root, Role.OWNER) if way == "new" else None, olive=Role.OWNER)
    if way == "raised":
        values = form(cast.workspace, vera=Role.OWNER)
    page = f"{WORKSPACES}{cast.workspace.pk}/change/"

    def standing() -> set[tuple[Any, ...]]:
        rows = Invitation if way == "new" else Membership
        return set(rows.objects.values_list("workspace", "user", "role"))

    before = standing()
    assert admin_client.post(page, values)["Location"].startswith("/accounts/reauthenticate/")
    assert standing() == before and not mail.outbox
    type_password_again(admin_client)
    with django_capture_on_commit_callbacks(execute=True):
        assert admin_client.post(page, values)["Location"] == WORKSPACES
    assert standing() != before
    if way == "raised":
        assert not mail.outbox
    else:
        (told,) = mail.outbox
        assert told.to == ["olive@example.org"]
        assert "(root)" in told.body and "“Shared”" in told.body and "- root" in told.body


def test_members_are_named_and_nobody_takes_the_place_of_another(admin_client: Client, cast: Cast) -> None:
    page = f"{WORKSPACES}{cast.workspace.pk}/change/"
    type_password_again(admin_client)
    shown = admin_client.get(page).content.decode()
    cells = re.findall(r'<td class="field-user">\s*(\w+)\s*</td>', shown)
    assert sorted(cells) == ["eddie", "olive", "vera"]
    values = form(cast.workspace)
    position = next(name for name, value in values.items() if value == cast.viewer.pk and "user" in name)
    before = set(Membership.objects.values_list("workspace", "user", "role"))
    values[position] = User.objects.get(username="root").pk
    assert admin_client.post(page, values).status_code == 302
    assert set(Membership.objects.values_list("workspace", "user", "role")) == before


def test_the_last_owner_stays_and_the_form_says_why(admin_client: Client, cast: Cast) -> None:
    page = f"{WORKSPACES}{cast.workspace.pk}/change/"
    type_password_again(admin_client)
    for change in ["", Role.VIEWER]:
        response = admin_client.post(
            page, form(cast.workspace, vera=Role.EDITOR, olive=change) | {"name": "New"}
        )
        assert response.status_code == 200, change
        assert "A workspace needs an owner" in response.content.decode(), change
        cast.workspace.refresh_from_db()
        assert cast.workspace.name == "Shared", change
        assert role_in(cast.owner, cast.workspace) == Role.OWNER, change
        assert role_in(cast.viewer, cast.workspace) == Role.VIEWER, change


def test_a_person_stays_in_their_own_workspace(admin_client: Client, cast: Cast) -> None:
    own = default_workspace(cast.owner)
    response = admin_client.post(f"{WORKSPACES}{own.pk}/change/", form(own, olive=""))
    assert "their personal workspace" in response.content.decode()
    assert role_in(cast.owner, own) == Role.OWNER


def test_search_and_filters_of_workspaces(admin_client: Client, cast: Cast) -> None:
    own = default_workspace(cast.stranger)

    def shown(query: str) -> set[Workspace]:
        return set(admin_client.get(f"{WORKSPACES}?{query}").context["cl"].result_list)

    assert shown("q=share") == {cast.workspace}
    assert shown(f"q={cast.workspace.public_id}") == {cast.workspace}
    assert shown(f"q={cast.stranger.public_id}") == {own}
    assert shown("default_of__isempty=0") == {own}
    assert shown("default_of__isempty=1") == {cast.workspace}


def test_the_search_box_tells_nothing_to_who_may_not_see_workspaces(cast: Cast) -> None:
    user = make_user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_memory"))
    client = Client()
    client.force_login(user)
    query = {"app_label": "memories", "model_name": "memory", "field_name": "workspace", "term": ""}
    assert client.get("/admin/autocomplete/", query).status_code == 403


def test_accounts_are_closed_and_reopened_but_never_ones_own(admin_client: Client, cast: Cast) -> None:
    root = User.objects.get(username="root")
    assert said(run_action(admin_client, PEOPLE, "close", root, cast.viewer)) == [
        "1 account closed.",
        "Yours was left open: somebody else has to close it.",
    ]
    cast.viewer.refresh_from_db()
    assert not cast.viewer.is_active
    run_action(admin_client, PEOPLE, "reopen", root, cast.viewer)
    cast.viewer.refresh_from_db()
    assert cast.viewer.is_active


def test_staff_cannot_raise_themselves_nor_touch_a_superuser(cast: Cast) -> None:
    root = make_user("root", is_staff=True, is_superuser=True)
    moderator = make_user("mod", is_staff=True)
    codenames = ["view_user", "change_user"]
    moderator.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(moderator)
    values = {
        "username": "mod",
        "is_active": "on",
        "is_staff": "on",
        "is_superuser": "on",
        "memory_default": "",
    }
    client.post(f"{PEOPLE}{moderator.pk}/change/", values | {"user_permissions": ["1", "2", "3"]})
    moderator.refresh_from_db()
    assert not moderator.is_superuser
    assert moderator.user_permissions.count() == 2
    assert client.post(f"{PEOPLE}{root.pk}/change/", values | {"username": "toor"}).status_code == 403
    secret = {"password1": "a quiet evening", "password2": "a quiet evening"}
    assert client.post(f"{PEOPLE}{root.pk}/password/", secret).status_code == 403
    run_action(client, PEOPLE, "close", root)
    root.refresh_from_db()
    assert (root.username, root.is_active) == ("root", True)


def staff_with(*codenames: str) -> tuple[User, Client]:
    person, client = make_user("mod", is_staff=True), Client()
    person.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(person)
    return person, client


def test_staff_change_no_group_and_superusers_do(admin_client: Client) -> None:
    group = Group.objects.create(name="Moderators")
    moderator, client = staff_with("view_group", "change_group", "add_group", "delete_group")
    moderator.groups.add(group)
    every = list(Permission.objects.values_list("pk", flat=True))
    url = f"/admin/auth/group/{group.pk}/change/"
    for page in (url, "/admin/auth/group/add/", f"/admin/auth/group/{group.pk}/delete/"):
        assert client.post(page, {"name": "Keepers", "permissions": every, "post": "yes"}).status_code == 403
    assert client.get(url).status_code == 200
    asked = admin_client.post(url, {"name": "Keepers", "permissions": every[:2]})
    assert asked["Location"].startswith("/accounts/reauthenticate/")
    assert not Permission.objects.filter(group__isnull=False).exists()
    type_password_again(admin_client)
    admin_client.post(url, {"name": "Keepers", "permissions": every[:2]})
    assert group.permissions.count() == 2
    noted = AuditEvent.objects.get(details__kind="group")
    assert (noted.by_name, noted.verb) == ("root", "admin_changed")


def test_addresses_are_looked_at_and_not_touched(cast: Cast) -> None:
    """Adding or confirming one would allow resetting anyone's password."""
    address = EmailAddress.objects.create(user=cast.owner, email="olive@example.com")
    _, client = staff_with(*(f"{right}_emailaddress" for right in ("view", "add", "change", "delete")))
    url = "/admin/account/emailaddress/"
    shown = client.get(url, {"q": cast.owner.public_id}).content.decode()
    assert "olive@example.com" in shown
    assert 'name="action"' not in shown
    mine = {"user": cast.owner.pk, "email": "thief@example.com", "verified": "on", "primary": "on"}
    for page in (f"{url}add/", f"{url}{address.pk}/change/", f"{url}{address.pk}/delete/"):
        assert client.post(page, mine).status_code == 403
    client.post(url, {"action": "make_verified", "_selected_action": [address.pk]})
    address.refresh_from_db()
    assert (address.email, address.verified, EmailAddress.objects.count()) == ("olive@example.com", False, 1)


def test_a_person_is_made_with_a_password(admin_client: Client) -> None:
    values = {
        "username": "nina",
        "usable_password": "true",
        "password1": "a quiet evening",
        "password2": "a quiet evening",
    }
    assert admin_client.post(f"{PEOPLE}add/", values).status_code == 302
    assert User.objects.get(username="nina").check_password("a quiet evening")


def test_staff_read_a_failed_document_again_and_see_neither_its_title_nor_its_text(cast: Cast) -> None:
    made = documents.add_document(
        cast.workspace, name="secret.pdf", content=[b"%PDF-1.4 no"], by=cast.editor, now=timezone.now()
    ).document
    fine = make_document(
        cast.owner, cast.workspace, "A heliotrope in bloom", title="Heliotrope", embedded=False
    )
    reading_jobs.read(made.pk, now=timezone.now())
    page, looking = "/admin/workspaces/document/", staff("view_document")
    listed = looking.get(f"{page}?status__exact=failed").content.decode()
    assert made.public_id in listed and fine.public_id not in listed and "damaged" in listed
    assert fine.public_id in looking.get(f"{page}?o=4").content.decode()
    for shown in (
        listed,
        *(looking.get(f"{page}{each.pk}/change/").content.decode() for each in (made, fine)),
    ):
        assert not any(word in shown for word in ("secret.pdf", "eliotrope"))
    run_action(looking, page, "read_again", made)
    made.refresh_from_db()
    assert made.status == "failed"
    done = run_action(staff("view_document", "change_document"), page, "read_again", made, fine)
    made.refresh_from_db()
    assert made.status == "waiting" and said(done) == [
        "1 document queued to be read again, 1 left as before."
    ]
    front = looking.get("/admin/").content.decode()
    assert "documents to be read" in front and "documents that could not be read" in front
