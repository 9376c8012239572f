import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memories import evaluation
from memories.models import Memory
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.terminal import Terminal
from workspaces.models import User, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _embedder(fake_embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "get_embedder", lambda: fake_embedder)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    said = ("Anna has a cat", "Ben has a dog", "We went to the sea in May")
    conversation = {
        "memories": [
            {"id": str(number), "text": text, "at": "2026-03-05T10:00:00Z"}
            for number, text in enumerate(said)
        ],
        "queries": [
            {"text": "Anna has a cat", "relevant": ["0"]},
            {"text": "the sea in May", "relevant": ["2"]},
        ],
    }
    path = tmp_path / "questions.jsonl"
    path.write_text(f"{json.dumps(conversation)}\n{json.dumps(conversation)}\n")
    return path


def run(file: Path, *options: str) -> tuple[list[str], str]:
    """Run the command. Return the lines of the table, and the progress output."""
    out, progress = StringIO(), Terminal()
    call_command("bench_recall", str(file), *options, stdout=out, stderr=progress)
    return out.getvalue().splitlines(), progress.getvalue()


def nothing_is_left() -> bool:
    return not (Memory.objects.exists() or Workspace.objects.exists() or User.objects.exists())


def test_prints_baselines_and_hybrid_shows_progress_and_cleans_up(file: Path) -> None:
    lines, progress = run(file)
    assert lines[0] == "2 conversations, 6 memories, 4 questions"
    assert lines[1].split()[:6] == ["ranking", "hit@5", "hit@10", "recall@5", "recall@10", "MRR"]
    assert [line.split()[:6] for line in lines[2:5]] == [
        [name, *["1.000"] * 5] for name in ("bm25", "vector", "hybrid")
    ]
    assert lines[5].startswith("Times leave out embedding the question: p50 ")
    assert "conversation 2 of 2: stored 3 of 3" in progress
    assert "conversation 1 of 2: asked 2 of 2" in progress
    assert nothing_is_left()


def test_senseless_options_are_refused(file: Path) -> None:
    for options in (["--k=0"], ["--k=51"], ["--k=a"], ["--ranking=best"], ["--without=luck"]):
        with pytest.raises(CommandError):
            run(file, *options)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("where", ["recall", "save_cleaned"])
def test_cleans_up_when_it_is_interrupted_in_the_middle(
    file: Path, monkeypatch: pytest.MonkeyPatch, where: str, stop: type[BaseException]
) -> None:
    original: Any = getattr(evaluation, where)
    calls: list[int] = []

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise stop
        return original(*args, **options)

    monkeypatch.setattr(evaluation, where, interrupted)
    with pytest.raises(stop):
        run(file)
    assert len(calls) == 2
    assert nothing_is_left()
