"""Deep thinking in whole turns over real HTTP: plan, answer, check, and failures in each."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from chat.chats.personal_memories import use_personal
from chat.live_answers import close_abandoned, stop_answer
from chat.models import Chat, Message, MessageStatus, Mode, Step, ToolCall
from chat.modes import deep_think
from chat.modes.deep_think import PLAN_TOKENS, DeepThink
from chat.modes.registry import require_mode
from chat.prompting.context import prompt_token_limit
from chat.prompting.prompt_text import tokens
from chat.turns.services import begin_turn, edit_message, retry_answer
from chat.turns.turn import close_interrupted, wait_until_idle
from memories.models import Memory, Scope
from memoryhub.errors import Invalid
from memoryhub.llm.base import Capabilities
from tests.factories import make_chat, make_memory, make_message, make_user
from tests.fakes.openai_server import HOLD, Answer, Call, Failure, Hang, ScriptedOpenAI
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "When is the project deadline?"
SMALL = Capabilities(has_tools=False, can_extract=False, context_tokens=2048, local=True)
LARGE = Capabilities(has_tools=False, can_extract=True, context_tokens=16_384, local=True)


@pytest.fixture
def deadline(chat: Chat) -> Memory:
    return make_memory("The project deadline is March 15", chat.created_by, chat.workspace)


def begin(chat: Chat, content: str = QUESTION, **options: Any) -> Message:
    by = options.pop("by", chat.created_by)
    return begin_turn(
        chat, content=content, by=by, now=timezone.now(), mode=Mode.DEEP_THINK, **options
    ).answer


def think(chat: Chat, content: str = QUESTION, **options: Any) -> Message:
    answer = begin(chat, content, **options)
    assert wait_until_idle(20)
    answer.refresh_from_db()
    return answer


def verdict(*statements: tuple[str, int, bool], correction: str = "") -> Answer:
    found = [{"quote": quote, "memory": number, "agrees": agrees} for quote, number, agrees in statements]
    return Answer(json.dumps({"statements": found, "correction": correction}))


def steps(answer: Message) -> list[tuple[str, str]]:
    return [(step.kind, step.outcome) for step in Step.objects.filter(message=answer)]


def check_of(answer: Message) -> Step:
    return Step.objects.get(message=answer, kind="check")


class TestAllGoesWell:
    def test_a_plan_an_answer_and_a_check(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory, settings: Any
    ) -> None:
        """The second request begins as the first, which providers have cached by then; all have one limit."""
        settings.LLM_MAX_TOKENS = 777
        scripted_model.script(
            Answer("1. Look at the deadline.\n2. Say it."),
            Answer("The deadline is ", "March 15."),
            verdict(("The deadline is March 15.", 1, True)),
        )
        answer = think(chat)
        assert (answer.status, answer.content) == (MessageStatus.DONE, "The deadline is March 15.")
        assert answer.mode == "deep_think"
        assert steps(answer) == [("plan", "planned"), ("check", "agrees")]
        plan, check = Step.objects.all()
        assert plan.text == "1. Look at the deadline.\n2. Say it."
        assert check.memory_ids == [deadline.public_id]
        assert check.findings == [
            {"quote": "The deadline is March 15.", "memory_id": deadline.public_id, "agrees": True}
        ]
        assert plan.finished_at and check.finished_at
        assert [request.body["max_tokens"] for request in scripted_model.chat_requests] == [777] * 3
        planning, answering, checking = scripted_model.chat_requests
        first = [part["content"] for part in planning.messages]
        second = [part["content"] for part in answering.messages]
        same = first[: first.index(first[-2])]
        assert second[: len(same)] == same
        assert first[-1] == second[-1] == QUESTION
        assert first[-2].startswith("Do not answer the next message yet.")
        assert second[-2].endswith("<plan>\n1. Look at the deadline.\n2. Say it.\n</plan>")
        assert planning.tool_names == answering.tool_names
        assert (planning.body["tool_choice"], "tool_choice" in answering.body) == ("none", False)
        assert (checking.tool_names, checking.body["temperature"]) == ([], 0.0)
        assert "1. (memory, " in checking.last_user_text
        assert "The project deadline is March 15" in checking.last_user_text
        told = f"user: {QUESTION}\nassistant: The deadline is March 15.\n</conversation>"
        assert checking.last_user_text.endswith(told)

    def test_what_differs_is_reported_and_corrected_where_the_model_says_how(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory
    ) -> None:
        scripted_model.script(
            Answer("Say it."),
            Answer("The deadline is May 1."),
            verdict(("The deadline is May 1.", 1, False), correction="Correction: it is March 15."),
        )
        answer = think(chat)
        assert answer.content == "The deadline is May 1.\n\n---\n\nCorrection: it is March 15."
        assert steps(answer)[1] == ("check", "differs")
        assert check_of(answer).text == "Correction: it is March 15."

    def test_the_answers_own_words_recall_what_the_question_does_not(
        self, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        memory = make_memory("Anna is allergic to peanuts", chat.created_by, chat.workspace)
        text = "Take these along:\n\n- Bread and cheese\n- Roasted peanuts for Anna\n- Water"
        wrong = verdict(("Roasted peanuts for Anna", 1, False), correction="Correction: no peanuts for Anna.")
        scripted_model.script(Answer("List food."), Answer(text), wrong)
        answer = think(chat, "Hello there, and now?")
        prompt = "".join(str(part["content"]) for part in scripted_model.chat_requests[1].messages)
        assert "allergic" not in prompt
        assert check_of(answer).memory_ids == [memory.public_id]
        assert answer.content.endswith("Correction: no peanuts for Anna.")

    def test_tools_are_called_while_the_answer_is_written_and_what_they_found_is_compared(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory
    ) -> None:
        scripted_model.script(
            Answer("Look it up."),
            Answer(calls=[Call("x_recall_memory", {"query": "project deadline"})]),
            Answer("I found it."),
            verdict(),
        )
        answer = think(chat, "Hello there, and now?")
        assert ToolCall.objects.get().memory_ids == [deadline.public_id]
        assert check_of(answer).memory_ids == [deadline.public_id]

    def test_what_nothing_in_memory_touches_asks_no_model(
        self, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        scripted_model.script(Answer("Say hello."), Answer("Hello."))
        answer = think(chat, "Hi")
        assert steps(answer) == [("plan", "planned"), ("check", "nothing")]
        assert len(scripted_model.chat_requests) == 2


class TestMemoryIsOff:
    def test_nothing_is_recalled_for_a_check(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory
    ) -> None:
        scripted_model.script(Answer("Say so."), Answer("I cannot know. " * 20))
        answer = think(chat, memory_enabled=False)
        assert steps(answer) == [("plan", "planned"), ("check", "off")]
        assert len(scripted_model.chat_requests) == 2
        assert "March 15" not in str([request.messages for request in scripted_model.chat_requests])
        assert check_of(answer).memory_ids == []

    def test_a_workspace_that_says_in_the_middle_that_nothing_leaves_is_obeyed(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory, settings: Any
    ) -> None:
        settings.LLM_LOCAL = False

        scripted_model.script(Answer("Say when."), Answer("The project deadline ", HOLD, "is in March."))
        answer = begin(chat)
        assert scripted_model.wait_for_requests(2)
        Workspace.objects.update(local_only=True)
        scripted_model.release()
        assert wait_until_idle(20)
        answer.refresh_from_db()
        assert steps(answer) == [("plan", "planned"), ("check", "error")]
        assert "may not leave this machine" in check_of(answer).error
        assert (answer.status, len(scripted_model.chat_requests)) == (MessageStatus.DONE, 2)


class TestPlanFails:
    def test_failed_plan_is_explained_and_the_answer_written(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory
    ) -> None:
        for reply, why in (
            (Failure(401, "bad key"), "The model's endpoint refused the API key."),
            (Answer("1. Lo", cut=True), "The connection to the model broke before the answer was complete."),
        ):
            chat = make_chat(chat.created_by)
            scripted_model.script(reply, Answer("On March 15."), verdict())
            answer = think(chat)
            assert (answer.status, answer.content) == (MessageStatus.DONE, "On March 15."), why
            step = Step.objects.get(message=answer, kind="plan")
            assert (step.outcome, step.error, step.text) == ("error", why, ""), why
            assert "<plan>" not in str(scripted_model.chat_requests[-2].messages), why
            assert check_of(answer).outcome == "agrees", why

    def test_a_model_that_only_wants_tools_has_no_plan(
        self, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        scripted_model.script(Answer(calls=[Call("x_recall_memory", {"query": "x"})]), Answer("Hello."))
        answer = think(chat, "Hi")
        assert (answer.content, steps(answer)[0]) == ("Hello.", ("plan", "error"))
        assert not ToolCall.objects.exists(), "nothing is done for a plan"

    def test_a_plan_without_end_is_cut_and_hung_up_on(
        self, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        scripted_model.script(Answer("Look at the deadline. " * 100, HOLD, "and more"), Answer("Hello."))
        answer = think(chat, "Hi")
        assert answer.content == "Hello."
        assert scripted_model.wait_for_hang_up()
        assert tokens(Step.objects.get(kind="plan").text) <= PLAN_TOKENS

    def test_of_a_broken_database_or_anything_else(
        self, chat: Chat, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*args: object) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr(deep_think, "plan_prompt", fail)
        monkeypatch.setattr(deep_think, "memories_beside", fail)
        scripted_model.script(Answer("Hello."))
        answer = think(chat, "Hi")
        assert (answer.status, answer.content) == (MessageStatus.DONE, "Hello.")
        assert steps(answer) == [("plan", "error"), ("check", "error")]

    def test_a_model_that_became_too_small_answers_as_it_can(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory, settings: Any
    ) -> None:
        answer = make_message(
            chat,
            "",
            "assistant",
            status="failed",
            mode=Mode.DEEP_THINK,
            memory_enabled=True,
            reply_to=make_message(chat, QUESTION),
        )
        settings.LLM_CAN_EXTRACT = False
        scripted_model.script(Answer("On March 15."))
        retry_answer(answer, by=chat.created_by, now=timezone.now())
        assert wait_until_idle(20)
        answer.refresh_from_db()
        assert (answer.status, answer.content) == (MessageStatus.DONE, "On March 15.")
        assert steps(answer) == [("plan", "error"), ("check", "error")]
        assert {step.error for step in Step.objects.all()} == {"The model is too small for it."}


class TestCheckFails:
    def test_failed_check_is_explained_and_the_answer_stands(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory
    ) -> None:
        for reply, why in (
            (Answer("It all looks fine to me."), "The model's reply could not be read."),
            (
                Answer('{"statements": [', cut=True),
                "The connection to the model broke before the answer was complete.",
            ),
        ):
            chat = make_chat(chat.created_by)
            scripted_model.script(Answer("Say it."), Answer("On March 15."), reply)
            answer = think(chat)
            assert (answer.status, answer.content, answer.error) == (
                MessageStatus.DONE,
                "On March 15.",
                "",
            ), why
            assert (check_of(answer).outcome, check_of(answer).error) == ("error", why), why

    def test_it_may_not_take_for_ever(
        self,
        chat: Chat,
        scripted_model: ScriptedOpenAI,
        deadline: Memory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(deep_think, "CHECK_SECONDS", 0.5)
        scripted_model.script(Answer("Say it."), Answer("On March 15."), Hang())
        answer = think(chat)
        assert (answer.status, answer.content) == (MessageStatus.DONE, "On March 15.")
        assert check_of(answer).outcome == "timeout"
        assert scripted_model.wait_for_hang_up()

    def test_an_answer_too_long_to_be_read_again_is_not_checked(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory, settings: Any
    ) -> None:
        settings.LLM_CONTEXT_TOKENS, settings.LLM_MAX_TOKENS = 4096, 1024
        scripted_model.script(Answer("Say it."), Answer("The project deadline is March 15. " * 350))
        answer = think(chat)
        assert answer.status == MessageStatus.DONE
        assert check_of(answer).error == "The answer is too long for it."
        assert len(scripted_model.chat_requests) == 2


class TestTheAnswerFails:
    def test_the_plan_stays_and_nothing_is_checked(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory
    ) -> None:
        scripted_model.script(Answer("Say it."), Answer("Half an", cut=True))
        answer = think(chat)
        assert (answer.status, answer.error_code, answer.content) == ("failed", "model_cut", "Half an")
        assert steps(answer) == [("plan", "planned")]

    def test_edited_question_keeps_the_mode_if_the_model_supports_it(
        self, chat: Chat, scripted_model: ScriptedOpenAI, settings: Any
    ) -> None:
        for can_extract, mode in ((True, "deep_think"), (False, "chat")):
            chat = make_chat(chat.created_by)
            scripted_model.respond = lambda request: Answer("Hello.")
            settings.LLM_CAN_EXTRACT = True
            answer = think(chat, "Hi")
            assert answer.reply_to is not None, mode
            settings.LLM_CAN_EXTRACT = can_extract
            turn = edit_message(answer.reply_to, content="Hi there", by=chat.created_by, now=timezone.now())
            assert wait_until_idle(20), mode
            turn.answer.refresh_from_db()
            assert (turn.answer.mode, turn.answer.status) == (mode, "done"), mode


class TestStop:
    @pytest.mark.parametrize(
        ("replies", "reached", "status", "content", "left"),
        [
            ([Answer("Say ", HOLD, "it.")], "plan", "stopped", "", [("plan", "stopped")]),
            (
                [Answer("Say it."), Answer("On ", HOLD, "March 15.")],
                "answer",
                "stopped",
                "On ",
                [("plan", "planned")],
            ),
            (
                [Answer("Say it."), Answer("On March 15."), Answer("{", HOLD, "}")],
                "check",
                "done",
                "On March 15.",
                [("plan", "planned"), ("check", "stopped")],
            ),
        ],
        ids=["plan", "answer", "check"],
    )
    def test_each_step_ends_cleanly(
        self,
        chat: Chat,
        scripted_model: ScriptedOpenAI,
        deadline: Memory,
        eventually: Callable[..., None],
        replies: list[Answer],
        reached: str,
        status: str,
        content: str,
        left: list[tuple[str, str]],
    ) -> None:
        scripted_model.script(*replies)
        answer = begin(chat)
        assert scripted_model.wait_for_requests(len(replies))
        if reached == "answer":
            eventually(lambda: Message.objects.get(pk=answer.pk).content == "On ")
        stop_answer(answer, now=timezone.now())
        assert wait_until_idle(10)
        answer.refresh_from_db()
        assert (answer.status, answer.content, steps(answer)) == (status, content, left)
        assert scripted_model.wait_for_hang_up()


class TestTheProcessEnds:
    def test_crash_ends_the_running_step(self, chat: Chat) -> None:
        for steps_before, status, left in (
            ([("plan", "")], "failed", [("plan", "stopped")]),
            ([("plan", "planned")], "failed", [("plan", "planned")]),
            ([("plan", "planned"), ("check", "")], "done", [("plan", "planned"), ("check", "stopped")]),
        ):
            chat = make_chat(chat.created_by)
            now = timezone.now()
            answer = make_message(
                chat,
                "On March 15.",
                "assistant",
                status="streaming",
                mode=Mode.DEEP_THINK,
                reply_to=make_message(chat, QUESTION),
                beat_at=now - timedelta(minutes=1),
            )
            for kind, outcome in steps_before:
                Step.objects.create(message=answer, kind=kind, outcome=outcome)
            assert close_abandoned(answer, now=now), left
            answer.refresh_from_db()
            assert (answer.status, answer.content, steps(answer)) == (status, "On March 15.", left), left

    def test_what_is_being_checked_is_stored_whole(
        self, chat: Chat, scripted_model: ScriptedOpenAI, deadline: Memory
    ) -> None:
        scripted_model.script(Answer("Say it."), Answer("On March 15."), Answer("{", HOLD, "}"))
        answer = begin(chat)
        assert scripted_model.wait_for_requests(3)
        assert Message.objects.get(pk=answer.pk).content == "On March 15."
        close_interrupted()
        answer.refresh_from_db()
        assert (answer.status, answer.error_code, answer.content) == ("done", "", "On March 15.")
        scripted_model.release()
        assert wait_until_idle(10)
        answer.refresh_from_db()
        assert answer.content == "On March 15.", "what was closed is not written to any more"


class TestBudget:
    def test_the_plan_has_room_beside_a_full_history(
        self, chat: Chat, scripted_model: ScriptedOpenAI, settings: Any
    ) -> None:
        settings.LLM_CONTEXT_TOKENS, settings.LLM_MAX_TOKENS, settings.LLM_HAS_TOOLS = 4096, 1024, False
        settings.LLM_HISTORY_TOKENS = 12_000
        for number in range(40):
            make_message(
                chat, f"Question {number} " + "word " * 60, "user" if number % 2 == 0 else "assistant"
            )
        long_plan = "Look at the deadline. " * 200
        scripted_model.script(Answer(long_plan), Answer("Hello."), verdict())
        think(chat)
        room = prompt_token_limit(Capabilities(False, True, 4096, True))
        for request in scripted_model.chat_requests[:2]:
            spent = sum(tokens(str(part["content"])) for part in request.messages)
            assert room - DeepThink().reserve() < spent <= room


class TestWhichModes:
    def test_a_small_model_is_refused_before_anything_is_stored(
        self, chat: Chat, scripted_model: ScriptedOpenAI, settings: Any
    ) -> None:
        settings.LLM_CAN_EXTRACT = False
        with pytest.raises(Invalid, match="can extract memories"):
            begin(chat)
        assert not chat.messages.exists()

    def test_an_unknown_one_names_what_is_allowed(self) -> None:
        for mode in ("poetry", "", "DEEP_THINK", "x" * 500):
            with pytest.raises(Invalid) as refused:
                require_mode(mode, lambda: LARGE)
            assert refused.value.fields == {"mode": "There is no such mode. Allowed: chat, deep_think."}
            with pytest.raises(Invalid) as refused:
                require_mode(mode, lambda: SMALL)
            assert refused.value.fields == {"mode": "There is no such mode. Allowed: chat."}


def test_personal_memories_are_compared_for_their_owner_alone(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    from tests.factories import make_workspace

    owner, editor = make_user("anna", memory_default=True), make_user("ben", memory_default=True)
    shared = make_chat(owner, make_workspace(owner=owner, editor=editor))
    mine = make_memory("The project deadline is March 15", owner, scope=Scope.USER)
    use_personal(shared, allowed=True, by=owner)
    scripted_model.respond = lambda request: (
        verdict() if "<memories>" in str(request.messages) else Answer("The project deadline is March 15")
    )
    answer = think(shared, by=owner)
    assert check_of(answer).memory_ids == [mine.public_id]
    theirs = think(shared, by=editor)
    assert (check_of(theirs).outcome, check_of(theirs).memory_ids) == ("nothing", [])
