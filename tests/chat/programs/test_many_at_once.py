"""Many clients at one endpoint, with a slow model."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest
from django.db import connection

from chat.models import PassingTurn
from chat.turns import turn
from memories.models import Extraction
from tests.chat.programs.conftest import client_of
from tests.conftest import Cast
from tests.factories import make_key_text
from tests.fakes.openai_server import HOLD, Answer, ScriptedOpenAI

pytestmark = pytest.mark.django_db(transaction=True)
POOL = 20  # database connections of a web process; here each thread has its own, so they are counted
MANY = 24


@pytest.fixture
def slow(scripted_model: ScriptedOpenAI) -> Iterator[ScriptedOpenAI]:
    """A model that answers only when released, at the latest at the test's end."""
    scripted_model.respond = lambda request: Answer(HOLD, "On March 15.")
    yield scripted_model
    scripted_model.release()
    assert turn.wait_until_idle(10)


def connections() -> int:
    """Return the number of open database connections."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            return int(cursor.fetchone()[0])
    finally:
        connection.close()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_who_waits_for_a_model_holds_nothing_that_others_need(
    door: str, people: Cast, slow: ScriptedOpenAI, eventually: Callable[..., None], stream: bool
) -> None:
    """Two of the questions are one turn, sent twice at once: it is extracted from once."""
    headers = {"authorization": f"Bearer {make_key_text(people.editor, people.workspace)}"}

    async def ask() -> list[httpx2.Response]:
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(base_url=door, headers=headers, timeout=60, limits=limits) as client:

            async def one(number: int) -> httpx2.Response:
                said = f"When is the deadline of project number {max(number, 1)}?"
                body = {"model": "default", "messages": [{"role": "user", "content": said}], "stream": stream}
                return await client.post("/v1/chat/completions", json=body)

            asked = [asyncio.create_task(one(number)) for number in range(MANY)]
            try:
                all_asked = await asyncio.to_thread(slow.wait_for_requests, MANY, 20)
                assert all_asked, f"the model was asked {len(slow.requests)} times"
                await asyncio.to_thread(eventually, lambda: connections() < POOL)
                models = await client.get("/v1/models", timeout=5)
                assert models.status_code == 200
            finally:
                slow.release()
            return await asyncio.gather(*asked)

    answers = asyncio.run(ask())
    assert [answer.status_code for answer in answers] == [200] * MANY
    assert all("On March 15." in answer.text for answer in answers)
    assert turn.wait_until_idle(10) and Extraction.objects.count() == MANY - 1


def test_one_persons_whole_answers_are_as_many_as_their_streams(
    door: str, people: Cast, slow: ScriptedOpenAI, settings: Any, eventually: Callable[..., None]
) -> None:
    """Each answer occupies a thread: without a limit one person could take all of them."""
    settings.ANSWER_STREAMS = 1
    client = client_of(door, people.editor, people.workspace)
    asked: Any = {"model": "default", "messages": [{"role": "user", "content": "When is the deadline?"}]}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.chat.completions.create, **asked)
        assert slow.wait_for_requests(1)
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(**asked)
        with pytest.raises(openai.RateLimitError):
            client.responses.create(model="default", input="When is it?")
        slow.release()
        assert first.result(20).choices[0].message.content == "On March 15."
    assert client.chat.completions.create(**asked), "its place is free again"


def test_who_hangs_up_on_a_whole_answer_loses_nothing_that_was_said(
    door: str, people: Cast, slow: ScriptedOpenAI, eventually: Callable[..., None]
) -> None:
    client = client_of(door, people.editor, people.workspace)
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=1).chat.completions.create(
            model="default", messages=[{"role": "user", "content": "When is the deadline of Apollo?"}]
        )
    assert slow.requests, "the model was at it already"
    slow.release()
    eventually(lambda: Extraction.objects.count() == 1)
    assert PassingTurn.objects.get().answer == "On March 15."
