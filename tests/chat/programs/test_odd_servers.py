"""Non-conforming servers end to end: chat, extraction, `/v1/chat/completions` and `/v1/responses` read them alike."""

import json

import pytest
from django.utils import timezone

from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memories.models import Memory
from tests.chat.programs.conftest import client_of
from tests.conftest import Cast
from tests.factories import make_chat
from tests.fakes.openai_server import Raw, ScriptedOpenAI
from tests.memories.writing.model_replies import SAID, VEG, entry
from tests.memories.writing.test_extraction_replies import mine, turn
from tests.memoryhub.llm.test_odd_servers import ANSWER, STREAMS

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
    """All forms are read by the same code, which tests/memoryhub/llm/test_odd_servers.py tests with each."""
    client, wrong = client_of(door, people.editor, people.workspace), {}
    for name in ("parts", "an error behind the end", "pretty JSON"):
        chat = make_chat(people.editor, people.workspace, memory_enabled=False)
        scripted_model.script(*[Raw(STREAMS[name].encode())] * 3)
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


def test_odd_replies_are_extracted_from_and_passed_on(
    door: str, people: Cast, scripted_model: ScriptedOpenAI
) -> None:
    client = client_of(door, people.editor, people.workspace)
    for name, message in WHOLE.items():
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        scripted_model.script(*[Raw(json.dumps({"choices": [choice]}).encode(), "application/json")] * 2)
        assert mine(turn(people.editor, SAID)).stored_count == 1, name
        assert Memory.objects.filter(deleted_at=None).count() == 1, name
        assert FOUND in client.responses.create(model="default", input="When?").output_text, name
        assert wait_until_idle(15)
        Memory.objects.all().delete()
