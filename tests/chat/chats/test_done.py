"""``work.done`` events: sent to the person whose long answer or run is done, and without its text."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.utils import timezone

from chat.live_answers import LiveAnswer, stop_answer
from chat.models import Run
from chat.runs.services import RunRequest, start_run
from chat.runs.worker import work
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memoryhub import pubsub
from tests.conftest import Cast
from tests.factories import make_chat
from tests.fakes.openai_server import HOLD, Answer, Failure, ScriptedOpenAI
from workspaces.access import get_workspace

pytestmark = pytest.mark.django_db(transaction=True)
Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def work_done_events() -> Iterator[Told]:
    """Yield the list of ``work.done`` events published, as channel and data."""
    heard: Told = []
    publish = pubsub.publish

    def note(channel: str, name: str, data: Any = None) -> None:
        if name == "work.done":
            heard.append((channel, data))
        publish(channel, name, data)

    with patch.object(pubsub, "publish", side_effect=note):
        yield heard


def test_person_who_asked_is_told_of_a_long_answer(
    cast: Cast, scripted_model: ScriptedOpenAI, work_done_events: Told
) -> None:
    for seconds, reply, is_told in (
        (9.9, Answer("Plums"), False),
        (10, Answer("Plums"), True),
        (60, Failure(500), True),
    ):
        work_done_events.clear()
        chat = make_chat(cast.owner, cast.workspace)  # visible to all members; one of them asks
        scripted_model.script(reply)
        with patch.object(LiveAnswer, "took", seconds):
            begin_turn(chat, content="The secret of plums", by=cast.editor, now=timezone.now())
            assert wait_until_idle(10), seconds
        mine = (f"user:{cast.editor.public_id}", {"kind": "answer", "url": f"/chats/{chat.public_id}/"})
        assert work_done_events == ([mine] if is_told else []), seconds


def test_nobody_is_told_of_an_answer_that_they_stopped(
    cast: Cast, scripted_model: ScriptedOpenAI, work_done_events: Told
) -> None:
    scripted_model.script(Answer("Plums", HOLD, " bought"))
    with patch.object(LiveAnswer, "took", 60):
        turn = begin_turn(
            make_chat(cast.owner, cast.workspace), content="Hi", by=cast.owner, now=timezone.now()
        )
        stop_answer(turn.answer, now=timezone.now())
        assert wait_until_idle(10)
    assert work_done_events == []


def test_person_who_began_a_long_run_is_told_when_it_is_over(
    cast: Cast, scripted_model: ScriptedOpenAI, work_done_events: Told
) -> None:
    for waited, is_told in ((timedelta(minutes=1), True), (timedelta(seconds=1), False)):
        work_done_events.clear()
        place, before = get_workspace(cast.editor, cast.workspace.public_id), timezone.now() - waited
        plan = {"tasks": [{"id": "only", "title": "The secret of plums"}]}
        run = start_run(
            place, RunRequest(objective="The secret of plums", plan=plan), by=cast.editor, now=before
        )
        Run.objects.filter(pk=run.pk).update(created_at=before)
        work(seconds=30, at_once=1)
        run.refresh_from_db()
        url = f"/workspaces/{place.public_id}/runs/{run.public_id}/"
        mine = (f"user:{cast.editor.public_id}", {"kind": "run", "url": url})
        assert run.is_over and work_done_events == ([mine] if is_told else []), waited
        assert "plums" not in json.dumps(work_done_events), waited
