"""The profile in a turn: its user, its budget beside recalled memories, and its line in the receipt."""

import json
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from chat.chats.personal_memories import use_personal
from chat.models import Chat, Message, PersonalUse
from chat.prompting.context import PROFILE_TOKENS, profile_block
from chat.prompting.prompt_text import tokens
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memories.models import Memory, Scope
from memories.recalling.profile import hide_line
from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import receipt_for
from tests.api import Api
from tests.chat.hostile_memories import HOSTILE
from tests.conftest import Cast
from tests.factories import make_chat, make_memory
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from workspaces.models import User

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "When does the bakery open?"
ASKED, SAID, OWN = "The bakery opens at seven", "I am allergic to nuts", "I dream of a small boat"
OTHERS = "Eddie is afraid of geese"


@pytest.fixture(autouse=True)
def model(scripted_model: ScriptedOpenAI) -> ScriptedOpenAI:
    scripted_model.respond = lambda request: Answer("At seven.")
    return scripted_model


@pytest.fixture
def chat(cast: Cast) -> Chat:
    make_memory(ASKED, cast.editor, cast.workspace)
    make_memory(SAID, cast.owner, cast.workspace)
    make_memory(OWN, cast.owner, scope=Scope.USER)
    make_memory(OTHERS, cast.editor, scope=Scope.USER)
    User.objects.update(profile_in_chats=True)
    return make_chat(cast.owner, cast.workspace, memory_enabled=True)


def ask(chat: Chat, content: str = QUESTION, **options: Any) -> Message:
    turn = begin_turn(
        chat, content=content, by=chat.created_by, now=timezone.now(), **{"memory_enabled": True} | options
    )
    assert wait_until_idle(20)
    turn.answer.refresh_from_db()
    assert turn.answer.status == "done"
    return turn.answer


def blocks(model: ScriptedOpenAI) -> list[str]:
    """Return the profile blocks of the last request."""
    messages = model.chat_requests[-1].messages
    return [each["content"] for each in messages if str(each["content"]).startswith("<profile>")]


def test_it_is_given_beside_what_was_recalled_and_the_receipt_says_so(
    cast: Cast, chat: Chat, model: ScriptedOpenAI
) -> None:
    answer = ask(chat)
    [block] = blocks(model)
    assert SAID in block
    assert ASKED not in block, "recalled anyway"
    assert json.dumps(model.chat_requests[-1].body).count(ASKED) == 1
    receipt = receipt_for(answer.public_id, cast.owner)
    assert receipt is not None
    assert [(item.content, item.in_profile) for item in receipt.items.all() if item.used] == [
        (ASKED, False),
        (SAID, True),
    ]
    client = Client()
    client.force_login(cast.owner)
    assert "Profile: 1 line" in client.get(f"/chats/{chat.public_id}/").content.decode()
    page = client.get(f"/receipts/{answer.public_id}/").content.decode()
    assert f"/workspaces/{cast.workspace.public_id}/profile/" in page
    items = Api(cast.owner).get(f"{chat.public_id}/messages/{answer.public_id}/receipt").json()["items"]
    assert [item["in_profile"] for item in items if item["used"]] == [False, True]


def test_personal_lines_follow_the_rule_of_personal_memories(
    cast: Cast, chat: Chat, model: ScriptedOpenAI
) -> None:
    answer = ask(chat)
    assert OWN not in blocks(model)[0], "others read this chat"
    assert answer.personal == PersonalUse.NONE
    use_personal(chat, allowed=True, by=cast.owner)
    answer = ask(chat)
    assert OWN in blocks(model)[0]
    assert answer.personal == PersonalUse.HELD
    assert OTHERS not in json.dumps([request.body for request in model.chat_requests])
    receipt = receipt_for(answer.public_id, cast.editor)
    assert receipt is None or OWN not in [item.content for item in receipt.items.all()]


@pytest.mark.parametrize("off", ["no consent", "memory off", "temporary", "built-in model"])
def test_it_is_not_given(
    cast: Cast, chat: Chat, model: ScriptedOpenAI, settings: LazySettings, off: str
) -> None:
    if off == "no consent":
        User.objects.update(profile_in_chats=False)
    if off == "built-in model":
        settings.LLM_CAN_EXTRACT = False
    if off == "temporary":
        chat.is_private = chat.is_temporary = True
        chat.save()
    ask(chat, memory_enabled=off != "memory off")
    assert blocks(model) == []


def test_a_hidden_line_and_a_forgotten_memory_are_not_given(
    cast: Cast, chat: Chat, model: ScriptedOpenAI
) -> None:
    make_memory("I collect stamps", cast.owner, cast.workspace)
    hide_line(Memory.objects.get(content=SAID).public_id, cast.workspace, cast.owner, hidden=True)
    ask(chat)
    [block] = blocks(model)
    assert SAID not in block and "I collect stamps" in block


def test_of_the_workspace_only_what_stands_whatever_is_asked(
    cast: Cast, chat: Chat, model: ScriptedOpenAI
) -> None:
    make_memory("The ferry has a café", cast.editor, cast.workspace, category="fact")
    make_memory("Our cat is called Mog", cast.editor, cast.workspace, category="fact", pinned=True)
    make_memory("Never order on Sundays", cast.editor, cast.workspace, category="instruction")
    ask(chat)
    [block] = blocks(model)
    given = ["café" in block, "Mog" in block, "Sundays" in block]
    assert given == [False, True, True]


def test_it_stays_within_its_budget(cast: Cast, chat: Chat, model: ScriptedOpenAI) -> None:
    for number in range(12):
        make_memory(f"I own boat {number}, " + "which is blue " * 12, cast.owner, cast.workspace)
    ask(chat)
    [block] = blocks(model)
    assert 3 < block.count("\n- (") < 12
    assert tokens(block) <= PROFILE_TOKENS


def test_hostile_memories_stay_one_line_of_data_each() -> None:
    for text in HOSTILE:
        memories = [Memory(content=each, created_at=timezone.now()) for each in (text, "Olive likes tea")]
        block = profile_block([Recalled(memory, 0.0, {}, is_brief=True) for memory in memories])
        inside = block.removeprefix("<profile>\n").removesuffix("\n</profile>")
        assert len(inside.splitlines()) == 3, text
        assert not set("<>") & set(inside), text
