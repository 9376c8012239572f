"""The readers of a chat in its header, changed by one click with an Undo; and a temporary chat's header."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from chat.models import Chat, MessageRole, MessageStatus
from tests.conftest import Cast
from tests.factories import make_chat, make_message
from tests.signing_in import signed_in
from workspaces.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("chat.turns.turn.start", lambda *args: None)
    yield


def header(person: User, chat: Chat) -> str:
    html = signed_in(person).get(f"/chats/{chat.public_id}/").content.decode()
    return html.split('id="readers"')[1].split("</header>")[0]


def test_the_header_says_who_reads_and_its_creator_changes_it(cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace, title="Plans")
    assert "Everyone in Shared (3)" in header(cast.viewer, chat)
    assert "/private/" not in header(cast.owner, chat), "only who began it may say"
    client = signed_in(cast.editor)
    answer = client.post(f"/chats/{chat.public_id}/private/", {"private": "on"})
    said = answer.content.decode()
    assert "Other members can no longer read this chat." in said
    assert f"/chats/{chat.public_id}/private/?private=off" in said
    assert answer["HX-Trigger"] == "chats:changed"
    assert signed_in(cast.viewer).get(f"/chats/{chat.public_id}/").status_code == 404
    assert "Share with the workspace" in header(cast.editor, chat)
    undone = client.post(f"/chats/{chat.public_id}/private/?private=off").content.decode()
    assert "toast" not in undone
    assert 'hx-swap-oob="true"' in undone
    chat.refresh_from_db()
    assert not chat.is_private


def test_a_new_chat_is_private_from_its_first_message_if_that_was_chosen(cast: Cast) -> None:
    client, page = signed_in(cast.owner), f"/workspaces/{cast.workspace.public_id}/"
    assert 'form="composer"' in client.get(page).content.decode()
    client.post(f"{page}chats/", {"content": "Hello", "private": "on"})
    assert Chat.objects.get().is_private


def test_a_temporary_chat_never_shows_memory_or_a_summary(cast: Cast) -> None:
    User.objects.update(memory_default=True)
    client, page = signed_in(cast.owner), f"/workspaces/{cast.workspace.public_id}/"
    assert "memory-chip" in client.get(page).content.decode()
    new = client.get(page, {"temporary": "on"}).content.decode()
    assert ("Temporary, only you" in new, "memory-chip" in new) == (True, False)
    assert '<input type="hidden" name="temporary" value="on">' in new
    client.post(f"{page}chats/", {"content": "Hello", "temporary": "on"})
    chat = Chat.objects.get()
    shown = client.get(f"/chats/{chat.public_id}/").content.decode()
    assert "Temporary, only you" in header(cast.owner, chat)
    assert "memory-chip" not in shown
    assert "Summary of this chat" not in shown


def test_nothing_is_edited_while_an_answer_is_written(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    question = make_message(chat, "When?")
    answer = make_message(
        chat, "In", role=MessageRole.ASSISTANT, status=MessageStatus.STREAMING, beat_at=timezone.now()
    )
    answer.reply_to = question
    answer.save()
    edit = f"/chats/{chat.public_id}/messages/{question.public_id}/edit/"
    refused: Any = signed_in(cast.owner).get(edit)
    assert (refused.status_code, "Stop it or wait" in refused.content.decode()) == (409, True)
    answer.status = MessageStatus.DONE
    answer.save()
    assert signed_in(cast.owner).get(edit).status_code == 200
