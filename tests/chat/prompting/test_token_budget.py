"""Limits on the cost of every prompt, and the prefix that stays the same from one to the next."""

from datetime import UTC, datetime
from itertools import pairwise, product
from typing import Any

import pytest
from django.utils import timezone

from chat.models import Chat, Compaction, Message
from chat.modes.registry import get_mode
from chat.prompting.context import (
    build_prompt,
    conversation_of,
    leave_out_what_does_not_fit,
    prompt_token_limit,
    recalled_token_limit,
    system_text,
    tokens_of_tools,
)
from chat.prompting.prompt_text import tokens
from chat.prompting.short_term_memory import short_term_for
from chat.tools import OF_AN_AGENT, OF_EVERY_CHAT, tools_for
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memories.models import Memory, Receipt
from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import NO_ROOM
from memoryhub.llm.base import Capabilities
from tests.conftest import Cast
from tests.factories import (
    HERE,
    make_artifact,
    make_chat,
    make_document,
    make_memory,
    make_message,
    make_user,
    shown_to,
)
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from workspaces.models import Agent

CJK = "记"  # three bytes, and more than one token


@pytest.fixture
def full(cast: Cast) -> tuple[Chat, list[Recalled]]:
    """Fill every part of a prompt to its limit."""
    agent = Agent.objects.create(workspace=cast.workspace, name="Ada", instructions=CJK * 4000)
    chat = make_chat(cast.owner, cast.workspace, agent=agent)
    for number in range(12):
        asked = make_message(chat, f"Question {number} " + "about the sea " * 150)
        make_message(chat, f"Answer {number} " + "about the hills " * 200, "assistant", reply_to=asked)
    memories = [
        make_memory(f"{number} " + (CJK if number % 2 else "<a> & ") * 330, cast.owner, cast.workspace)
        for number in range(5)
    ]
    return chat, [Recalled(memory, 0.9, {}) for memory in memories]


QUESTIONS = ("Why?", "word " * 6000, CJK * 32_000)
SIZES = (  # tokens of the context, tokens of the answer, whether the model has tools
    (2048, 400, False),
    (4096, 1024, False),
    (8192, 2048, False),
    (8192, 2048, True),
    (16_384, 2048, True),
    (32_768, 8192, True),
    (200_000, 8192, True),
)


def test_prompt_fits_beside_its_answer(full: tuple[Chat, list[Recalled]]) -> None:
    chat, memories = full
    history = list(chat.messages.all())
    for question in QUESTIONS:
        asked = make_message(chat, question)
        for (context_tokens, answer_tokens, has_tools), mode in product(SIZES, ("chat", "deep_think")):
            capabilities = Capabilities(
                has_tools=has_tools,
                can_extract=True,
                context_tokens=context_tokens,
                local=True,
                answer_tokens=answer_tokens,
            )
            spent, last = spent_tokens(chat, asked, history[1], memories, capabilities, mode)
            case = (context_tokens, has_tools, question[:5], len(question), mode)
            assert spent + answer_tokens <= context_tokens, case
            assert last and question.startswith(last), case
        asked.delete()


def spent_tokens(
    chat: Chat,
    asked: Message,
    summarised: Message,
    memories: list[Recalled],
    capabilities: Capabilities,
    mode: str,
) -> tuple[int, str]:
    """Return the tokens of the prompt with its tools and the mode's reserve, and the text of its last message."""
    tools = [tool.tool for tool in OF_EVERY_CHAT + OF_AN_AGENT] if capabilities.has_tools else []
    now, room = timezone.now(), prompt_token_limit(capabilities)
    compaction = Compaction(chat=chat, upto=summarised, summary=CJK * 2000, created_at=now)
    verdicts = [(True, "")] * len(memories)
    extra = get_mode(mode).reserve()
    for_recalled = recalled_token_limit(chat.agent, capabilities, tools, reserve=extra, now=now)
    kept = leave_out_what_does_not_fit(memories, verdicts, for_recalled)
    used = [item for item, (fits, _) in zip(memories, kept, strict=True) if fits]
    built = build_prompt(
        conversation_of(asked, compaction, shown=shown_to(asked.chat.created_by), policy=HERE),
        used,
        capabilities,
        now=now,
        tools=tools,
        short_term=short_term_for(
            asked, chat.created_by, can_update=capabilities.has_tools, room=room, now=now, policy=HERE
        ),
        reserve=extra,
    )
    definitions = sum(tokens(tool.name + tool.description + str(tool.parameters)) for tool in tools)
    spent = sum(tokens(message.content) for message in built.messages)
    return spent + definitions + extra, built.messages[-1].content


class TestRecalledMemories:
    pytestmark = pytest.mark.django_db(transaction=True)

    def test_what_is_too_long_for_a_small_model_is_left_out_and_the_receipt_says_so(
        self, scripted_model: ScriptedOpenAI, settings: Any
    ) -> None:
        settings.LLM_CONTEXT_TOKENS, settings.LLM_MAX_TOKENS, settings.LLM_HAS_TOOLS = 2048, 400, False
        settings.RECALL_THRESHOLD = 0.0  # only the token budget decides
        chat = make_chat(make_user("olive", memory_default=True))
        for number in range(3):
            text = f"The deadline of the harbour project is March 15 for team {number}. "
            make_memory(text * 32, chat.created_by)
        short = make_memory("The harbour project deadline is March 15", chat.created_by)
        scripted_model.script(Answer("March 15."))
        turn = begin_turn(
            chat, content="When is the harbour project deadline?", by=chat.created_by, now=timezone.now()
        )
        assert wait_until_idle(20)
        turn.answer.refresh_from_db()
        assert turn.answer.status == "done"
        items = list(Receipt.objects.get().items.select_related("memory"))
        assert [item.memory for item in items if item.used] == [short]
        assert {item.reason for item in items if not item.used} == {NO_ROOM}
        prompt = str(scripted_model.chat_requests[0].messages)
        assert "March 15" in prompt
        assert "for team" not in prompt

    def test_one_that_fits_follows_one_that_does_not(self) -> None:
        found = [Recalled(Memory(content=text), 0.9, {}) for text in ("long " * 300, "short", "unused")]
        verdicts = [(True, ""), (True, ""), (False, "below the threshold")]
        assert leave_out_what_does_not_fit(found, verdicts, 200) == [
            (False, NO_ROOM), (True, ""), (False, "below the threshold"),
        ]  # fmt: skip
        assert leave_out_what_does_not_fit(found, verdicts, 2000) == verdicts
        assert leave_out_what_does_not_fit(found, verdicts, -50)[:2] == [(False, NO_ROOM)] * 2


class TestWhatProvidersCache:
    """The common prefix of a turn and the next, and of the rounds of one turn."""

    pytestmark = pytest.mark.django_db(transaction=True)

    @pytest.fixture
    def chat(self, scripted_model: ScriptedOpenAI) -> Chat:
        chat = make_chat(make_user("olive", memory_default=True))
        make_memory("The project deadline is March 15", chat.created_by)
        return chat

    @staticmethod
    def ask(chat: Chat, content: str) -> Message:
        turn = begin_turn(chat, content=content, by=chat.created_by, now=timezone.now())
        assert wait_until_idle(20)
        return turn.answer

    def test_the_next_turn_begins_as_this_one_did(self, chat: Chat, scripted_model: ScriptedOpenAI) -> None:
        said = [
            "When is the project deadline?",
            "And who comes along?",
            "When exactly is the deadline?",
        ]
        for content in said:
            self.ask(chat, content)
        prompts = [request.messages for request in scripted_model.chat_requests]
        for number, (earlier, later) in enumerate(pairwise(prompts)):
            stable = 1 + 2 * number  # the system prompt, then question and answer of each turn before
            assert earlier[:stable] == later[:stable]
            assert later[stable]["content"] == said[number]
        assert any("<recalled-memories>" in str(prompt[-2]["content"]) for prompt in prompts)

    def test_each_round_of_tools_goes_on_from_the_one_before(
        self, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        call = Call("x_recall_memory", {"query": "deadline"})
        scripted_model.script(Answer("Wait.", calls=[call]), Answer(calls=[call]), Answer("March 15."))
        self.ask(chat, "When?")
        first, second, third = (request.messages for request in scripted_model.chat_requests)
        assert second[: len(first)] == first
        assert third[: len(second)] == second
        offered = [request.body["tools"] for request in scripted_model.chat_requests]
        assert offered[0] == offered[1] == offered[2]


def test_what_every_turn_costs_with_tools(cast: Cast) -> None:
    """The estimate counts a token for 3.2 bytes. A workspace's contents add nothing to this fixed cost; an assistant
    has two tools more.
    """
    able = Capabilities(has_tools=True, can_extract=True, context_tokens=16_384, local=True)
    chat = make_chat(cast.owner, cast.workspace)
    make_artifact(cast.owner, cast.workspace)
    make_document(cast.owner, cast.workspace, "Keys are rotated.", embedded=False)
    longest_day = datetime(2026, 9, 30, tzinfo=UTC)
    system = system_text(None, now=longest_day, has_tools=True, room=16_384)
    offered = [tool.tool for tool in tools_for(chat, able, memory_enabled=True)]
    costs = {tool.name: tokens_of_tools([tool]) for tool in offered} | {"system": tokens(system)}
    assert len(costs) == 6 and sum(costs.values()) <= 500, costs
    chat.agent = Agent.objects.create(workspace=cast.workspace, name="Ada")
    own = [tool.tool for tool in tools_for(chat, able, memory_enabled=True)][len(offered) :]
    assert len(own) == 2 and tokens_of_tools(own) <= 130
