"""Seed 002: short-term memory of this chat and of others, in the prompt."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.models import Chat, Message, MessageRole, ShortTermMemory
from tests.api import Api
from tests.fakes.openai_server import Answer
from tests.seeds.conftest import Hub
from tests.seeds.shown_elsewhere import without_a_test

FILE = "tests/chat/prompting/test_short_term.py::"
OTHERS, OWN, TURNS = (
    f"{FILE}TestOtherChats::",
    f"{FILE}TestOwnSummaryHintAndDirective::",
    f"{FILE}TestTurns::",
)
SHOWN = {
    "other chats are shown to the model": TURNS + "test_a_later_turn_and_another_chat_see_it",
    "this chat's running summary is shown to the model": TURNS + "test_a_later_turn_and_another_chat_see_it",
    "every item is tagged and in the person's role": OWN + "test_in_this_order_others_summary_hint",
    "summary and hint are items of their own": OWN + "test_in_this_order_others_summary_hint",
    "the tool writes the summary": TURNS + "test_the_model_writes_it_once_an_answer_and_it_is_distilled",
    "private chats are left out": OTHERS + "test_private_temporary_and_deleted_chats_are_not_shown",
    "unless the workspace lets them": OTHERS
    + "test_private_chats_are_shown_where_the_workspace_allows_it_to_their_own_person",
    "other workspaces once the person opts in": OTHERS
    + "test_other_workspaces_only_by_the_persons_own_choice",
    "any error gives nothing": OWN + "test_any_error_gives_nothing_and_a_line_in_the_log",
    "newest first and three at most": OTHERS + "test_three_at_most_the_one_touched_last_first_with_their_age",
    "no hint where something lasting is asked for": OWN + "test_conditions_of_hint_and_directive",
    "the directive only where all conditions hold": OWN + "test_conditions_of_hint_and_directive",
    "no hint where nothing can have changed": FILE + "test_hint_needs_an_earlier_message_and_words",
    "only what all readers may read": "tests/chat/test_personal.py"
    "::TestWhatTheModelIsShown::test_other_chats_in_short",
    "a model with little room is shown nothing": OTHERS
    + "test_other_chats_get_a_share_of_the_room_and_a_small_model_nothing",
}
TAG = "[KNOWLEDGE_SHORT_TERM_MEMORY]"
TOOL = "update_short_term_memory"
HINT, FIRST = "has changed", "no running summary yet"


def test_promises_shown_elsewhere_have_their_tests() -> None:
    assert without_a_test(SHOWN) == []


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
    roles = [MessageRole.USER, MessageRole.ASSISTANT] * messages
    Message.objects.bulk_create(
        Message(chat=row, content=f"We talk about plums {number}", role=role, author=hub.cast.owner)
        for number, role in zip(range(messages), roles, strict=False)
    )
    return chat


def shown(hub: Hub, chat: str = "", text: str = "And what about pears?") -> str:
    hub.say(chat or chat_with_messages(hub), text)
    return "\n".join(str(said["content"]) for said in hub.items(TAG))


def test_a_long_chat_is_told_of_others_how_to_keep_a_summary_and_to_write_a_first_one(turns: Hub) -> None:
    """The directive stands before the latest question and what belongs to it; the hint names the tool itself."""
    chat_with_summary(turns, "The launch moves to May", title="Launch")
    text = shown(turns, chat_with_messages(turns, 6))
    assert "Launch (1 hour ago): The launch moves to May" in text
    assert f"call {TOOL} once" in text and "{" not in text and TOOL in turns.asked.tool_names
    [directive] = turns.items(FIRST)
    assert TOOL in directive["content"] and "after it" in directive["content"]
    said = [str(message["content"]) for message in turns.asked.messages]
    assert said[-1] == "And what about pears?"
    assert not any("plums" in each for each in said[said.index(directive["content"]) :])


def test_no_hint_for_a_model_without_tools(turns: Hub, settings: Settings) -> None:
    """It gets the summary, and is not asked for a first one either."""
    settings.LLM_HAS_TOOLS = False
    assert "Plums" in (text := shown(turns, chat_with_summary(turns, "Plums"))) and HINT not in text
    turns.say(chat_with_messages(turns, 6), "And what about pears?")
    assert turns.items(FIRST) == []


def test_an_error_ends_no_turn(turns: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("chat.prompting.short_term_memory.recent", fail)
    turns.model.script(Answer("Fine."))
    assert turns.say(chat_with_messages(turns, 6), "And what about pears?")["status"] == "done"
    assert turns.items(TAG) == turns.items(FIRST) == []


def test_how_many_messages_and_chats_are_enough_are_settings(turns: Hub, settings: Settings) -> None:
    assert (settings.SHORT_TERM_MIN_MESSAGES, settings.SHORT_TERM_OTHER_CHATS) == (6, 3)
    settings.SHORT_TERM_MIN_MESSAGES, settings.SHORT_TERM_OTHER_CHATS = 2, 1
    chat_with_summary(turns, "Plan 1", hours=1)
    chat_with_summary(turns, "Plan 2", hours=2)
    assert "Plan 1" in (text := shown(turns)) and "Plan 2" not in text
    assert turns.items(FIRST)


def test_a_summary_is_kept_when_the_process_ends_and_expires_after_a_day(turns: Hub) -> None:
    chat = chat_with_summary(turns, "Plums")
    row = ShortTermMemory.objects.get(chat__public_id=chat)
    assert timedelta(hours=23) < row.expires_at - timezone.now() <= timedelta(hours=24)
    ShortTermMemory.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert Api(turns.cast.owner).get(f"{chat}/short-term").json()["summary"] == ""
