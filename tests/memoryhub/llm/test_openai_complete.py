import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from memoryhub.llm import errors
from memoryhub.llm.base import Message
from memoryhub.llm.openai_compatible import OpenAIChatModel
from tests.fakes.openai_server import Answer, Failure, Hang, Raw, ScriptedOpenAI

QUESTION = [Message("user", "When is the deadline?")]


def test_gives_the_whole_answer(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(Answer("March", " 15"))
    assert model.complete(QUESTION, max_tokens=9, temperature=0.5) == "March 15"
    assert scripted_openai.chat_requests[0].body == {
        "model": "scripted-model",
        "messages": [{"role": "user", "content": "When is the deadline?"}],
        "max_tokens": 9,
        "temperature": 0.5,
    }


def test_asks_for_json_and_does_without_where_the_server_has_none(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Failure(400, "'response_format.type' must be 'json_schema' or 'text'"))
    scripted_openai.respond = lambda request: Answer("{}")
    assert [model.complete(QUESTION, json=True) for _ in range(2)] == ["{}", "{}"]
    assert [request.body.get("response_format") for request in scripted_openai.chat_requests] == [
        {"type": "json_object"},
        None,
        None,
    ]


def test_no_answer_in_time(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(Hang())
    with pytest.raises(errors.ModelTimeout):
        model.complete(QUESTION, timeout=0.2)
    scripted_openai.script(Failure(408, "Took too long."))
    with pytest.raises(errors.ModelTimeout):
        model.complete(QUESTION)
    assert len(scripted_openai.chat_requests) == 2, "a worker's own time would be over"


def body(**message: object) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


def test_replies_that_are_no_answer(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    for reply, expected in (
        (Raw(b"{not json", "application/json"), errors.ModelBadReply),
        (Raw(b"<html>Hello</html>", "text/html"), errors.ModelBadReply),
        (Raw(b"{}", "application/json"), errors.ModelBadReply),
        (Raw(b"[]", "application/json"), errors.ModelBadReply),
        (Raw(b'{"choices": []}', "application/json"), errors.ModelBadReply),
        (Raw(b'{"choices": [{}]}', "application/json"), errors.ModelBadReply),
        (Raw(body(content=None), "application/json"), errors.ModelBadReply),
        (Raw(body(content={"text": "March"}), "application/json"), errors.ModelBadReply),
        (Raw(body(content=None, refusal="I cannot."), "application/json"), errors.ContentFiltered),
        (Answer("", finish_reason="content_filter"), errors.ContentFiltered),
        (Answer(""), errors.ModelBadReply),
    ):
        scripted_openai.script(reply)
        with pytest.raises(errors.ModelError) as caught:
            model.complete(QUESTION)
        assert type(caught.value) is expected, reply


def test_threads_share_connections(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.respond = lambda request: Answer(request.last_user_text)
    texts = [f"question {number}" for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda text: model.complete([Message("user", text)]), texts))
    assert answers == texts
    assert scripted_openai.connections <= 4
