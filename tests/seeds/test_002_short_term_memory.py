"""Seed 002: short-term memory of this chat and of others, in the prompt."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.models import Chat, Message, MessageRole, ShortTermMemory
from tests.api import Api
from tests.fakes.openai_server import Answer, Call
from tests.seeds.conftest import Hub
from workspaces.access import default_workspace
from workspaces.models import User

TAG = "[KNOWLEDGE_SHORT_TERM_MEMORY]"
TOOL = "update_short_term_memory"
HINT, FIRST = "has changed", "no running summary yet"


def chat_with_summary(hub: Hub, summary: str, *, hours: int = 1, **fields: object) -> str:
    """Create another chat with a summary."""
    chat = hub.chat(**fields)
    assert hub.api.patch(f"{chat}/short-term", {"summary": summary}).status_code == 200
    moment = timezone.now() - timedelta(hours=hours)
    ShortTermMemory.objects.filter(chat__public_id=chat).update(touched_at=moment)
    return chat


def chat_with_messages(hub: Hub, messages: int = 1) -> str:
    """Create a chat with this many messages."""
    chat = hub.chat(title="Here")
    row = Chat.objects.get(public_id=chat)
    Message.objects.bulk_create(
        Message(chat=row, content=f"We talk about plums {number}", role=role, author=hub.cast.owner)
        for number, role in zip(
            range(messages), [MessageRole.USER, MessageRole.ASSISTANT] * messages, strict=False
        )
    )
    return chat


def shown(hub: Hub, chat: str = "", text: str = "And what about pears?") -> str:
    hub.say(chat or chat_with_messages(hub), text)
    return "\n".join(str(said["content"]) for said in hub.items(TAG))


# --- Mission


def test_other_chats_are_shown_to_the_model(turns: Hub) -> None:
    chat_with_summary(turns, "The launch moves to May", title="Launch")
    assert "Launch (1 hour ago): The launch moves to May" in shown(turns)


def test_this_chats_running_summary_is_shown_to_the_model(turns: Hub) -> None:
    chat = chat_with_summary(turns, "Plums are bought on Monday")
    assert "running summary of this chat" in shown(turns, chat)
    assert "Plums are bought on Monday" in shown(turns, chat)


def test_the_model_is_told_how_to_keep_the_summary(turns: Hub) -> None:
    assert TOOL in shown(turns)
    assert TOOL in turns.asked.tool_names


def test_a_long_chat_without_summary_is_asked_for_a_first_one_after_the_answer(turns: Hub) -> None:
    turns.say(chat_with_messages(turns, 6), "And what about pears?")
    [directive] = turns.items(FIRST)
    assert TOOL in directive["content"] and "after it" in directive["content"]


# --- Output


def test_every_item_is_tagged_and_in_the_persons_role(turns: Hub) -> None:
    chat_with_summary(turns, "The launch moves to May")
    shown(turns, chat_with_summary(turns, "Plums"))
    items = turns.items("hort")  # the word is in no other message
    assert len(turns.items(TAG)) == 3
    assert {said["role"] for said in items if said["content"].startswith(TAG)} == {"user"}


def test_the_directive_stands_before_the_latest_question_and_what_belongs_to_it(turns: Hub) -> None:
    turns.say(chat_with_messages(turns, 6), "And what about pears?")
    said = [str(message["content"]) for message in turns.asked.messages]
    [place] = [number for number, text in enumerate(said) if FIRST in text]
    assert said[-1] == "And what about pears?"
    assert not any("plums" in text for text in said[place:])


# --- Side effects


def test_the_tool_writes_the_summary(turns: Hub) -> None:
    chat = turns.chat()
    turns.model.script(Answer("Fine.", calls=[Call(TOOL, {"summary": "About plums"})]), Answer("Fine."))
    turns.say(chat, "Let us talk about plums")
    assert turns.api.get(f"{chat}/short-term").json()["summary"] == "About plums"


def test_private_chats_are_left_out_unless_the_workspace_lets_them(turns: Hub) -> None:
    turns.move_home()
    chat_with_summary(turns, "The secret plan", is_private=True)
    chat = chat_with_messages(turns)
    assert "The secret plan" not in shown(turns, chat)
    turns.api.patch(turns.ws, {"private_short_term": True})
    assert "The secret plan" in shown(turns, chat)


def test_other_workspaces_are_folded_in_once_the_person_opts_in(turns: Hub) -> None:
    chat_with_summary(turns, "A foreign plan")
    turns.move_home()
    chat_with_summary(turns, "A plan of ours", hours=2)
    chat = chat_with_messages(turns)
    assert "A foreign plan" not in shown(turns, chat)
    User.objects.filter(pk=turns.cast.owner.pk).update(short_term_everywhere=True)
    both = shown(turns, chat)
    assert both.index("A foreign plan") < both.index("A plan of ours")


def test_the_hint_names_the_tool_itself(turns: Hub) -> None:
    text = shown(turns)
    assert f"call {TOOL} once" in text and "{" not in text


# --- Invariants


def test_any_error_gives_nothing_and_the_turn_goes_on(turns: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    chat_with_summary(turns, "The launch moves to May")

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("chat.prompting.short_term_memory.recent", fail)
    answer = turns.say(chat_with_messages(turns, 6), "And what about pears?")
    assert answer["status"] == "done"
    assert turns.items(TAG) == turns.items(FIRST) == []


def test_other_chats_come_newest_first_and_three_at_most(turns: Hub) -> None:
    for hours in (4, 2, 3, 1):
        chat_with_summary(turns, f"Plan {hours}", hours=hours)
    text = shown(turns)
    assert [text.find(f"Plan {hours}") > 0 for hours in (1, 2, 3, 4)] == [True, True, True, False]
    assert text.index("Plan 1") < text.index("Plan 2") < text.index("Plan 3")


def test_summary_and_hint_are_items_of_their_own(turns: Hub) -> None:
    shown(turns, chat_with_summary(turns, "Plums"))
    items = [str(said["content"]) for said in turns.items(TAG)]
    assert len(items) == 2 and "Plums" in items[0] and HINT in items[1] and "Plums" not in items[1]


def test_no_hint_for_a_model_without_tools(turns: Hub, settings: Settings) -> None:
    settings.LLM_HAS_TOOLS = False
    assert "Plums" in (text := shown(turns, chat_with_summary(turns, "Plums"))) and HINT not in text


def test_no_hint_where_the_person_asks_for_something_lasting(turns: Hub) -> None:
    assert HINT not in shown(turns, text="Remember that I like pears")


@pytest.mark.parametrize(
    ("messages", "summary", "has_tools", "stands"),
    [(6, "", True, True), (6, "Plums", True, False), (3, "", True, False), (6, "", False, False)],
    ids=["all hold", "there is a summary", "too few messages", "no tools"],
)
def test_the_directive_stands_only_where_all_conditions_hold(
    turns: Hub, settings: Settings, messages: int, summary: str, has_tools: bool, stands: bool
) -> None:
    settings.LLM_HAS_TOOLS = has_tools
    chat = chat_with_messages(turns, messages)
    turns.api.patch(f"{chat}/short-term", {"summary": summary})
    turns.say(chat, "And what about pears?")
    assert bool(turns.items(FIRST)) is stands


# --- Configuration


def test_how_many_messages_are_enough_is_a_setting(turns: Hub, settings: Settings) -> None:
    assert settings.SHORT_TERM_MIN_MESSAGES == 6
    settings.SHORT_TERM_MIN_MESSAGES = 2
    turns.say(chat_with_messages(turns), "And what about pears?")
    assert turns.items(FIRST)


def test_how_many_other_chats_are_shown_is_a_setting(turns: Hub, settings: Settings) -> None:
    assert settings.SHORT_TERM_OTHER_CHATS == 3
    settings.SHORT_TERM_OTHER_CHATS = 1
    chat_with_summary(turns, "Plan 1", hours=1)
    chat_with_summary(turns, "Plan 2", hours=2)
    assert "Plan 1" in (text := shown(turns)) and "Plan 2" not in text


# --- Intended differences (docs/conformance.md)


@pytest.mark.parametrize("text", ["Thanks!", "I collect plums"], ids=["a courtesy", "a first message"])
def test_no_hint_where_nothing_can_have_changed(turns: Hub, text: str) -> None:
    chat = chat_with_messages(turns) if text == "Thanks!" else turns.chat()
    assert HINT not in shown(turns, chat, text)


def test_where_others_read_along_only_what_all_of_them_may_read_is_shown(turns: Hub) -> None:
    User.objects.filter(pk=turns.cast.owner.pk).update(short_term_everywhere=True)
    home = default_workspace(turns.cast.owner)
    chat_with_summary(turns, "A plan of my own", workspace_id=home.public_id)
    assert "A plan of my own" not in shown(turns)


def test_a_summary_is_kept_when_the_process_ends_and_expires_after_a_day(turns: Hub) -> None:
    chat = chat_with_summary(turns, "Plums")
    row = ShortTermMemory.objects.get(chat__public_id=chat)
    assert timedelta(hours=23) < row.expires_at - timezone.now() <= timedelta(hours=24)
    ShortTermMemory.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert Api(turns.cast.owner).get(f"{chat}/short-term").json()["summary"] == ""


def test_a_model_with_little_room_is_shown_nothing(turns: Hub, settings: Settings) -> None:
    settings.LLM_CONTEXT_TOKENS = 2048
    chat_with_summary(turns, "The launch moves to May")
    assert shown(turns) == ""
