"""Pins and the archive: separate for each reader, in any role."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from chat.chats import tags_and_pins
from chat.chats.chat_list import chat_list_page
from chat.models import Chat, ChatMark
from memoryhub.errors import Invalid
from tests.conftest import Cast, make_cast
from tests.factories import make_chat
from tests.signing_in import signed_in
from workspaces.models import User

pytestmark = pytest.mark.django_db


def put(client: Client, chat: Chat, mark: Any) -> Any:
    return client.put(
        f"/chat/api/chats/{chat.public_id}/mark", {"mark": mark}, content_type="application/json"
    )


def days(cast: Cast, user: User, **asked: Any) -> dict[str, list[str]]:
    page = chat_list_page(cast.workspace, user, now=timezone.now(), **asked)
    return {day.slug: [chat.title for chat in day.chats] for day in page.days}


def test_a_viewer_pins_and_archives_in_their_own_list_alone(cast: Cast) -> None:
    plans, old, new = (
        make_chat(cast.owner, cast.workspace, title=title) for title in ("Plans", "Old", "New")
    )
    viewer = signed_in(cast.viewer)
    assert put(viewer, plans, "pinned").json()["mark"] == "pinned"
    assert put(viewer, old, "archived").json()["mark"] == "archived"
    assert days(cast, cast.viewer) == {"pinned": ["Plans"], "today": ["New"]}
    assert days(cast, cast.viewer, archived=True) == {"today": ["Old"]}
    assert days(cast, cast.viewer, q="ol") == {"today": ["Old"]}, "a search finds it all the same"
    assert days(cast, cast.owner) == {"today": ["New", "Old", "Plans"]}
    assert signed_in(cast.owner).get(f"/chat/api/chats/{plans.public_id}").json()["mark"] == ""
    listed = viewer.get("/chat/api/chats?mark=archived").json()["items"]
    assert [chat["title"] for chat in listed] == ["Old"]
    put(viewer, plans, "archived"), put(viewer, old, "")
    assert days(cast, cast.viewer) == {"today": ["New", "Old"]}
    assert new.marks.count() == 0


def test_what_is_refused_changes_nothing(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    passing = make_chat(cast.owner, cast.workspace, is_temporary=True)
    owner = signed_in(cast.owner)
    for wrong in ("starred", None, 1, ["pinned"], "PINNED", "x" * 10_000):
        assert put(owner, chat, wrong).status_code == 422
    assert put(owner, passing, "pinned").status_code == 422
    assert put(signed_in(cast.stranger), chat, "pinned").status_code == 404
    hidden = make_chat(cast.owner, cast.workspace, is_private=True)
    assert put(signed_in(cast.editor), hidden, "pinned").status_code == 404
    assert not ChatMark.objects.exists()


def test_a_chat_that_is_no_longer_theirs_to_see_is_in_no_list(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Plans")
    put(signed_in(cast.viewer), chat, "pinned")
    Chat.objects.update(is_private=True)
    assert days(cast, cast.viewer) == {}
    put(signed_in(cast.owner), chat, "archived")
    assert days(cast, cast.owner, archived=True) == {"today": ["Plans"]}
    assert days(cast, cast.viewer, archived=True) == {}


def test_the_page_archives_with_undo_and_shows_what_is_put_away(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Plans")
    owner, mark = signed_in(cast.owner), f"/chats/{chat.public_id}/mark/"
    said = owner.post(mark, {"mark": "archived"})
    assert "Archived “Plans”" in said.content.decode() and said["HX-Trigger"] == "chats:changed"
    where = f"/workspaces/{cast.workspace.public_id}/chats/list/"
    assert "Plans" not in owner.get(where).content.decode()
    away = owner.get(f"{where}?archived=on").content.decode()
    assert 'data-chat-menu="archived deletable"' in away and "Plans" in away
    owner.post(mark)
    assert "Plans" in owner.get(where).content.decode()
    assert "No chat is archived." in owner.get(f"{where}?archived=on").content.decode()


@pytest.mark.django_db(transaction=True)
def test_two_requests_at_once_pin_no_more_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    cast = make_cast()
    monkeypatch.setattr(tags_and_pins, "MOST_PINNED", 1)
    chats = [make_chat(cast.owner, cast.workspace) for _ in range(4)]

    def pin(chat: Chat) -> bool:
        try:
            tags_and_pins.set_mark(chat, "pinned", by=cast.owner)
            return True
        except Invalid as refused:
            return "at most 1" not in str(refused)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(pin, chats)) == [False, False, False, True]
    assert ChatMark.objects.get().kind == "pinned"
