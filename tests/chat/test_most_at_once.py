"""Requests for the last free slot of a quota, two at once."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from chat.chats import saved_prompts
from chat.models import Run
from chat.runs import services
from memories.recalling import recall_tests
from memoryhub.errors import Conflict
from tests.conftest import Cast
from tests.factories import make_memory, make_prompt
from tests.fakes.openai_server import ScriptedOpenAI
from tests.races import Work
from workspaces.access import get_workspace


@pytest.mark.django_db(transaction=True)
def test_the_last_one_that_there_may_be_is_made_once(
    cast: Cast, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, now = get_workspace(cast.owner, cast.workspace.public_id), timezone.now()
    memory = make_memory("Apollo starts in May", cast.owner, place)
    done = Run.objects.create(
        workspace=place, user=cast.owner, mode="loop", objective="Drinks", status="done", deadline_at=now + timedelta(1)
    )  # fmt: skip
    names = iter(f"Name {number}" for number in range(100))
    makers: dict[tuple[Any, str], Callable[[], Any]] = {
        (saved_prompts, "MOST"): lambda: make_prompt(place, cast.owner, name=next(names)),
        (services, "MOST"): lambda: services.save_template(done, next(names), by=cast.owner, now=now),
        (recall_tests, "MOST_QUESTIONS"): lambda: recall_tests.save_question(
            place, next(names), [memory], by=cast.owner, now=now
        ),
        (services, "MOST_ACTIVE"): lambda: services.start_run(
            place, services.RunRequest(objective="Compare"), by=cast.owner, now=now
        ),
    }
    for (room, most), make in makers.items():
        monkeypatch.setattr(room, most, 1)
        with transaction.atomic():
            make()
            other = Work(make)
            assert other.waits_for_a_lock(), room
        assert isinstance(other.end(), Conflict), room
    with transaction.atomic():
        make_prompt(place, cast.owner, name="Mine", personal=True)
        other = Work(lambda: make_prompt(place, cast.owner, name="Mine too", personal=True))
        assert other.waits_for_a_lock()
    assert isinstance(other.end(), Conflict)
