import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from memoryhub.llm import errors
from memoryhub.llm.base import Capabilities, Delta, Message, ToolCall
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.openai_compatible import OpenAIChatModel
from memoryhub.llm.openai_errors import call_with_retries, delay_before_retry
from tests.fakes.openai_failures import NOT_RETRIED, RETRIED
from tests.fakes.openai_server import HOLD, Answer, Failure, Hang, Raw, Reply, ScriptedOpenAI

QUESTION = [Message("system", "Be brief."), Message("user", "When is the deadline?")]
CAPABILITIES = Capabilities(has_tools=False, can_extract=True, context_tokens=4096, local=True)


async def deltas_of(stream: AsyncGenerator[Delta, None]) -> list[Delta]:
    return [delta async for delta in stream]


async def text_of(stream: AsyncGenerator[Delta, None]) -> str:
    return "".join([delta.text async for delta in stream])


async def failure_of(stream: AsyncGenerator[Delta, None]) -> errors.ModelError:
    with pytest.raises(errors.ModelError) as caught:
        await text_of(stream)
    return caught.value


async def test_streams_piece_by_piece_and_says_how_it_ended(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Answer("March", " 15", ".", finish_reason="length"))
    assert await deltas_of(model.stream(QUESTION)) == [
        Delta("March"),
        Delta(" 15"),
        Delta("."),
        Delta("", finish_reason="length"),
    ]


async def test_the_first_piece_comes_before_the_answer_is_complete(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Answer("March", HOLD, " 15"))
    stream = model.stream(QUESTION)
    assert (await anext(stream)).text == "March"
    scripted_openai.release()
    assert await text_of(stream) == " 15"


async def test_sends_messages_as_they_are_and_only_what_was_asked_for(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    call = ToolCall("call_1", "x_recall_memory", '{"query": "tea"}')
    messages = [
        *QUESTION,
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", "nothing", tool_call_id="call_1"),
    ]
    await text_of(model.stream(messages, max_tokens=7, temperature=0.0))
    await text_of(model.stream(QUESTION))
    first, second = (request.body for request in scripted_openai.chat_requests)
    assert first == {
        "model": "scripted-model",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 7,
        "temperature": 0.0,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "When is the deadline?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "x_recall_memory", "arguments": '{"query": "tea"}'},
                    }
                ],
            },
            {"role": "tool", "content": "nothing", "tool_call_id": "call_1"},
        ],
    }
    assert set(second) == {"model", "stream", "stream_options", "messages"}


async def test_failures_that_another_attempt_would_not_cure(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    for number, (name, reply, expected) in enumerate(NOT_RETRIED, start=1):
        scripted_openai.script(reply)
        assert type(await failure_of(model.stream(QUESTION))) is expected, name
        assert len(scripted_openai.chat_requests) == number, name


async def test_passing_failures_are_retried_twice(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    for name, reply, expected in RETRIED:
        scripted_openai.requests.clear()
        scripted_openai.script(reply, reply, Answer("Fine."))
        assert await text_of(model.stream(QUESTION)) == "Fine.", name
        scripted_openai.script(reply, reply, reply)
        failure = await failure_of(model.stream(QUESTION))
        assert (type(failure), failure.retryable) == (expected, True), name
        assert len(scripted_openai.chat_requests) == 6, name


async def test_the_wait_the_server_asks_for_is_passed_on(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Failure(429, headers={"retry-after": "60"}))
    with pytest.raises(errors.ModelRateLimited) as caught:
        await text_of(model.stream(QUESTION))
    assert caught.value.retry_after == 60


async def test_a_server_that_is_not_there(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    endpoint = Endpoint("http://127.0.0.1:9/v1", "key", "model")
    with pytest.raises(errors.ModelUnavailable):
        await text_of(OpenAIChatModel(lambda: endpoint, CAPABILITIES).stream(QUESTION))


async def test_a_server_that_moved_is_found_by_the_next_attempt(scripted_openai: ScriptedOpenAI) -> None:
    gone = Endpoint("http://127.0.0.1:9/v1", "old-key", "old")
    here = Endpoint(scripted_openai.base_url, scripted_openai.api_key, "new")
    endpoints = iter([gone, here])
    model = OpenAIChatModel(lambda: next(endpoints), CAPABILITIES)
    assert await text_of(model.stream(QUESTION)) == "Hello from the script."
    assert scripted_openai.chat_requests[0].body["model"] == "new"


async def test_a_stream_that_breaks_keeps_what_came_and_is_not_started_again(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    for name, reply, expected in (
        ("connection lost", Answer("March", cut=True), errors.ModelCut),
        ("ends early", Answer("March", finish_reason=None), errors.ModelCut),
        ("falls silent", Answer("March", HOLD), errors.ModelTimeout),
        ("filtered", Answer("March", finish_reason="content_filter"), errors.ContentFiltered),
    ):
        scripted_openai.requests.clear()
        scripted_openai.script(reply, Answer("Again."))
        received = []
        with pytest.raises(errors.ModelError) as caught:
            async for delta in model.stream(QUESTION, timeout=0.3):
                received.append(delta.text)
        assert (type(caught.value), received) == (expected, ["March"]), name
        assert len(scripted_openai.chat_requests) == 1, name
        scripted_openai.unscript()


def event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


MARCH = event('{"choices": [{"index": 0, "delta": {"content": "March"}, "finish_reason": null}]}')
STOP = event('{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}')


async def test_replies_that_are_no_answer(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    for body, expected in (
        (MARCH + event("{not json"), errors.ModelBadReply),
        (event('{"object": "something else"}'), errors.ModelBadReply),
        (event('{"choices": [{"delta": {"content": {"text": "March"}}}]}'), errors.ModelBadReply),
        (event("[1, 2]"), errors.ModelBadReply),
        (event('"text"'), errors.ModelBadReply),
        (b"<html>Sign in to the hotel's network</html>", errors.ModelBadReply),
        (STOP + event("[DONE]"), errors.ModelBadReply),
        (event('{"choices": [{"delta": {"refusal": "I cannot."}}]}'), errors.ContentFiltered),
        (MARCH + event('{"error": {"message": "the GPU fell off"}}'), errors.ModelCut),
        (MARCH + event('{"error": {"message": "rate limit reached", "code": 429}}'), errors.ModelRateLimited),
        (event('{"error": {"message": "context size exceeded"}}'), errors.ModelContextOverflow),
        (event('{"error": {"message": "flagged", "code": "content_filter"}}'), errors.ContentFiltered),
    ):
        scripted_openai.respond = lambda request, body=body: Raw(body)
        assert type(await failure_of(model.stream(QUESTION))) is expected, body


async def test_a_missing_done_line_and_usage_chunks_do_no_harm(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    usage = event('{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}}')
    scripted_openai.script(Raw(b": ping\n\n" + MARCH + STOP + usage))
    assert await text_of(model.stream(QUESTION)) == "March"


async def test_closing_the_generator_hangs_up(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Answer("March", HOLD, " 15"))
    async with aclosing(model.stream(QUESTION)) as stream:
        async for _ in stream:
            break
    assert await asyncio.to_thread(scripted_openai.wait_for_hang_up)


@pytest.mark.parametrize(
    "reply", [Answer("March", HOLD), Hang()], ids=["while streaming", "before the first piece"]
)
async def test_cancelling_the_consumer_hangs_up(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI, reply: Reply
) -> None:
    scripted_openai.script(reply)
    consumer = asyncio.create_task(text_of(model.stream(QUESTION)))
    await asyncio.to_thread(scripted_openai.wait_for_requests, 1)
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert await asyncio.to_thread(scripted_openai.wait_for_hang_up)


async def test_a_kept_connection_that_the_server_closed_meanwhile(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    await text_of(model.stream(QUESTION))
    scripted_openai.drop_connections()
    assert await text_of(model.stream(QUESTION)) == "Hello from the script."


def test_each_event_loop_has_its_own_client(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    for _ in range(2):
        assert asyncio.run(text_of(model.stream(QUESTION))) == "Hello from the script."
    assert scripted_openai.connections == 2


async def test_sixty_streams_at_once(model: OpenAIChatModel, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.respond = lambda request: Answer(request.last_user_text, HOLD, " done")
    asked = [f"question {number}" for number in range(60)]
    streams = [asyncio.create_task(text_of(model.stream([Message("user", text)]))) for text in asked]
    await asyncio.to_thread(scripted_openai.wait_for_requests, 60)
    scripted_openai.release()
    assert await asyncio.gather(*streams) == [f"{text} done" for text in asked]
    assert scripted_openai.connections == 60


async def test_learns_which_parameters_a_model_refuses(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(
        Failure(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            param="max_tokens",
        ),
        Failure(400, "Unsupported value: 'temperature' does not support 0.2.", param="temperature"),
    )
    for _ in range(2):
        assert (
            await text_of(model.stream(QUESTION, max_tokens=9, temperature=0.2)) == "Hello from the script."
        )
    sent = [
        set(request.body) - {"model", "messages", "stream", "stream_options"}
        for request in scripted_openai.chat_requests
    ]
    assert sent == [
        {"max_tokens", "temperature"},
        {"max_completion_tokens", "temperature"},
        {"max_completion_tokens"},
        {"max_completion_tokens"},
    ]


async def test_a_key_of_the_environment_is_never_sent(
    scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "somebody-elses-key")
    endpoint = Endpoint(scripted_openai.base_url, "", "model")
    with pytest.raises(errors.ModelRefused):
        await text_of(OpenAIChatModel(lambda: endpoint, CAPABILITIES).stream(QUESTION))
    assert "somebody" not in scripted_openai.chat_requests[0].headers["authorization"]


async def test_a_proxy_is_not_used_for_this_machine(
    model: OpenAIChatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert await text_of(model.stream(QUESTION)) == "Hello from the script."


def test_errors_say_what_a_person_can_do_and_keep_the_rest_for_the_log() -> None:
    error = errors.ModelRefused(detail="x" * 5000)
    assert str(error) == "The model's endpoint refused the API key."
    assert len(error.detail) == errors.MAX_DETAIL_CHARS
    assert "key-1" not in repr(Endpoint("http://localhost/v1", "key-1", "model"))


async def test_who_took_too_long_is_asked_once_more(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    for slow in (Failure(408, "Took too long."), Failure(504, "Gateway time-out.")):
        scripted_openai.script(slow, Answer("Fine."))
        assert await text_of(model.stream(QUESTION, timeout=0.3)) == "Fine.", slow


async def test_silence_for_the_whole_limit_is_not_waited_for_again(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Hang(), Answer("Too late."))
    with pytest.raises(errors.ModelTimeout):
        await text_of(model.stream(QUESTION, timeout=0.3))
    assert len(scripted_openai.chat_requests) == 1


def test_attempts_share_the_limit_on_silence() -> None:
    given: list[float] = []

    def ask(endpoint: Endpoint, call: object, seconds: float) -> str:
        given.append(seconds)
        if len(given) == 1:
            raise ValueError
        return "Fine."

    late, at = errors.ModelUnavailable(), Endpoint("http://localhost/v1", "key-1", "model")
    answer = call_with_retries(lambda: at, ask, lambda error: False, lambda error, at: late, limit=60)
    assert answer == "Fine." and given[1] < given[0] <= 60
    assert delay_before_retry(late, 0, left=30) is not None and delay_before_retry(late, 0, left=-0.1) is None
