"""The README's story on the real larger model, where its file is: it is too large to be downloaded by every test run.

LARGE_MODEL=/path/to/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf pytest tests/verification/test_large_model_story.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.models import MessageStatus
from chat.turns import runner
from chat.turns.begin import begin_turn
from memoryhub.local import large_model, model_server
from memoryhub.local.large_model import SHA256, SIZE
from tests.factories import make_chat, make_memory, make_user
from tests.memoryhub.local.processes import wait_until

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(os.environ.get("LARGE_MODEL", large_model.model_file(ROOT / "var")))
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not FILE.is_file() or FILE.stat().st_size != SIZE,
        reason="the larger model is not here: manage.py fetch_model downloads it, LARGE_MODEL names its file",
    ),
]


@pytest.fixture
def large(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    """The real server with the real file, as the supervisor starts it."""
    (tmp_path / "run").mkdir()
    large_model.folder(tmp_path).mkdir()
    large_model.model_file(tmp_path).symlink_to(FILE.resolve())
    port = model_server.free_port()
    command = [sys.executable, "-m", "memoryhub.local.model_server", "--large", "--anyway"]
    with subprocess.Popen(
        [*command, "--data-dir", str(tmp_path), "--port", str(port)],
        env={**os.environ, model_server.KEY_VARIABLE: "sesame"},
    ) as process:
        try:
            wait_until(lambda: model_server.is_ready(port), "the larger model is loaded")
            endpoint = model_server.Endpoint(f"http://127.0.0.1:{port}/v1", "sesame", large_model.NAME)
            model_server.write_endpoint(tmp_path, endpoint, model_server.LARGE)
            settings.LLM_BASE_URL, settings.EMBEDDED_MODEL, settings.DATA_DIR = None, True, tmp_path
            yield tmp_path
        finally:
            process.kill()


def test_the_file_is_the_publishers() -> None:
    assert large_model._sha256(FILE) == SHA256


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
    assert runner.wait_until_idle(120)
    turn.answer.refresh_from_db()
    assert turn.answer.status == MessageStatus.DONE
    assert all(answer in turn.answer.content for answer in answers), turn.answer.content
