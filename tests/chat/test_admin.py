"""Moderating chats and messages: read, soft-deleted, restored; never rewritten."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.models import Chat, Message
from tests.admin_pages import run_action, said
from tests.bench.bulk import insert_messages
from tests.conftest import Cast
from tests.factories import make_chat, make_message, make_user
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db
CHATS = "/admin/chat/chat/"
MESSAGES = "/admin/chat/message/"


@pytest.fixture
def admin_client() -> Client:
    client = Client()
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    return client


def run(client: Client, action: str, *rows: Chat) -> list[str]:
    return said(run_action(client, CHATS, action, *rows))


def test_chats_are_deleted_softly_and_restored(admin_client: Client, cast: Cast) -> None:
    kept = make_chat(cast.editor, cast.workspace, title="Kept")
    gone = make_chat(cast.editor, cast.workspace, title="Gone", deleted_at=timezone.now())
    assert run(admin_client, "delete_softly", kept, gone) == ["1 chat deleted, 1 left as before."]
    assert not Chat.objects.live().exists()
    assert run(admin_client, "restore", kept, gone) == ["2 chats restored."]
    assert Chat.objects.live().count() == 2
    assert run(admin_client, "restore", kept) == ["0 chats restored, 1 left as before."]


def test_neither_chats_nor_messages_can_be_rewritten(admin_client: Client, cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace, title="Title")
    message = make_message(chat, "What was said")
    assert admin_client.post(f"{CHATS}{chat.pk}/change/", {"title": "Other"}).status_code == 403
    assert admin_client.post(f"{MESSAGES}{message.pk}/change/", {"content": "Other"}).status_code == 403
    assert admin_client.post(f"{MESSAGES}{message.pk}/delete/", {"post": "yes"}).status_code == 403
    chat.refresh_from_db()
    message.refresh_from_db()
    assert (chat.title, message.content) == ("Title", "What was said")


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
    assert shown(f"{CHATS}?deleted_at__isempty=0") == []
    assert shown(f"{MESSAGES}?chat={chat.pk}") == [second, first]
    assert shown(f"{MESSAGES}?q=green") == [second]
    assert shown(f"{MESSAGES}?q={first.public_id}") == [first]
    assert shown(f"{MESSAGES}?q={third.public_id}") == []  # a private message, visible only in its chat
    assert shown(f"{MESSAGES}?chat={other.pk}") == [third]
    assert shown(f"{MESSAGES}?q={chat.public_id}") == [second, first]
    assert shown(f"{MESSAGES}?role__exact=assistant") == [second]
    assert shown(f"{MESSAGES}?status__exact=failed") == [second]


def test_what_was_said_in_private_hides_nothing_that_is_found(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chat.admin.EXACT_COUNT_UP_TO", 1)
    said = make_message(make_chat(cast.editor, cast.workspace), "Which kettle?")
    make_message(make_chat(cast.stranger, is_private=True), "My kettle")
    answer = staff_with("view_message").get(f"{MESSAGES}?q=kettle")
    assert list(answer.context["cl"].result_list) == [said]


def test_the_list_of_messages_reads_no_more_than_it_shows(admin_client: Client, cast: Cast) -> None:
    insert_messages(5_000, chat_id=make_chat(cast.owner, cast.workspace).pk)
    for query in ("", "?role__exact=assistant", "?p=5"):
        with CaptureQueriesContext(connection) as captured:
            content = admin_client.get(MESSAGES + query).content.decode()
        assert "A long answer about kettles. " * 6 not in content
        listed = [q["sql"] for q in captured if q["sql"].startswith('SELECT "chat_message"')]
        assert len(listed) == 1
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN " + listed[0])
            assert "Seq Scan on chat_message" not in str(cursor.fetchall())


def staff_with(*codenames: str) -> Client:
    client, user = Client(), make_user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return client


@pytest.mark.parametrize("kind", ["is_private", "is_temporary"])
def test_private_chats_are_read_by_a_permission_of_its_own(cast: Cast, kind: str) -> None:
    """The title and the text appear in no list, page, search, filter or choice."""
    secret = make_chat(cast.owner, cast.workspace, title="Leaving plans", **{kind: True})
    kept = make_message(secret, "I hand in my notice")
    open_one = make_chat(cast.owner, cast.workspace, title="Tea")
    make_message(open_one, "I drink tea")
    pages = [
        CHATS,
        f"{CHATS}?q=leaving",
        f"{CHATS}?q={secret.public_id}",
        f"{CHATS}{secret.pk}/change/",
        MESSAGES,
        f"{MESSAGES}?q=notice",
        f"{MESSAGES}?q={kept.public_id}",
        f"{MESSAGES}?chat={secret.pk}",
        f"{MESSAGES}{kept.pk}/change/",
        "/admin/autocomplete/?term=leaving&app_label=chat&model_name=message&field_name=chat",
    ]
    moderator = staff_with("view_chat", "view_message", "change_chat", "delete_chat")
    for page in pages:
        content = moderator.get(page, follow=True).content.decode()
        assert "Leaving plans" not in content, page
        assert "hand in my notice" not in content, page
    run(moderator, "delete_softly", secret)
    assert Chat.objects.live().filter(pk=secret.pk).exists()
    assert not AuditEvent.objects.filter(verb="moderated").exists()

    reader = staff_with("view_chat", "view_message", "read_private_chat")
    assert "Leaving plans" in reader.get(CHATS).content.decode()
    assert "hand in my notice" not in reader.get(f"{MESSAGES}?q=notice").content.decode()
    for page in (f"{MESSAGES}?chat={secret.pk}", f"{MESSAGES}{kept.pk}/change/"):
        assert "hand in my notice" in reader.get(page).content.decode()
    looks = AuditEvent.objects.filter(verb="moderated")
    assert [(look.target, look.details) for look in looks] == [
        (secret.public_id, {"read": "private_chat"})
    ] * 2
    assert "Tea" in reader.get(f"{MESSAGES}?chat={open_one.pk}").content.decode()
    assert looks.count() == 2


def test_the_permission_to_read_private_chats_opens_nothing_by_itself(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Leaving plans", is_private=True)
    client = staff_with("read_private_chat")
    for page in (CHATS, MESSAGES, f"{MESSAGES}?chat={chat.pk}"):
        assert client.get(page).status_code == 403
    assert not AuditEvent.objects.filter(verb="moderated").exists()


def test_only_one_chat_is_opened_at_a_time_and_every_look_is_recorded(cast: Cast) -> None:
    """Otherwise one look in the audit log could cover several private chats, or all."""
    first, second = (make_chat(cast.owner, cast.workspace, is_private=True) for _ in range(2))
    for chat in (first, second):
        make_message(chat, "I hand in my notice")
    reader = staff_with("view_message", "read_private_chat")
    both = (f"chat={first.pk}&chat={second.pk}", f"chat__exact={first.pk}", "chat=", "chat=x")
    for query in both:
        assert "hand in my notice" not in reader.get(f"{MESSAGES}?{query}", follow=True).content.decode()
    other = second.messages.get()
    assert reader.get(f"{MESSAGES}{other.pk}/change/?chat={first.pk}").status_code == 302
