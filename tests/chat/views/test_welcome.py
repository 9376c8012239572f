"""The suggestions of an empty chat: only those that the user and the model can carry out."""

import re
from html import unescape
from typing import Any

import pytest
from django.utils import timezone

from chat.models import Chat
from memories.models import Memory
from tests.chat.views.test_pages import url
from tests.conftest import Cast
from tests.factories import make_chat, make_connection, make_memory
from tests.signing_in import signed_in
from workspaces.models import User

pytestmark = pytest.mark.django_db


def test_what_the_model_cannot_do_well_is_not_proposed(cast: Cast, settings: Any) -> None:
    """The built-in model gets no starters; a capable one does."""
    settings.EMBEDDED_MODEL, settings.LLM_BASE_URL, settings.LLM_CAN_EXTRACT = True, "", False
    settings.MEMORY_ENABLED = True
    page = f"/workspaces/{cast.workspace.public_id}/"
    small = signed_in(cast.owner).get(page).content.decode()
    assert "data-prompt=" not in small and "Add a document" in small and "built-in model is small" in small
    assert "Ask an administrator to connect a better one." in small
    settings.PEOPLE_MAY_CONNECT = True
    assert 'href="/connections/"' in signed_in(cast.owner).get(page).content.decode()
    assert "/connections/here/" not in signed_in(cast.owner).get(page).content.decode()
    settings.PEOPLE_MAY_CONNECT_INTERNAL = True  # then it probes at once: two clicks to a local model
    assert 'action="/connections/here/"' in signed_in(cast.owner).get(page).content.decode()
    settings.PEOPLE_MAY_CONNECT_INTERNAL = False
    able = make_connection(cast.owner)
    chosen = signed_in(cast.owner).get(page, {"connection": able.public_id}).content.decode()
    assert chosen.count("data-prompt=") == 3 and "is small" not in chosen
    settings.EMBEDDED_MODEL, settings.LLM_BASE_URL = False, "https://models.example.org/v1"
    configured = signed_in(cast.owner).get(page).content.decode()
    assert "data-prompt=" not in configured and "is small" not in configured, "one that cannot extract"


def test_what_is_connected_is_offered_where_the_small_one_answers(cast: Cast) -> None:
    """A click uses it: for the workspace by its owner, for the new chat by other editors."""
    page, model = url("workspace", cast.workspace.public_id), f"/workspaces/{cast.workspace.public_id}/model/"
    house, hers = make_connection(name="House"), make_connection(cast.stranger, name="Hers")
    owners = signed_in(cast.owner).get(page).content.decode()
    assert f'value="{house.public_id}">Use “House”' in owners and "Hers" not in owners
    editors = signed_in(cast.editor).get(page).content.decode()
    assert f'?connection={house.public_id}">Use “House”' in editors and "Ask an administrator" not in editors
    assert "House" not in signed_in(cast.viewer).get(page).content.decode()
    client = signed_in(cast.owner)
    for wrong in (hers.public_id, "conn_nobody"):
        assert client.post(model, {"connection": wrong, "from": "chat"}).status_code == 422
    assert client.post(model, {"connection": house.public_id, "from": "chat"})["Location"] == page
    assert "is small" not in client.get(page).content.decode()
    cast.workspace.connection, cast.workspace.local_only = None, True
    cast.workspace.save()
    kept_here = client.get(page).content.decode()
    assert "House" not in kept_here and "Ask an administrator" in kept_here, "it may not be asked here"


def test_starters_are_offered_only_where_they_come_true(cast: Cast, settings: Any) -> None:
    """The workspace must be empty, and the user may write there and has not turned memory off."""
    able = make_connection(name="House")
    cast.workspace.connection = able
    cast.workspace.save()
    page = url("workspace", cast.workspace.public_id)

    def starters(user: User, **asked: str) -> int:
        return signed_in(user).get(page, asked).content.decode().count("data-prompt=")

    assert starters(cast.owner) == 3, "the question about memory is not answered yet"
    User.objects.update(memory_default=False)
    assert starters(cast.owner) == 0, "memory is turned off"
    User.objects.update(memory_default=True)
    assert [starters(user) for user in (cast.owner, cast.editor, cast.viewer)] == [3, 3, 0]
    assert starters(cast.owner, temporary="on") == 0
    settings.MEMORY_ENABLED = False
    assert starters(cast.owner) == 0, "the operator's veto"
    settings.MEMORY_ENABLED = None
    User.objects.filter(pk=cast.editor.pk).update(memory_default=False)
    assert starters(cast.editor) == 0
    make_chat(cast.editor, cast.workspace, is_private=True)
    assert starters(cast.owner) == 3, "nothing is told of a chat that is somebody else's alone"
    chat = make_chat(cast.owner, cast.workspace)
    assert starters(cast.owner) == 0
    Chat.objects.filter(pk=chat.pk).update(deleted_at=timezone.now())
    assert starters(cast.owner) == 3
    make_memory("The house is blue", cast.owner, cast.workspace)
    assert starters(cast.owner) == 3, "one of them about the house"


def test_questions_are_made_from_what_is_remembered_and_may_be_read(cast: Cast, settings: Any) -> None:
    """All models answer them with a memory, small ones too; without a memory no question is suggested."""
    User.objects.update(memory_default=True)
    page, place = url("workspace", cast.workspace.public_id), cast.workspace
    remembered = (
        "Wir sind per Du.",
        "I am vegetarian",
        "My locker is blue",
        "My project deadline is March 15",
    )
    for text in remembered:
        make_memory(text, cast.owner, place)
    Memory.objects.filter(content="My locker is blue").update(content="My PIN is 4711")
    make_memory("My project deadline is March 15 and I am vegetarian", cast.owner, place)
    kept = make_memory("My garden is large", cast.owner, place, scope="user")
    Memory.objects.filter(pk=kept.pk).update(workspace=place)  # as after a workspace stopped being shared

    def offered(user: User, **asked: str) -> list[str]:
        html = signed_in(user).get(page, asked).content.decode()
        return [unescape(each) for each in re.findall(r'data-prompt="([^"]*)"', html)]

    questions = [
        "What do you remember about my project deadline?",
        "What do you know about me?",
    ]
    assert offered(cast.owner) == questions, "others read what is asked here"
    assert offered(cast.editor) == [], "of another's words nothing is asked as if they were one's own"
    assert offered(cast.viewer) == offered(cast.owner, temporary="on") == []
    settings.EMBEDDED_MODEL, settings.LLM_BASE_URL = False, None
    assert offered(cast.owner) == []
    html = signed_in(cast.owner).get(page).content.decode()
    assert "No model is connected" in html and "Ask an administrator to connect one." in html
    User.objects.update(memory_default=False)
    settings.EMBEDDED_MODEL = True
    assert offered(cast.owner) == []
