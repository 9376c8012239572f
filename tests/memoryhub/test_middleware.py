"""Headers of every response, and the handling of unexpected errors."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from tests.conftest import Cast
from tests.factories import PASSWORD
from workspaces.models import User, Workspace

pytestmark = pytest.mark.django_db


def signed_in(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """Make every access to a workspace fail, on pages and in the API."""

    def fail(error: Exception) -> None:
        def raise_it(*args: Any, **kwargs: Any) -> None:
            raise error

        for place in ("chat.views.chats", "workspaces.access"):
            monkeypatch.setattr(f"{place}.get_workspace", raise_it)

    return fail


def test_nothing_private_is_kept_by_a_cache(cast: Cast) -> None:
    """Otherwise the back button would show a chat after signing out."""
    client = signed_in(cast.owner)
    for path in (f"/workspaces/{cast.workspace.public_id}/", "/profile/", "/chat/api/chats", "/api/schema/"):
        assert "no-store" in client.get(path)["Cache-Control"], path


def test_no_page_may_run_inline_scripts_or_be_framed(cast: Cast) -> None:
    for path in ("/accounts/login/", "/admin/", "/api/docs/", "/nowhere/"):
        User.objects.filter(pk=cast.owner.pk).update(is_staff=True, is_superuser=True)
        policy = signed_in(cast.owner).get(path, follow=True)["Content-Security-Policy"]
        parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        assert parts["script-src"] == "'self'", path
        assert (parts["default-src"], parts["frame-ancestors"], parts["base-uri"]) == ("'none'",) * 3, path


def test_the_page_of_the_api_has_its_script_in_a_file(cast: Cast) -> None:
    client = signed_in(cast.owner)
    page = client.get("/api/docs/").content.decode()
    assert "<script>" not in page and "js/api-page" in page


def test_a_session_cookie_with_a_nul_is_nobodys() -> None:
    for path in ("/", "/accounts/login/", "/chat/api/chats", "/admin/"):
        client = Client()
        client.cookies.load(r'sessionid="\000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"')
        assert client.get(path).status_code in {200, 302, 401}


def test_signing_in_changes_the_session_key(cast: Cast) -> None:
    """A planted session is worthless after signing in (session fixation)."""
    client = Client()
    session = client.session
    session["planted"] = True
    session.save()
    planted = session.session_key
    client.post("/accounts/login/", {"login": cast.owner.username, "password": PASSWORD})
    assert client.get("/profile/").status_code == 200
    assert client.session.session_key != planted


def test_signing_in_leads_nowhere_else(cast: Cast) -> None:
    for where in (
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "https:evil.example",
    ):
        form = {"login": cast.owner.username, "password": PASSWORD, "next": where}
        assert Client().post("/accounts/login/", form)["Location"] == "/"
        assert signed_in(cast.owner).get("/accounts/login/", {"next": where})["Location"] == "/"


def test_an_unforeseen_error_says_nothing_of_its_cause(
    cast: Cast, failing: Callable[[Exception], None]
) -> None:
    failing(RuntimeError("the owner said: kumquat"))
    client = signed_in(cast.owner, raise_request_exception=False)
    page = client.get(f"/workspaces/{cast.workspace.public_id}/")
    assert page.status_code == 500
    assert "kumquat" not in page.content.decode()
    assert "What you saved is safe" in page.content.decode()


def test_a_database_that_is_away_is_503_with_a_time_to_come_back(
    cast: Cast, failing: Callable[[Exception], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(OperationalError("connection refused"))
    client = signed_in(cast.owner, raise_request_exception=False)
    page = client.get(f"/workspaces/{cast.workspace.public_id}/")
    assert (page.status_code, page["Retry-After"]) == (503, "5")
    monkeypatch.setattr("chat.api.views.get_chat", _unreachable)
    answer = client.get(f"/chat/api/chats/chat_{'a' * 24}")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.json()["error"]["code"] == "unavailable"


def _unreachable(*args: Any, **kwargs: Any) -> None:
    raise OperationalError("connection refused")


def test_an_unforeseen_error_of_the_api_has_its_shape(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("the owner said: kumquat")

    monkeypatch.setattr("chat.api.views.get_chat", fail)
    client = signed_in(cast.owner, raise_request_exception=False)
    answer = client.get(f"/chat/api/chats/chat_{'a' * 24}")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert "kumquat" not in answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_what_is_written_into_something_just_deleted_is_a_conflict(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Workspace.objects.get(pk=cast.workspace.pk)

    def find_and_lose(*args: Any, **kwargs: Any) -> Workspace:
        Workspace.objects.filter(pk=gone.pk).delete()
        gone.role = "owner"  # type: ignore[attr-defined]
        return gone

    monkeypatch.setattr("chat.api.views.named_workspace", find_and_lose)
    client = signed_in(cast.owner, raise_request_exception=False)
    body = {"workspace_id": gone.public_id, "title": "Late"}
    answer = client.post("/chat/api/chats", body, "application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "gone")


def test_an_id_that_postgres_cannot_look_for_is_no_error_of_ours(cast: Cast) -> None:
    """The URL's ids are checked before; a form's value reaches the query."""
    for page, field in (("model", "connection"), ("recall-test", "memories")):
        address = f"/workspaces/{cast.workspace.public_id}/{page}/"
        for asked in ({}, {"HX-Request": "true"}):
            answer = signed_in(cast.owner).post(address, {field: "a\x00b", "text": "When?"}, headers=asked)
            assert answer.status_code == 400 and "could not be read" in answer.content.decode(), page
