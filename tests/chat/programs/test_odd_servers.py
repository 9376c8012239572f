"""Non-conforming servers end to end: chat, extraction, `/v1/chat/completions` and `/v1/responses` read them alike."""

from __future__ import annotations

import json

import openai
import pytest
from django.utils import timezone

from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memories.models import Memory
from tests.chat.programs.conftest import client_of
from tests.conftest import Cast
from tests.factories import make_chat
from tests.fakes.openai_server import Answer, Raw, ScriptedOpenAI
from tests.memories.writing.model_replies import SAID, VEG, entry
from tests.memories.writing.test_extraction_replies import mine, turn
from tests.memoryhub.llm.test_odd_servers import ANSWER, OVERFLOW, SHAPES, STREAMS

pytestmark = pytest.mark.django_db(transaction=True)
FOUND = json.dumps([entry(VEG)])
WHOLE = {
    "parts": {"content": [{"type": "text", "text": FOUND}]},
    "parts and a refusal of nothing": {"content": [FOUND], "refusal": None, "tool_calls": None},
    "thoughts beside": {"content": FOUND, "reasoning_content": "Let me see."},
    "thoughts before": {"content": f"<think>Let me see.</think>\n{FOUND}"},
}


def test_odd_streams_are_answers_in_chats_and_for_programs(
    door: str, people: Cast, scripted_model: ScriptedOpenAI
) -> None:
    client, wrong = client_of(door, people.editor, people.workspace), {}
    for name, body in STREAMS.items():
        chat = make_chat(people.editor, people.workspace, memory_enabled=False)
        scripted_model.script(*[Raw(body.encode())] * 3)
        answer = begin_turn(chat, content=name, by=people.editor, now=timezone.now()).answer
        assert wait_until_idle(15)
        answer.refresh_from_db()
        asked = {"model": "default", "messages": [{"role": "user", "content": name}]}
        parts = client.chat.completions.create(**asked, stream=True)  # type: ignore[call-overload]
        completed = "".join(each.choices[0].delta.content or "" for each in parts if each.choices)
        events = list(client.responses.create(model="default", input=name, stream=True))
        responded = events[-1].response.output_text  # type: ignore[union-attr]
        if {(answer.status, answer.content), ("done", completed), ("done", responded)} != {("done", ANSWER)}:
            wrong[name] = (answer.status, answer.content, completed, responded)
        scripted_model.unscript()
    assert wrong == {}


@pytest.mark.parametrize("name", WHOLE)
def test_odd_replies_are_extracted_from_and_passed_on(
    door: str, people: Cast, scripted_model: ScriptedOpenAI, name: str
) -> None:
    reply = {
        "choices": [{"index": 0, "message": {"role": "assistant", **WHOLE[name]}, "finish_reason": "stop"}]
    }
    scripted_model.script(*[Raw(json.dumps(reply).encode(), "application/json")] * 2)
    assert mine(turn(people.editor, SAID)).stored_count == 1
    assert Memory.objects.filter(deleted_at=None).count() == 1
    client = client_of(door, people.editor, people.workspace)
    whole = client.responses.create(model="default", input="When?")
    assert FOUND in whole.output_text


@pytest.mark.parametrize("name", SHAPES)
def test_refusals_in_any_shape_are_learned_from_in_extraction(
    people: Cast, scripted_model: ScriptedOpenAI, name: str
) -> None:
    refusal = Raw(json.dumps(SHAPES[name]).encode(), "application/json", 400)
    scripted_model.script(refusal, Answer(FOUND))
    assert mine(turn(people.editor, SAID)).stored_count == 1
    assert "response_format" not in scripted_model.chat_requests[-1].body


def test_errors_in_any_shape_are_said_with_their_reason(
    door: str, people: Cast, scripted_model: ScriptedOpenAI
) -> None:
    """None of them is taken for an answer or breaks off without a reason."""
    client = client_of(door, people.editor, people.workspace)
    for body in (
        json.dumps({"error": OVERFLOW}),
        json.dumps([{"error": {"message": OVERFLOW}}]),
        f"event: error\ndata: {json.dumps({'error': OVERFLOW})}\n\n",
        f"data: error: {OVERFLOW}\n\n",
        json.dumps({"detail": OVERFLOW}),
    ):
        scripted_model.script(*[Raw(body.encode())] * 6)
        chat = make_chat(people.editor, people.workspace, memory_enabled=False)
        answer = begin_turn(chat, content="When?", by=people.editor, now=timezone.now()).answer
        assert wait_until_idle(15)
        answer.refresh_from_db()
        assert (answer.status, answer.error_code) == ("failed", "model_context_overflow"), body
        scripted_model.unscript()
        scripted_model.script(*[Raw(body.encode())] * 3)
        with pytest.raises(openai.APIError) as refused:
            list(
                client.chat.completions.create(
                    model="default", messages=[{"role": "user", "content": "When?"}], stream=True
                )
            )
        assert "too long for the model" in str(refused.value), body
        scripted_model.unscript()
