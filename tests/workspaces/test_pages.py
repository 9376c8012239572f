"""Pages of workspaces, profile and accounts, and the event stream of open pages."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest
from asgiref.sync import sync_to_async
from django.core import mail
from django.test import Client
from django.urls import reverse

from memoryhub import pubsub
from tests.conftest import Cast
from tests.factories import PASSWORD, make_user, make_workspace
from tests.signing_in import signed_in
from workspaces.models import Membership, User, Workspace
from workspaces.views import event_streams

pytestmark = pytest.mark.django_db


def url(name: str, *args: object) -> str:
    return reverse(f"workspaces:{name}", args=args)


def test_signing_up_makes_an_account_and_a_workspace() -> None:
    client = Client()
    data = {"username": "nina", "email": "", "password1": PASSWORD, "password2": PASSWORD}
    response = client.post("/accounts/signup/", data, follow=True)
    assert response.status_code == 200
    assert Workspace.objects.get(default_of__username="nina")
    assert "What's on your mind?" in response.content.decode()


def test_a_forgotten_password_is_reset_by_mail() -> None:
    make_user("nina", email="nina@example.org")
    client = Client()
    done = client.post("/accounts/password/reset/", {"email": "nina@example.org"}, follow=True)
    assert "Check your email" in done.content.decode()
    link = next(word for word in str(mail.outbox[0].body).split() if "/password/reset/key/" in word)
    page = client.get(link, follow=True)
    assert "Choose a new password" in page.content.decode()
    new = "another horse battery"
    saved = client.post(page.redirect_chain[-1][0], {"password1": new, "password2": new}, follow=True)
    assert "Your password has been changed" in saved.content.decode()
    assert client.login(username="nina", password=new)


def test_the_list_shows_my_workspaces_only_and_makes_new_ones(cast: Cast) -> None:
    client = signed_in(cast.viewer)
    html = client.get(url("list")).content.decode()
    assert "Shared" in html and "Viewer" in html
    response = client.post(url("list"), {"name": "Garden", "description": ""})
    made = Workspace.objects.get(name="Garden")
    assert response.url == reverse("chat:workspace", args=[made.public_id])  # type: ignore[attr-defined]
    assert client.post(url("list"), {"name": " "}).status_code == 422
    assert "Garden" not in signed_in(cast.stranger).get(url("list")).content.decode()


def test_settings_show_each_role_what_it_may_do(cast: Cast) -> None:
    page = url("settings", cast.workspace.public_id)
    owner = signed_in(cast.owner).get(page).content.decode()
    assert "Delete for good" in owner and '/members/"' in owner
    for user in (cast.editor, cast.viewer):
        html = signed_in(user).get(page).content.decode()
        assert "olive" in html and "Leave" in html
        assert "Delete for good" not in html and '/members/"' not in html and "Remove" not in html


def test_name_and_purpose_are_saved_each_by_itself(cast: Cast) -> None:
    place = cast.workspace
    page = url("settings", place.public_id)
    client, htmx = signed_in(cast.owner), {"HX-Request": "true"}
    client.post(page, {"description": "What we grow"}, headers=htmx)
    saved = client.post(page, {"name": "Garden"}, headers=htmx, follow=True).content.decode()
    place.refresh_from_db()
    assert (place.name, place.description) == ("Garden", "What we grow"), "what was not sent stays"
    assert "Saved." in saved and '<h1 dir="auto">Garden</h1>' in saved
    for wrong in ({"name": " "}, {"name": "x" * 121}, {"description": "x" * 2001}, {"name": "a\0b"}):
        refused = client.post(page, wrong, headers=htmx)
        assert refused.status_code == 200 and "field__error" in refused.content.decode(), (
            "htmx shows the form"
        )
        assert client.post(page, wrong).status_code == 422
    client.post(page, {"name": "Orchard", "description": ""})  # from a page without scripts
    place.refresh_from_db()
    assert (place.name, place.description) == ("Orchard", "")
    for user, status in ((cast.editor, 403), (cast.viewer, 403), (cast.stranger, 404)):
        assert signed_in(user).post(page, {"name": "Mine"}, headers=htmx).status_code == status
    place.refresh_from_db()
    assert place.name == "Orchard"


# The event stream


async def read(stream: AsyncGenerator[str, None]) -> str:
    async with asyncio.timeout(10):
        return await anext(stream)


def session_of(user: User) -> str:
    client = signed_in(user)
    return client.session.session_key or ""


@pytest.mark.django_db(transaction=True)
async def test_open_pages_hear_their_workspace_until_they_may_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_streams, "HEARTBEAT", 0.2)

    def make() -> tuple[Workspace, User, str]:
        owner, viewer = make_user(), make_user()
        return make_workspace(owner=owner, viewer=viewer), viewer, session_of(viewer)

    workspace, viewer, session_key = await sync_to_async(make)()
    feed = event_streams._feed(workspace, viewer, session_key)
    assert "retry:" in await read(feed)
    assert (await read(feed)).startswith(": still here")
    data = {"count": 1}
    await sync_to_async(pubsub.publish)(f"workspace:{workspace.public_id}", "x_memory.auto_saved", data)
    heard = await read(feed)
    while heard.startswith(":"):
        heard = await read(feed)
    assert heard == f"event: x_memory.auto_saved\ndata: {json.dumps(data)}\n\n"
    await sync_to_async(Membership.objects.filter(user=viewer).delete)()
    heard = await read(feed)
    assert heard.startswith("event: closed")
    with pytest.raises(StopAsyncIteration):
        await anext(feed)
