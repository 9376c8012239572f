"""Moderating chats and messages: read, deleted softly, restored; never rewritten."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.models import Chat, Message
from tests.bench.bulk import insert_messages
from tests.conftest import Cast
from tests.factories import make_chat, make_message, make_user

pytestmark = pytest.mark.django_db
CHATS = "/admin/chat/chat/"
MESSAGES = "/admin/chat/message/"


@pytest.fixture
def admin_client() -> Client:
    client = Client()
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    return client


def run(client: Client, action: str, *rows: Chat) -> list[str]:
    chosen = {"action": action, "_selected_action": [row.pk for row in rows]}
    response = client.post(f"{CHATS}?state=every", chosen, follow=True)
    return [str(message) for message in response.context["messages"]]


def test_chats_are_deleted_softly_and_restored(admin_client: Client, cast: Cast) -> None:
    kept = make_chat(cast.editor, cast.workspace, title="Kept")
    gone = make_chat(cast.editor, cast.workspace, title="Gone", deleted_at=timezone.now())
    assert run(admin_client, "delete_softly", kept, gone) == ["1 chat deleted, 1 was already."]
    assert not Chat.objects.live().exists()
    assert run(admin_client, "restore", kept, gone) == ["2 chats restored."]
    assert Chat.objects.live().count() == 2
    assert run(admin_client, "restore", kept) == ["0 chats restored, 1 was not deleted."]


def test_actions_need_the_permission_they_name(cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace)
    moderator = make_user(is_staff=True)
    moderator.user_permissions.set(Permission.objects.filter(codename__in=["view_chat", "change_chat"]))
    client = Client()
    client.force_login(moderator)
    content = client.get(CHATS).content.decode()
    assert 'value="restore"' in content
    assert 'value="delete_softly"' not in content
    run(client, "delete_softly", chat)
    assert Chat.objects.live().count() == 1
    moderator.user_permissions.add(Permission.objects.get(codename="delete_chat"))
    assert run(client, "delete_softly", chat) == ["1 chat deleted."]


def test_neither_chats_nor_messages_can_be_rewritten(admin_client: Client, cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace, title="Title")
    message = make_message(chat, "What was said")
    assert admin_client.post(f"{CHATS}{chat.pk}/change/", {"title": "Other"}).status_code == 403
    assert admin_client.post(f"{MESSAGES}{message.pk}/change/", {"content": "Other"}).status_code == 403
    assert admin_client.post(f"{MESSAGES}{message.pk}/delete/", {"post": "yes"}).status_code == 403
    chat.refresh_from_db()
    message.refresh_from_db()
    assert (chat.title, message.content) == ("Title", "What was said")


def test_hostile_text_is_escaped(admin_client: Client, cast: Cast) -> None:
    hostile = "<script>alert('x')</script>"
    chat = make_chat(cast.editor, cast.workspace, title=hostile)
    message = make_message(chat, hostile, error=hostile)
    for page in (CHATS, MESSAGES, f"{CHATS}{chat.pk}/change/", f"{MESSAGES}{message.pk}/change/"):
        content = admin_client.get(page).content.decode()
        assert "<script>alert('" not in content
        assert "&lt;script&gt;alert" in content


def test_search_and_filters(admin_client: Client, cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace, title="About kettles")
    other = make_chat(cast.stranger, title="Private", is_private=True)
    first = make_message(chat, "Which kettle?")
    second = make_message(chat, "The green one.", role="assistant", status="failed")
    third = make_message(other, "Hello")

    def shown(page: str) -> list[Chat | Message]:
        return list(admin_client.get(page).context["cl"].result_list)

    assert shown(f"{CHATS}?q=kettles") == [chat]
    assert shown(f"{CHATS}?q={chat.public_id}") == [chat]
    assert shown(f"{CHATS}?q={cast.stranger.public_id}") == [other]
    assert shown(f"{CHATS}?workspace={cast.workspace.pk}") == [chat]
    assert shown(f"{CHATS}?state=deleted") == []
    assert shown(f"{MESSAGES}?chat={chat.pk}") == [second, first]
    assert shown(f"{MESSAGES}?q=green") == [second]
    assert shown(f"{MESSAGES}?q={third.public_id}") == [third]
    assert shown(f"{MESSAGES}?q={chat.public_id}") == [second, first]
    assert shown(f"{MESSAGES}?role=assistant") == [second]
    assert shown(f"{MESSAGES}?status=failed") == [second]


def test_lists_cost_the_same_queries_for_five_and_for_fifty(admin_client: Client, cast: Cast) -> None:
    def queries(page: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert admin_client.get(page).status_code == 200
        return len(captured)

    def more(number: int) -> None:
        for _ in range(number):
            make_message(make_chat(make_user(), cast.workspace, title="Long"), "long " * 200)

    pages = (CHATS, MESSAGES, f"{MESSAGES}?q=long")
    more(5)
    first = [queries(page) for page in pages]
    more(45)
    assert [queries(page) for page in pages] == first
    assert max(first) <= 8


def test_the_list_of_messages_reads_no_more_than_it_shows(admin_client: Client, cast: Cast) -> None:
    insert_messages(5_000, chat_id=make_chat(cast.owner, cast.workspace).pk)
    for query in ("", "?role=assistant", "?p=5"):
        with CaptureQueriesContext(connection) as captured:
            content = admin_client.get(MESSAGES + query).content.decode()
        assert "A long answer about kettles. " * 6 not in content
        listed = [q["sql"] for q in captured if q["sql"].startswith('SELECT "chat_message"')]
        assert len(listed) == 1
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN " + listed[0])
            assert "Seq Scan on chat_message" not in str(cursor.fetchall())
