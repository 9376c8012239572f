"""Answers of the real larger model from memory, if its file exists: it is too large to download for every run.

LARGE_MODEL=/path/to/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf pytest tests/verification/test_large_model_story.py
README's story with it in a browser is in tests/functional/test_readme_story.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.models import MessageStatus
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memoryhub.local import large_model_download
from memoryhub.local.large_model_download import SHA256
from tests.factories import make_chat, make_memory, make_user
from tests.fakes.local_model import LARGE_MODEL, NEEDS_LARGE_MODEL, running_large_model

pytestmark = [pytest.mark.django_db(transaction=True), NEEDS_LARGE_MODEL]


@pytest.fixture
def large(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    with running_large_model(tmp_path):
        settings.LLM_BASE_URL, settings.EMBEDDED_MODEL, settings.DATA_DIR = None, True, tmp_path
        yield tmp_path


def test_the_file_is_the_publishers() -> None:
    assert large_model_download._sha256(LARGE_MODEL) == SHA256


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("When is my project deadline?", ["March 15"]),
        ("Wie heißt unser Projekt?", ["Heron"]),
        ("Quel est le nom de notre projet ?", ["Heron"]),
    ],
)
def test_it_answers_from_what_is_remembered(large: Path, question: str, answers: list[str]) -> None:
    olive = make_user("olive", memory_default=True)
    chat = make_chat(olive)
    for text in ("My project deadline is March 15", "I am vegetarian", "Our project is called Heron"):
        make_memory(text, olive, chat.workspace)
    turn = begin_turn(chat, content=question, by=olive, now=timezone.now())
    assert wait_until_idle(120)
    turn.answer.refresh_from_db()
    assert turn.answer.status == MessageStatus.DONE
    assert all(answer in turn.answer.content for answer in answers), turn.answer.content
