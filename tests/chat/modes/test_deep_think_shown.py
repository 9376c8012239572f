"""Steps of deep thinking as people and programs see them: live, after a reload, and with which permissions."""

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.api.serializers import StepJson
from chat.api.turn_responses import messages_json
from chat.models import Chat, Message, Mode, Step
from chat.models.answer_steps import StepKind
from chat.turns import stream
from chat.turns.services import begin_turn
from chat.turns.stream import StreamEvent, follow
from chat.views.shown_messages import load_transcript
from memories.models import Memory, Scope
from tests.api import API, Api, error_of
from tests.asgi import posted
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from tests.fakes.openai_server import HOLD, Answer, ScriptedOpenAI

VERDICT = {"statements": [{"quote": "On May 1.", "memory": 1, "agrees": False}], "correction": ""}


@pytest.fixture
def answered(cast: Cast) -> Message:
    chat = make_chat(cast.editor, cast.workspace)
    return thought_through(chat)


def thought_through(chat: Chat, **fields: Any) -> Message:
    asked = make_message(chat, "When?")
    return make_message(
        chat, "On May 1.", "assistant", reply_to=asked, mode=Mode.DEEP_THINK, memory_enabled=True, **fields
    )


def planned(answer: Message, text: str = "1. Look <b>it</b> up.\n2. Say it.", **fields: Any) -> Step:
    return Step.objects.create(
        **{"message": answer, "kind": "plan", "outcome": "planned", "text": text} | fields
    )


def checked(answer: Message, *memories: Memory, differing: Memory | None = None, **fields: Any) -> Step:
    findings = (
        [{"quote": "On May 1.", "memory_id": differing.public_id, "agrees": False}] if differing else []
    )
    values = {
        "message": answer,
        "kind": "check",
        "outcome": "differs" if differing else "agrees",
        "memory_ids": [memory.public_id for memory in memories],
        "findings": findings,
    }
    return Step.objects.create(**values | fields)


def page_of(answer: Message, person: Any) -> str:
    client = Client()
    client.force_login(person)
    text = client.get(f"/chats/{answer.chat.public_id}/").content.decode()
    return " ".join(text.split())


class TestPage:
    def test_a_reload_shows_the_plan_above_and_the_check_below(self, answered: Message, cast: Cast) -> None:
        memory = make_memory("The deadline is <March> 15", cast.owner, cast.workspace)
        other = make_memory("Anna likes tea", cast.owner, cast.workspace)
        planned(answered)
        checked(answered, memory, other, differing=memory)
        page = page_of(answered, cast.viewer)
        plan, text, check = (
            page.index("Planned the answer"),
            page.index("<p>On May 1."),
            page.index("Checked"),
        )
        assert plan < text < check
        assert "1. Look &lt;b&gt;it&lt;/b&gt; up." in page
        assert "Checked against 2 memories · 1 statement differs" in page
        assert "“On May 1.”" in page
        assert page.index("differs from memory:") < page.index("The deadline is &lt;March&gt; 15")
        assert page.index("Also checked") < page.index("Anna likes tea")

    def test_each_reader_sees_only_their_own_memories(self, answered: Message, cast: Cast) -> None:
        personal = make_memory("The deadline frightens me", cast.editor, scope=Scope.USER)
        step = checked(answered, personal, differing=personal)
        assert "frightens me" in page_of(answered, cast.editor)
        theirs = page_of(answered, cast.owner)
        assert "frightens me" not in theirs
        assert "Checked against" not in theirs
        assert "Nothing in memory to check the answer against" in theirs
        shown = messages_json([answered], cast.owner)[0]["steps"]
        assert [(row["id"], row["memory_ids"], row["findings"]) for row in shown] == [
            (step.public_id, [], [])
        ]

    def test_every_outcome_has_its_words(self, answered: Message, cast: Cast) -> None:
        lines = {}
        for kind, outcome, error, line in (
            (
                "plan",
                "error",
                "The model's endpoint refused the API key.",
                "Answered without a plan. The model&#x27;s endpoint refused the API key.",
            ),
            ("plan", "timeout", "", "Answered without a plan. It took too long."),
            ("plan", "stopped", "", "The plan was not finished"),
            ("plan", "", "", "The plan was not finished"),
            (
                "check",
                "error",
                "The model is too small for it.",
                "Not checked against memory. The model is too small for it.",
            ),
            ("check", "timeout", "", "Not checked against memory. It took too long."),
            ("check", "stopped", "", "Not checked against memory: it was stopped"),
            ("check", "", "", "Not checked against memory: it was stopped"),
            ("check", "off", "", "Not checked against memory: it is off"),
            ("check", "nothing", "", "Nothing in memory to check the answer against"),
        ):
            answer = thought_through(answered.chat)
            Step.objects.create(message=answer, kind=kind, outcome=outcome, error=error)
            lines[answer.public_id] = line
        messages = re.split(r'id="(?=msg_)', page_of(answered, cast.editor))
        for message_id, line in lines.items():
            assert any(part.startswith(message_id) and line in part for part in messages), line

    def test_only_what_is_offered_is_explained(
        self, answered: Message, cast: Cast, settings: Any, scripted_model: ScriptedOpenAI
    ) -> None:
        assert "Research: search" in page_of(answered, cast.editor)
        settings.LLM_HAS_TOOLS = False
        page = page_of(answered, cast.editor)
        assert "Think: plan" in page
        assert "Research: search" not in page

    def test_many_steps_cost_no_more_queries(self, answered: Message, cast: Cast) -> None:
        def queries(read: Callable[[], object]) -> int:
            with CaptureQueriesContext(connection) as captured:
                read()
            return len(captured)

        def page() -> object:
            return load_transcript(answered.chat, cast.editor, now=timezone.now())

        def rest() -> object:
            answers = list(answered.chat.messages.select_related("author", "reply_to", "superseded_by"))
            return messages_json(answers, cast.editor)

        checked(answered, make_memory("The deadline is March 15", cast.owner, cast.workspace))
        few = queries(page), queries(rest)
        for number in range(5):
            memory = make_memory(f"The deadline of project {number} is May 1", cast.owner, cast.workspace)
            another = thought_through(answered.chat)
            planned(another)
            checked(another, memory, differing=memory)
        assert (queries(page), queries(rest)) == few


def test_rest_serializer_accepts_every_kind_of_step() -> None:
    for kind in StepKind.values:
        assert StepJson().fields["kind"].run_validation(kind) == kind, kind


class TestRest:
    pytestmark = pytest.mark.django_db(transaction=True)

    def test_another_mode_is_refused_by_name(self, chat: Chat) -> None:
        for mode in ("reflection", "", None, 5, ["chat"], "x" * 500):
            body = {"content": "Hi", "mode": mode, "stream": False}
            refused = Api(chat.created_by).post(f"{chat.public_id}/messages", body)
            assert refused.status_code == 422
            if mode is not None:
                assert error_of(refused)["fields"] == {"mode": "Must be one of chat, deep_think, research."}
            assert not chat.messages.exists()

    def test_the_page_sends_it_and_goes_on_with_it(
        self, chat: Chat, scripted_model: ScriptedOpenAI, eventually: Callable[..., None]
    ) -> None:
        client = Client()
        client.force_login(chat.created_by)
        scripted_model.script(Answer("Greet."), Answer("Hello."), Answer("Greet."), Answer("Hello."))
        made = client.post(
            f"/workspaces/{chat.workspace.public_id}/chats/",
            {"content": "Hi", "mode": "deep_think", "memory": "on"},
            headers={"HX-Request": "true"},
        )
        assert 'value="deep_think" checked>' in " ".join(made.content.decode().split())
        answer = Message.objects.get(role="assistant")
        eventually(lambda: Message.objects.get(pk=answer.pk).status == "done")
        sent = client.post(
            f"/chats/{answer.chat.public_id}/messages/",
            {"content": "Hi again", "mode": "deep_think"},
            headers={"HX-Request": "true"},
        )
        assert "data-checks" in sent.content.decode()
        assert Message.objects.filter(role="assistant", mode="deep_think").count() == 2
        eventually(lambda: not Message.objects.filter(status="streaming").exists())
        refused = client.post(
            f"/chats/{answer.chat.public_id}/messages/", {"content": "Hi", "mode": "pondering"}
        )
        assert refused.status_code == 422


class TestStreams:
    pytestmark = pytest.mark.django_db(transaction=True)

    @pytest.fixture(autouse=True)
    async def _close_connections(self) -> AsyncIterator[None]:
        yield
        await sync_to_async(connections.close_all)()

    @pytest.mark.parametrize("elsewhere", [False, True], ids=["this process", "another process"])
    async def test_every_reader_hears_of_steps_whenever_they_come(
        self,
        chat: Chat,
        scripted_model: ScriptedOpenAI,
        monkeypatch: pytest.MonkeyPatch,
        eventually: Callable[..., None],
        elsewhere: bool,
    ) -> None:
        await sync_to_async(make_memory)("The project deadline is March 15", chat.created_by)
        scripted_model.script(Answer("Say it."), Answer("On ", HOLD, "May 1."), Answer(json.dumps(VERDICT)))
        turn = await sync_to_async(begin_turn)(
            chat,
            content="When is the project deadline?",
            by=chat.created_by,
            now=timezone.now(),
            mode=Mode.DEEP_THINK,
        )
        if elsewhere:
            monkeypatch.setattr(stream, "live_answer", lambda answer_id: None)
        scripted_model.wait_for_requests(2)
        early = await self.until(follow(turn.answer.public_id), "On ")
        late = await self.until(follow(turn.answer.public_id), "On ")
        for heard in (early, late):
            plan = [event.data for event in heard if event.kind == "step"][-1]
            assert (plan["outcome"], plan["plan"], plan["text"]) == (
                "planned",
                "Say it.",
                "Planned the answer",
            )
        scripted_model.release()
        whole = [event async for event in follow(turn.answer.public_id)]
        assert "".join(event.data["text"] for event in whole if event.kind == "token") == "On May 1."
        assert [event.data["outcome"] for event in whole if event.kind == "step"][-1] == "differs"
        assert whole[-1].kind == "done"
        again = [event async for event in follow(turn.answer.public_id, after=9)]
        assert [event.data["kind"] for event in again if event.kind == "step"] == ["plan", "check"]

    async def test_events_over_rest(self, chat: Chat, scripted_model: ScriptedOpenAI) -> None:
        await sync_to_async(make_memory)("The project deadline is March 15", chat.created_by)
        scripted_model.script(Answer("Say it."), Answer("On May 1."), Answer(json.dumps(VERDICT)))
        client = Client()
        await sync_to_async(client.force_login)(chat.created_by)
        cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
        body = {"content": "When is the project deadline?", "mode": "deep_think"}
        async with posted(f"{API}/{chat.public_id}/messages", body, cookies) as exchange:
            await exchange.start()
            told = await exchange.events()
        assert (told[0][0], told[-1][0]) == ("message", "done")
        steps = [data for kind, data in told if kind == "step"]
        assert steps[0]["text"] in ("Planning the answer…", "Planned the answer")
        assert (steps[-1]["kind"], steps[-1]["outcome"], steps[-1]["count"]) == ("check", "differs", 1)
        assert "March 15" not in json.dumps(steps), "events have no memory's text"
        assert [step["outcome"] for step in told[-1][1]["steps"]] == ["planned", "differs"]

    @staticmethod
    async def until(events: AsyncIterator[StreamEvent], text: str) -> list[StreamEvent]:
        heard, said = [], ""
        async for event in events:
            heard.append(event)
            said += event.data.get("text", "") if event.kind == "token" else ""
            if said == text:
                break
        return heard
