"""Servers that deviate from OpenAI's API: ``/v1/responses`` returns an error, complete and streamed, without breaking
off.
"""

import json
from typing import Any

import openai
import pytest

from tests.chat.programs.conftest import client_of
from tests.conftest import Cast
from tests.fakes.openai_server import Raw, ScriptedOpenAI

pytestmark = pytest.mark.django_db(transaction=True)


def calling(**call: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}


SAID = {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
NO_FORM: dict[str, dict[str, Any]] = {
    "a choice of nothing": {"choices": [None]},
    "an index of a choice": {"choices": [{"index": [], "message": {"content": "x"}}]},
    "a call": {"choices": [{"index": 0, "message": {"tool_calls": ["x"]}}]},
    "arguments": calling(id="a", function={"name": "x", "arguments": {"a": 1}}),
    "an index of a call": calling(index=[], function={"name": "x"}),
}
NO_COUNTS: list[Any] = [
    {"prompt_tokens": "3", "completion_tokens": 2},
    {"total_tokens": {}, "completion_tokens_details": {"reasoning_tokens": []}},
]


def raw(reply: dict[str, Any], *, streams: bool) -> Raw:
    if not streams:
        return Raw(json.dumps(reply).encode(), "application/json")
    choices = [
        {**each, "delta": each["message"]} if isinstance(each, dict) else each for each in reply["choices"]
    ]
    return Raw(f"data: {json.dumps({**reply, 'choices': choices})}\n\ndata: [DONE]\n\n".encode())


def test_it_is_said_in_openais_form(door: str, people: Cast, scripted_model: ScriptedOpenAI) -> None:
    client = client_of(door, people.editor, people.workspace)
    for name, reply in NO_FORM.items():
        scripted_model.script(raw(reply, streams=False))
        with pytest.raises(openai.APIStatusError) as refused:
            client.responses.create(model="default", input=name)
        scripted_model.unscript()
        assert (refused.value.status_code, refused.value.code) == (502, "model_bad_reply"), name
        scripted_model.script(raw(reply, streams=True))
        last: Any = list(client.responses.create(model="default", input=name, stream=True))[-1]
        assert (last.type, last.response.error.code) == ("response.failed", "server_error"), name
        scripted_model.unscript()
    for usage in NO_COUNTS:
        scripted_model.script(raw({**SAID, "usage": usage}, streams=False))
        whole = client.responses.create(model="default", input="Hi")
        scripted_model.script(raw({**SAID, "usage": usage}, streams=True))
        last = list(client.responses.create(model="default", input="Hi", stream=True))[-1]
        assert (whole.output_text, last.response.output_text) == ("Hi", "Hi"), usage
        assert whole.usage is None or whole.usage.input_tokens == 0, usage
