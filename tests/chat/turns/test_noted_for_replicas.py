"""A user who receives an event is pinned to the primary first, so that a replica cannot miss the row."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.utils import timezone

from chat.models import MessageRole
from chat.programs.mcp_server import call_tool
from chat.programs.mcp_tools import asking
from chat.turns.stream import follow_for
from memoryhub.database.replicas import MARGIN, is_pinned, pin_to_primary
from tests.factories import make_chat, make_key_text, make_message, make_user, make_workspace
from workspaces.accounts.keys import verify_key
from workspaces.models import User
from workspaces.views.event_streams import _may_still_see

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def _close_the_connection_of_async_tests() -> AsyncIterator[None]:
    yield
    await sync_to_async(connections.close_all)()


@pytest.fixture
def replicas(settings: Any) -> None:
    settings.REPLICAS = ["replica 1"]


def pins() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM workspaces_cache WHERE cache_key LIKE '%pinned:%'")
        return int(cursor.fetchone()[0])


def test_who_wrote_is_pinned_where_there_are_replicas_and_for_as_long_as_one_may_lack_it(
    settings: Any,
) -> None:
    person = make_user().pk
    pin_to_primary(person)
    assert pins() == 0, "without replicas nobody asks"
    settings.REPLICAS = ["replica 1"]
    pin_to_primary(person)
    assert is_pinned(person) and not is_pinned(person + 1)
    left = "SELECT extract(epoch FROM expires - now()) FROM workspaces_cache WHERE cache_key LIKE '%pinned:%'"
    with connection.cursor() as cursor:
        cursor.execute(left)
        assert settings.REPLICA_LAG < cursor.fetchone()[0] <= settings.REPLICA_LAG + MARGIN
        cursor.execute("UPDATE workspaces_cache SET expires = now() - interval '1 second'")
    assert not is_pinned(person)


@pytest.mark.usefixtures("replicas")
def test_an_event_of_a_workspace_is_noted_before_it_is_told() -> None:
    person = make_user()
    workspace = make_workspace(owner=person)
    _may_still_see(workspace.pk, person.pk, "", has_news=False)
    assert pins() == 0
    _may_still_see(workspace.pk, person.pk, "", has_news=True)
    assert pins() == 1


@pytest.mark.usefixtures("replicas")
def test_what_a_program_saves_is_noted_when_its_tool_has_done_it() -> None:
    """The write is recorded after the tool has run; a request with events is answered before."""
    person = make_user()
    User.objects.update(memory_default=True)
    workspace = make_workspace(owner=person)
    token = asking.set(verify_key(make_key_text(person, workspace), now=timezone.now()))
    try:
        call_tool("list_memories", {})
        assert pins() == 0
        call_tool("save_memory", {"content": "The vault opens at nine."})
        assert pins() == 1
    finally:
        asking.reset(token)


@pytest.mark.usefixtures("replicas")
async def test_so_is_the_end_of_an_answer() -> None:
    def answered() -> tuple[User, str, str]:
        chat = make_chat(make_user())
        answer = make_message(chat, role=MessageRole.ASSISTANT, content="At nine.")
        assert chat.created_by is not None
        return chat.created_by, chat.public_id, answer.public_id

    person, chat_id, answer_id = await sync_to_async(answered)()
    kinds = []
    async for event in follow_for(person, chat_id, answer_id):
        if event.kind == "done":
            assert await sync_to_async(pins)() == 1
        kinds.append(event.kind)
    assert kinds == ["token", "done"]
