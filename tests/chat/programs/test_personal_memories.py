"""A personal answer, or one derived from it, over MCP and ``/v1``: only its user's programs can read it."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from chat.models import Chat, MessageRole
from chat.turns import turn
from memories.models import Extraction, Memory, Scope
from memories.writing.extraction_jobs import extract
from tests.chat.programs.conftest import client_of
from tests.chat.programs.test_mcp import called
from tests.conftest import Cast
from tests.factories import make_chat, make_key_text, make_memory, make_message
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from workspaces.access import default_workspace
from workspaces.models import Membership, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "walnuts"
KNOWN = "The diagnosis of the owner is walnuts"


@pytest.fixture
def chat(people: Cast) -> Chat:
    """Create a chat with a personal answer, written before the editor and the viewer became members."""
    chat = make_chat(people.owner, people.workspace, title="Health")
    question = make_message(chat, "What do you know of the diagnosis?")
    made_at = timezone.now() - timedelta(days=1)
    make_message(chat, KNOWN, MessageRole.ASSISTANT, reply_to=question, personal="held", created_at=made_at)
    Membership.objects.filter(user=people.owner).update(created_at=made_at - timedelta(days=1))
    return chat


def test_a_program_of_who_came_later_finds_no_personal_answer_over_mcp(
    door: str, people: Cast, chat: Chat
) -> None:
    for person, finds in ((people.owner, True), (people.editor, False)):
        key = make_key_text(person, people.workspace)
        found = called(door, key, "search_workspace", query="diagnosis walnuts", types=["message"])
        assert not found.is_error
        assert (SECRET in json.dumps(found.structured_content)) is finds, person
        assert (SECRET in found.content[0].text) is finds


def test_what_stays_on_this_machine_is_nowhere_over_mcp(door: str, people: Cast, chat: Chat) -> None:
    """The program's model is unknown, so it counts as a remote one."""
    chat.messages.filter(role=MessageRole.ASSISTANT).update(stays_here=True)
    key = make_key_text(people.owner, people.workspace)
    found = called(door, key, "search_workspace", query="diagnosis walnuts", types=["message"])
    assert SECRET not in json.dumps(found.structured_content)
    Workspace.objects.filter(pk=people.workspace.pk).update(local_only=True)
    refused = called(door, key, "search_workspace", query="diagnosis walnuts")
    assert refused.is_error and SECRET not in refused.content[0].text


def ask(door: str, by: Any, workspace: Workspace, said: str = "What do you know of the diagnosis?") -> Any:
    client = client_of(door, by, workspace)
    answer = client.chat.completions.create(
        model="scripted-model", messages=[{"role": "user", "content": said}]
    )
    assert turn.wait_until_idle(10)
    return answer


def test_what_v1_was_told_of_the_persons_own_becomes_no_memory_of_the_workspace(
    door: str, people: Cast, scripted_model: ScriptedOpenAI
) -> None:
    personal = make_memory(KNOWN, people.owner, scope=Scope.USER)
    scripted_model.script(Answer("It is walnuts, says Doctor Vandermeer."))
    answer = ask(door, people.owner, people.workspace)
    assert answer.memoryhub["used"] == [personal.public_id]
    found = json.dumps([{"text": "Doctor Vandermeer found walnuts", "kind": "fact", "importance": 0.7}])
    scripted_model.script(Answer(found))
    extract(Extraction.objects.get().pk, now=timezone.now())
    [made] = Memory.objects.exclude(pk=personal.pk)
    assert (made.owner, made.workspace) == (people.owner, default_workspace(people.owner))
    assert not Memory.objects.visible_to(people.editor).exists()
