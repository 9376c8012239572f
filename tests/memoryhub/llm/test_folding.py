"""Endpoints with strict chat templates: the prompt is folded after a refusal, and from then on at once."""

from collections.abc import Callable
from typing import Any

import pytest

from memoryhub.llm import errors
from memoryhub.llm.base import Message, ToolCall
from memoryhub.llm.openai_compatible import OpenAIChatModel
from memoryhub.llm.openai_requests import fold
from tests.fakes.openai_server import Answer, Failure, Received, Reply, ScriptedOpenAI
from tests.memoryhub.llm.conftest import model_of

CALL = ToolCall("call_1", "x_recall_memory", "{}")
PROMPT = [
    Message("system", "Be brief."),
    Message("system", "Summary: they greeted."),
    Message("user", "Hi"),
    Message("assistant", "Hello."),
    Message("user", "[KNOWLEDGE] tea"),
    Message("system", "<recalled-memories>Anna</recalled-memories>"),
    Message("user", "And now?"),
]
AFTER_A_CALL = [
    *PROMPT,
    Message("assistant", "", tool_calls=(CALL,)),
    Message("tool", "Nothing.", tool_call_id="call_1"),
]
HEAD = "Be brief.\n\nSummary: they greeted."
LAST = "[KNOWLEDGE] tea\n\n<recalled-memories>Anna</recalled-memories>\n\nAnd now?"


def strict(says: str, status: int = 400, *, takes_system: bool = True) -> Callable[[Received], Reply]:
    """Return a responder that accepts only what a strict template does."""

    def respond(request: Received) -> Reply:
        roles = [m["role"] for m in request.messages]
        talk = [role for role in roles if role != "tool" and (role != "system" or not takes_system)]
        in_turn = all(role == ("user", "assistant")[at % 2] for at, role in enumerate(talk))
        alone = roles.count("system") == 0 or (
            takes_system and roles.count("system") == 1 and roles[0] == "system"
        )
        return Answer("Fine.") if in_turn and alone else Failure(status, says)

    return respond


SAID = [
    ("Conversation roles must alternate user/assistant/user/assistant/...", 400, True),
    ("After the optional system message, conversation roles must alternate user and assistant", 400, True),
    ("System message must be at the beginning.", 400, True),
    ("invalid request: system message must be the first message", 422, True),
    ("Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...", 500, True),
    ("System role not supported", 400, False),
]


async def test_it_is_tried_once_folded_and_remembered(scripted_openai: ScriptedOpenAI) -> None:
    for says, status, takes_system in SAID:
        await assert_folded(scripted_openai, says, status, takes_system=takes_system)


async def assert_folded(
    scripted_openai: ScriptedOpenAI, says: str, status: int, *, takes_system: bool
) -> None:
    model = model_of(scripted_openai)
    scripted_openai.requests.clear()
    scripted_openai.respond = strict(says, status, takes_system=takes_system)
    assert [delta.text async for delta in model.stream(PROMPT)] == ["Fine.", ""]
    assert [delta.text async for delta in model.stream(AFTER_A_CALL)] == ["Fine.", ""]
    assert model.complete(PROMPT) == "Fine."
    first, *others = scripted_openai.chat_requests
    assert len(first.messages) == len(PROMPT), says
    assert len(others) == 3, f"not found out once: {says}"
    said: list[dict[str, Any]] = others[1].messages
    begins = said[0]["content"]
    assert begins == (HEAD if takes_system else f"{HEAD}\n\nHi")
    assert (said[-3]["role"], said[-3]["content"]) == ("user", LAST)
    assert (said[-2]["tool_calls"][0]["id"], said[-1]["tool_call_id"]) == ("call_1", "call_1")


def test_what_cannot_be_folded_is_not_sent_again(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    for messages in ([Message("user", "Hi")], [Message("system", "x"), Message("user", "Hi")]):
        scripted_openai.requests.clear()
        scripted_openai.script(Failure(400, "Conversation roles must alternate"))
        with pytest.raises(errors.ModelBadRequest):
            model.complete(messages)
        assert len(scripted_openai.chat_requests) == 1, messages


def test_nothing_is_lost_and_nothing_changes_places() -> None:
    bodies = [{"role": m.role, "content": m.content} for m in PROMPT]
    for keeps in (True, False):
        folded = fold(bodies, keeps_system=keeps)
        assert "\n\n".join(m["content"] for m in folded) == "\n\n".join(m.content for m in PROMPT)
        assert fold(folded, keeps_system=keeps) == folded
    assert fold([]) == []
