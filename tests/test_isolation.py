"""Private and temporary chats are hidden from others in their workspace, owners included, by every route."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.models import Chat, Message, MessageRole
from chat.turns.remember_this import remember_message
from memories import tasks
from memories.models import Memory, Receipt, ReceiptItem, Scope
from memories.writing import extraction_jobs as run
from memoryhub import pubsub
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from tests.routes import ROWS, Row
from tests.test_access_matrix import ask, cookies_of
from tests.world import World, make_world
from workspaces.access import default_workspace
from workspaces.models import User

SECRET = "kumquat"
KINDS = [{"is_private": True}, {"is_temporary": True}]
OF_A_CHAT = [
    replace(row, deleted=False)
    for row in ROWS
    if any(f"{name}>" in row.route for name in ("chat_id", "message_id", "msg_id"))
]

pytestmark = pytest.mark.django_db


def hidden_worlds(cast: Cast) -> list[World]:
    """Create the world of the access matrix with hidden chats of both kinds, the editor's. Each world names one."""
    world = make_world(cast)
    return [_with_hidden_chat(world, cast, kind) for kind in KINDS]


def _with_hidden_chat(world: World, cast: Cast, kind: dict[str, bool]) -> World:
    chat = make_chat(cast.editor, cast.workspace, title=f"{SECRET} plans", **kind)
    question = make_message(chat, f"What of the {SECRET}?")
    answer = make_message(chat, f"The {SECRET} is ripe.", role=MessageRole.ASSISTANT, reply_to=question)
    memory = Memory.objects.get(public_id=world.ids["mem_id"])
    receipt = Receipt.objects.create(
        message_id=answer.public_id,
        workspace=cast.workspace,
        user=cast.editor,
        ranking="hybrid",
        threshold=0.3,
    )
    ReceiptItem.objects.create(
        receipt=receipt, memory=memory, position=1, score=0.5, content=memory.content, used=True
    )
    hidden = {"chat_id": chat.public_id, "message_id": answer.public_id, "msg_id": answer.public_id}
    return replace(world, ids=world.ids | hidden)


def routes_left_open(cast: Cast, rows: list[Row]) -> list[str]:
    people = (cast.owner, cast.viewer, cast.stranger)
    found = []
    for world, row, person in product(hidden_worlds(cast), rows, people):
        with transaction.atomic():
            cookies = cookies_of(person, fresh=bool(row.fresh))
            if (status := ask(row, world.url(row), world.data(row), cookies)) != 404:
                chat = Chat.objects.get(public_id=world.ids["chat_id"])
                found.append(f"{row} answers {person} with {status} (private: {chat.is_private})")
            transaction.set_rollback(True)
    return found


def test_no_route_opens_a_hidden_chat_for_others(cast: Cast) -> None:
    assert routes_left_open(cast, [row for row in OF_A_CHAT if not row.in_threads]) == []


@pytest.mark.django_db(transaction=True)
def test_no_stream_opens_a_hidden_chat_for_others(cast: Cast) -> None:
    assert routes_left_open(cast, [row for row in OF_A_CHAT if row.in_threads]) == []


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def lists_of(cast: Cast) -> list[str]:
    ws = cast.workspace.public_id
    return [
        f"/workspaces/{ws}/",
        f"/workspaces/{ws}/settings/",
        f"/workspaces/{ws}/chats/list/",
        f"/workspaces/{ws}/chats/list/?q={SECRET}",
        f"/workspaces/{ws}/memories/",
        f"/workspaces/{ws}/memories/?part=list&q={SECRET}",
        "/chat/api/chats",
        f"/chat/api/chats?workspace_id={ws}",
        f"/chat/api/workspaces/{ws}/memories",
    ]


def test_no_list_names_a_hidden_chat_to_others(cast: Cast) -> None:
    hidden = [world.ids["chat_id"] for world in hidden_worlds(cast)]
    for path in lists_of(cast):
        body = signed_in(cast.owner).get(path).content.decode()
        assert [each for each in hidden if each in body] == [], path
        echoed = body.replace(f"“{SECRET}”", "").replace(f'?q={SECRET}"', "")  # the sidebar repeats the query
        assert SECRET not in echoed, path


def test_a_memory_of_a_hidden_chat_shows_no_more_than_itself(cast: Cast) -> None:
    """Its creator saved one message for themselves by the button, not the messages around it."""
    for kind in KINDS:
        chat = make_chat(cast.editor, cast.workspace, title=f"{SECRET} plans", **kind)
        make_message(chat, f"Before: the {SECRET}")
        message = make_message(chat, "The garden has a pond")
        make_message(chat, f"After: the {SECRET}")
        memory = remember_message(message, by=cast.editor, now=timezone.now()).memory
        assert memory.source_excerpt == "", kind
        assert (memory.scope, memory.owner) == (Scope.USER, cast.editor), "what it came from is theirs alone"
        args = [memory.workspace.public_id, memory.public_id]
        own = signed_in(cast.editor).get(reverse("memories:card", args=args)).content.decode()
        assert "pond" in own and f"the {SECRET}" not in own, kind
        other = signed_in(cast.owner)
        for name in ("card", "history"):
            for place in (memory.workspace, cast.workspace):
                page = reverse(f"memories:{name}", args=[place.public_id, memory.public_id])
                assert other.get(page).status_code == 404, kind
        panel = other.get(reverse("memories:panel", args=[cast.workspace.public_id])).content.decode()
        assert "pond" not in panel and SECRET not in panel, kind


def private_turn(cast: Cast) -> tuple[Chat, Message]:
    chat = make_chat(cast.editor, cast.workspace, is_private=True)
    question = make_message(chat, "My kumquat harvest is on March 15 and I am vegetarian.")
    return chat, make_message(chat, "Noted.", role=MessageRole.ASSISTANT, reply_to=question)


def test_what_is_noticed_in_a_private_chat_stays_its_creators(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(pubsub, "publish", lambda channel, name, data=None: heard.append(channel))
    chat, answer = private_turn(cast)
    extraction = run.queue_extraction(
        workspace=cast.workspace,
        user=cast.editor,
        chat_id=chat.public_id,
        message_id=answer.public_id,
        source_type="auto_chat",
        now=timezone.now(),
    )
    tasks.extract_turn(extraction_id=extraction.pk)
    stored = list(Memory.objects.all())
    assert stored
    for memory in stored:
        assert (memory.scope, memory.owner) == (Scope.USER, cast.editor)
        assert (memory.workspace, memory.source_excerpt) == (default_workspace(cast.editor), "")
    assert not Memory.objects.visible_to(cast.owner).exists()
    assert f"workspace:{cast.workspace.public_id}" not in heard


def test_an_id_of_a_hidden_chat_tells_nothing_as_a_place_in_the_sidebar(cast: Cast) -> None:
    now = timezone.now()
    make_chat(cast.owner, cast.workspace, title="Older", active_at=now - timedelta(days=2))
    hidden = make_chat(cast.editor, cast.workspace, is_private=True, active_at=now - timedelta(days=1))
    path = reverse("chat:chat_list", args=[cast.workspace.public_id])
    assert "Older" in signed_in(cast.editor).get(path, {"before": hidden.public_id}).content.decode()
    assert "Older" not in signed_in(cast.owner).get(path, {"before": hidden.public_id}).content.decode()


def test_an_id_of_a_personal_memory_tells_nothing_as_a_place_in_the_panel(cast: Cast) -> None:
    now, home = timezone.now(), default_workspace(cast.editor)
    home.memberships.create(user=cast.owner, role="viewer")
    make_memory("An older one", cast.editor, home, now=now - timedelta(days=2))
    personal = make_memory("A personal one", cast.editor, home, scope=Scope.USER, now=now - timedelta(days=1))
    path = reverse("memories:panel", args=[home.public_id])
    assert "An older one" in signed_in(cast.editor).get(path, {"before": personal.public_id}).content.decode()
    page: Any = signed_in(cast.owner).get(path, {"before": personal.public_id})
    assert "An older one" not in page.content.decode()
