"""Two-factor sign-in required by the operator: no access before it is set up, and it cannot be turned off."""

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from tests.conftest import Cast
from tests.factories import make_user
from tests.workspaces.accounts.test_two_factor import BASE, signed_in, turn_on, type_password

pytestmark = pytest.mark.django_db
SET_UP = f"{BASE}/totp/activate/"


@pytest.fixture
def everyone(settings: Any) -> None:
    settings.TWO_FACTOR = "everyone"


@pytest.mark.usefixtures("everyone")
def test_nothing_opens_before_it_is_set_up(cast: Cast) -> None:
    client = signed_in(cast.editor)
    for path in (
        "/",
        "/profile/",
        f"/workspaces/{cast.workspace.public_id}/",
        "/oauth/authorize",
    ):
        answer = client.get(path)
        assert answer.status_code == 302, path
        assert answer["Location"] == SET_UP, path
    for path in ("/chat/api/chats", "/api/schema/", "/api/docs/"):
        answer = client.get(path)
        assert answer.status_code == 403, path
        assert answer.json()["error"]["code"] == "two_factor", path
    part = client.get(f"/workspaces/{cast.workspace.public_id}/memories/", headers={"HX-Request": "true"})
    assert part.status_code == 403
    assert "Set up two-factor sign-in first" in part.content.decode()
    assert client.post("/chat/api/chats", {}, content_type="application/json").status_code == 403
    type_password(client)
    set_up = client.get(SET_UP).content.decode()
    assert "Sign out" in set_up and "Not now" not in set_up
    assert Client().get("/healthz").status_code == 200
    assert client.get("/healthz").status_code == 200
    assert client.post("/accounts/logout/").status_code == 302


@pytest.mark.usefixtures("everyone")
def test_who_has_it_goes_on_and_cannot_take_it_away(cast: Cast) -> None:
    client, _ = turn_on(cast.editor)
    assert client.get("/profile/").status_code == 200
    assert client.get("/chat/api/chats").status_code == 200
    refused = client.post(f"{BASE}/totp/deactivate/")
    assert "cannot deactivate" in refused.content.decode()
    assert Authenticator.objects.filter(user=cast.editor, type=Authenticator.Type.TOTP).exists()


def test_of_staff_alone(cast: Cast, settings: Any) -> None:
    settings.TWO_FACTOR = "staff"
    assert signed_in(cast.editor).get("/profile/").status_code == 200
    staff = make_user("sonja", is_staff=True)
    client = signed_in(staff)
    assert client.get("/admin/")["Location"] == SET_UP
    type_password(client)
    assert client.get(SET_UP).status_code == 200
