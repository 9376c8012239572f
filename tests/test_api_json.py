"""The dicts that are made by hand are what the serializers of the schema say: the same names, order and values."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from chat.api.serializers import ChatJson, chat_json
from chat.models import Chat
from memories.api.queries import described, memory_json
from memories.api.serializers import MemoryJson
from memories.models import Memory, Scope
from memories.recalling.recall import recall
from tests.conftest import Cast
from tests.factories import HERE, make_agent, make_chat, make_connection, make_memory
from workspaces.api.serializers import PersonJson, WorkspaceJson, person_json, workspace_json
from workspaces.api.views import with_counts
from workspaces.models import Workspace
from workspaces.models.connection import Connection


def memories(cast: Cast) -> list[Memory]:
    """One with nothing that may be missing, and others with all of it."""
    older = make_memory("The house is blue", cast.owner, cast.workspace)
    newer = make_memory(
        "The house is green",
        cast.editor,
        cast.workspace,
        category="fact",
        key="house",
        summary="Green",
        tags=["house", "colour"],
        importance=0.7,
        pinned=True,
        expires_at=timezone.now() + timedelta(days=1),
        source_chat_id="chat_4fKq2TzB8mYw1RsX9vLcHn3D",
        source_message_id="msg_4fKq2TzB8mYw1RsX9vLcHn3D",
    )
    agent = make_agent(cast.owner, cast.workspace)
    of_agent = make_memory("Commas matter", cast.owner, cast.workspace, scope=Scope.AGENT, agent=agent)
    rows = Memory.objects.all()
    rows.filter(pk=newer.pk).update(may_replace=older, last_accessed_at=timezone.now())
    rows.filter(pk=of_agent.pk).update(author=None, may_replace=newer)
    return list(described(rows))


def test_of_memories(cast: Cast) -> None:
    shown = memories(cast)
    assert len(shown) == 3
    for memory in shown:
        assert list(memory_json(memory).items()) == list(MemoryJson(memory).data.items())


def test_a_replaced_memory_that_was_deleted_is_not_named(cast: Cast) -> None:
    older, newer = (
        make_memory("Blue", cast.owner, cast.workspace),
        make_memory("Red", cast.owner, cast.workspace),
    )
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    assert memory_json(described(Memory.objects.filter(pk=newer.pk)).get())["may_replace"] == older.public_id
    Memory.objects.filter(pk=older.pk).update(deleted_at=timezone.now())
    assert memory_json(described(Memory.objects.filter(pk=newer.pk)).get())["may_replace"] is None


@pytest.mark.parametrize("ranking", ["hybrid", "lexical", "semantic", "longterm"])
def test_a_recalled_memory_is_as_one_that_was_read(cast: Cast, ranking: str) -> None:
    memories(cast)
    found = recall(
        "house blue green",
        cast.workspace,
        cast.owner,
        ranking=ranking,
        threshold=0.0,
        reach=HERE,
        now=timezone.now(),
    )
    assert found.items
    for item in found.items:
        memory = described(Memory.objects.filter(pk=item.memory.pk)).get()
        assert memory_json(item.memory) == memory_json(memory)
        assert memory_json(memory)["last_accessed_at"] is not None  # just now


def test_of_chats(cast: Cast) -> None:
    gone: Connection = make_connection(deleted_at=timezone.now())
    chats = [
        make_chat(cast.owner, cast.workspace),
        make_chat(
            cast.owner,
            cast.workspace,
            title="House",
            agent=make_agent(cast.owner, cast.workspace),
            connection=make_connection(),
            memory_enabled=True,
        ),
        make_chat(cast.owner, cast.workspace, connection=gone, is_private=True),
    ]
    for chat in Chat.objects.filter(pk__in=[chat.pk for chat in chats]):
        assert list(chat_json(chat).items()) == list(ChatJson(chat).data.items())


def test_of_workspaces_and_people(cast: Cast) -> None:
    Workspace.objects.filter(pk=cast.workspace.pk).update(connection=make_connection())
    make_memory("The house is blue", cast.owner, cast.workspace)
    rows = with_counts(Workspace.objects.visible_to(cast.viewer), cast.viewer, timezone.now())
    for workspace in rows:
        assert list(workspace_json(workspace).items()) == list(WorkspaceJson(workspace).data.items())
    assert person_json(cast.viewer) == PersonJson(cast.viewer).data
