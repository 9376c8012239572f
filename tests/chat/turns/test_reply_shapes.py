"""Replies with more or less than an answer: thoughts before it, notes beside it, an end at the length limit."""

import json

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from chat.models import Chat, Message, ShortTermMemory
from chat.models.answer_steps import Step
from chat.turns.services import begin_turn, continue_answer, retry_answer
from chat.turns.stream import StreamEvent, follow
from chat.turns.turn import wait_until_idle
from memoryhub.errors import Conflict
from tests.api import Api
from tests.factories import make_chat, make_memory, make_user
from tests.fakes.openai_server import HOLD, Answer, Call, Failure, ScriptedOpenAI
from workspaces.models import Membership, Role

pytestmark = pytest.mark.django_db(transaction=True)
THOUGHT = "The user wants tea.\n\nSencha <b>is green</b>."


def ask(chat: Chat, content: str = "Which tea is green?") -> Message:
    turn = begin_turn(chat, content=content, by=chat.created_by, now=timezone.now())
    assert wait_until_idle(15)
    turn.answer.refresh_from_db()
    return turn.answer


def page(chat: Chat, answer: Message) -> str:
    client = Client()
    client.force_login(chat.created_by)
    return client.get(f"/chats/{chat.public_id}/messages/{answer.public_id}/").content.decode()


def test_thought_is_a_step_and_not_part_of_the_answer(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    for pieces in (
        ("<think>", THOUGHT, "</think>\n\n", "Sencha."),
        ("<th", "ink>The user wa", THOUGHT[11:], "</thi", "nk>", "\n\nSen", "cha."),
        (THOUGHT, "\n</think>", "\n\nSencha."),
    ):
        chat = make_chat(chat.created_by)
        scripted_model.script(Answer(*pieces), Answer("And oolong?"))
        answer = ask(chat)
        assert (answer.status, answer.content, answer.has_thoughts) == ("done", "Sencha.", True), pieces
        step = Step.objects.get(message=answer)
        assert (step.kind, step.outcome, step.text) == ("thought", "thought", THOUGHT), pieces
        shown = page(chat, answer)
        assert "<summary>" in shown and "Thought about the answer" in shown, pieces
        assert "Sencha &lt;b&gt;is green" in shown, pieces
        listed = Api(chat.created_by).get(f"{chat.public_id}/messages").json()["items"][1]
        assert [each["kind"] for each in listed["steps"]] == ["thought"], pieces
        ask(chat, "And now?")
        assert "The user wants" not in str(scripted_model.chat_requests[-1].messages), (
            "the next turn is not told"
        )


def test_who_follows_never_keeps_what_was_retracted(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("I reason", HOLD, " on.\n</think>\n", "Sencha is green, I think."))
    turn = begin_turn(chat, content="Tea?", by=chat.created_by, now=timezone.now())

    async def read() -> list[StreamEvent]:
        events = []
        async for event in follow(turn.answer.public_id):
            events.append(event)
            if event.kind == "token" and event.data["text"] == "I reason":
                scripted_model.release()
        return events

    events = async_to_sync(read)()
    assert wait_until_idle(15)
    kinds = [event.kind for event in events]
    assert kinds.index("token") < kinds.index("restart") < len(kinds) - 1
    after = [each for each in events[kinds.index("restart") :] if each.kind == "token"]
    assert "".join(each.data["text"] for each in after) == "Sencha is green, I think."


def test_a_note_beside_the_answer_costs_no_second_request(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    note = Call("update_short_term_memory", {"summary": "About tea"})
    scripted_model.script(Answer("Sencha.", calls=[note]), Answer("I have updated the summary."))
    answer = ask(chat)
    assert (answer.status, answer.content) == ("done", "Sencha.")
    assert len(scripted_model.chat_requests) == 1
    assert ShortTermMemory.objects.get().summary == "About tea"
    scripted_model.unscript()
    for calls in (
        [note, Call("x_recall_memory", {"query": "tea"})],
        [Call("x_save_memory", {"content": "Likes tea"})],
    ):
        scripted_model.script(Answer("Let me see.", calls=calls), Answer("Done."))
        assert ask(chat).content == "Let me see.\n\nDone.", "what it asked for it is told"


def test_an_answer_cut_at_its_length_says_so_and_goes_on(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    make_memory("User likes green tea", chat.created_by)
    scripted_model.script(
        Answer("Green are sen", finish_reason="length"), Answer("cha and gyo", finish_reason="length")
    )
    answer = ask(chat)
    assert (answer.status, answer.error_code, answer.content) == ("done", "length", "Green are sen")
    shown = page(chat, answer)
    assert "length limit" in shown and f"/messages/{answer.public_id}/continue/" in shown
    listed = Api(chat.created_by).get(f"{chat.public_id}/messages").json()["items"][1]
    assert (listed["status"], listed["error"]["code"]) == ("done", "length")

    going_on = Api(chat.created_by).post(
        f"{chat.public_id}/messages/{answer.public_id}/continue", {"stream": False}
    )
    assert going_on.status_code == 201, going_on.content
    assert going_on.json()["answer"]["id"] == answer.public_id
    assert going_on.json()["answer"]["content"] == "Green are sencha and gyo"
    *_, question, so_far, wish = scripted_model.chat_requests[-1].messages
    assert (question["content"], so_far) == (
        "Which tea is green?",
        {"role": "assistant", "content": "Green are sen"},
    )
    assert "Go on exactly where it stops" in wish["content"]

    client = Client()
    client.force_login(chat.created_by)
    scripted_model.script(Answer("kuro."))
    streaming = client.post(f"/chats/{chat.public_id}/messages/{answer.public_id}/continue/").content.decode()
    assert "data-stream" in streaming
    assert wait_until_idle(15)
    answer.refresh_from_db()
    assert (answer.status, answer.error_code, answer.content) == ("done", "", "Green are sencha and gyokuro.")
    assert "Continue" not in page(chat, answer)
    with pytest.raises(Conflict):
        continue_answer(answer, by=chat.created_by, now=timezone.now())


def test_going_on_may_fail_and_keeps_what_there_is(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(
        Answer("Green are sen", finish_reason="length"), Failure(401, "no"), Answer("Sencha.")
    )
    answer = continue_answer(ask(chat), by=chat.created_by, now=timezone.now())
    assert wait_until_idle(15)
    answer.refresh_from_db()
    assert (answer.status, answer.content) == ("failed", "Green are sen")
    retry_answer(answer, by=chat.created_by, now=timezone.now())
    assert wait_until_idle(15)
    answer.refresh_from_db()
    assert (answer.status, answer.content) == ("done", "Sencha."), "a retry begins anew"


def test_each_recalled_line_says_whose_words_it_is_where_several_write(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    anna = make_user("anna", first_name="Anna", last_name="<Smith>")
    make_memory("User eats no meat and no fish at dinner", anna, chat.workspace)
    question = "Who eats no meat and no fish at dinner?"
    ask(chat, question)
    block = scripted_model.chat_requests[-1].messages[-2]["content"]
    assert "anna" not in block.lower(), "of one person alone nobody is named"
    assert "told you" not in block
    Membership.objects.create(workspace=chat.workspace, user=anna, role=Role.EDITOR)
    ask(chat, question)
    block = scripted_model.chat_requests[-1].messages[-2]["content"]
    assert 'from "Anna Smith" "anna") User eats no meat' in block
    assert "what one said holds for that one" in block


def test_of_two_linked_statements_the_newer_is_there_and_the_older_is_marked(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    older = make_memory("The offsite takes place in Lisbon on May 1", chat.created_by)
    newer = make_memory("Porto, and a week later", chat.created_by)
    newer.may_replace = older
    newer.save()
    answer = ask(chat, "When does the offsite in Lisbon take place?")
    block = scripted_model.chat_requests[-1].messages[-2]["content"]
    lines = [line.partition(") ") for line in block.splitlines() if line.startswith("- ")]
    assert [text for _, _, text in lines][:2] == [newer.content, older.content]
    assert ["older" in label for label, _, _ in lines][:2] == [False, True]
    receipt = Api(chat.created_by).get(f"{chat.public_id}/messages/{answer.public_id}/receipt").json()
    assert newer.public_id in json.dumps(receipt)
