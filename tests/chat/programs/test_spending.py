"""Usage over ``/v1`` is counted, and refused in OpenAI's form once a budget is used up."""

import openai
import pytest

from chat.turns import turn
from tests.chat.programs.conftest import client_of
from tests.conftest import Cast
from tests.fakes.openai_server import ScriptedOpenAI
from workspaces.models import Budget, ModelUse, Purpose

pytestmark = pytest.mark.django_db(transaction=True)


def test_programs_are_counted_and_refused_as_openai_refuses(
    door: str, people: Cast, scripted_model: ScriptedOpenAI
) -> None:
    client = client_of(door, people.editor, people.workspace)
    question = [{"role": "user", "content": "Hello?"}]
    for more in ({}, {"stream": True}):
        answer = client.chat.completions.create(model="scripted-model", messages=question, **more)  # type: ignore[call-overload]
        if more:
            assert all(not chunk.usage for chunk in answer), "it did not ask"
        assert turn.wait_until_idle(10)
    row = ModelUse.objects.get(purpose=Purpose.PROGRAM)
    assert (row.user, row.workspace, row.calls) == (people.editor, people.workspace, 2)
    assert (row.tokens_in, row.tokens_out, row.estimated) == (18, 6, 0)
    Budget.objects.create(workspace=people.workspace, tokens=20)
    asked = len(scripted_model.requests)
    for ask_it in (
        lambda: client.chat.completions.create(model="scripted-model", messages=question),  # type: ignore[arg-type]
        lambda: client.chat.completions.create(model="scripted-model", messages=question, stream=True),  # type: ignore[arg-type]
        lambda: client.responses.create(model="scripted-model", input="Hello?"),
    ):
        with pytest.raises(openai.RateLimitError) as refused:
            ask_it()
        assert refused.value.code == refused.value.type == "insufficient_quota"
        assert "24 of 20 tokens" in str(refused.value)
    assert len(scripted_model.requests) == asked
