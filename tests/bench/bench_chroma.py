# ruff: noqa: E402  Django has to be set up before its models are imported
"""Measure whole recall beside Chroma, on the same conversations, questions and machine.

    python -m venv /tmp/chroma && /tmp/chroma/bin/pip install chromadb
    python -m tests.bench.bench_chroma /tmp/chroma/bin/python FILE [--questions 60]

FILE as for bench_recall. Each question goes to both in turn; both embed it, and the first tenth is not counted. Chroma
has its default MiniLM from this project's file (8 bits; its own is 32), once as it ships, which pads every text to 256
tokens, and once without padding. Times are p50 / p95 in milliseconds; only the ratio is meaningful.
"""

import argparse
import json
import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")

import django

django.setup()

from memories.evaluation import Conversation, load_conversation, milliseconds, read_conversations
from memories.recalling.question import read_question
from memories.recalling.recall import recall
from memoryhub.database.startup import running_database
from memoryhub.llm.registry import get_embedder
from memoryhub.model_files import EMBEDDER, TOKENIZER
from tests.factories import HERE
from workspaces.access import default_workspace
from workspaces.models import Membership, Role, User, Workspace

NEEDED = (
    "config.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "vocab.txt",
)  # memories that Chroma searches
VARIANTS = ("as it ships", "unpadded")
Times = dict[str, list[float]]


class Chroma:
    def __init__(self, python: Path, folder: str, variant: str) -> None:
        side = Path(__file__).with_name("chroma_side.py")
        command = [str(python), str(side), folder, variant]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, what: str | list[str]) -> tuple[float, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        embedding, whole = json.loads(self._process.stdout.readline())
        return embedding, whole

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def chromas(python: Path) -> Iterator[dict[str, Chroma]]:
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "onnx"
        files.mkdir()
        (files / "model.onnx").write_bytes(EMBEDDER.content())
        (files / "tokenizer.json").write_bytes(TOKENIZER.content())
        for name in NEEDED:
            (files / name).touch()
        made = {variant: Chroma(python, folder, variant) for variant in VARIANTS}
        try:
            yield made
        finally:
            for each in made.values():
                each.end()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--questions", type=int, default=60, help="of each conversation")
    options = parser.parse_args()
    user_name = f"bench-{secrets.token_hex(6)}"
    with running_database(), chromas(options.python) as others:
        user = User.objects.create_user(user_name)
        try:
            default_workspace(user)
            times: Times = {}
            for conversation in read_conversations(options.file):
                for name, taken in measured(conversation, options.questions, user, others).items():
                    times.setdefault(name, []).extend(taken)
        finally:
            Workspace.objects.filter(memberships__user=user).delete()
            user.delete()
    report(times)


def measured(conversation: Conversation, most: int, user: User, others: dict[str, Chroma]) -> Times:
    workspace = Workspace.objects.create(name="bench_chroma")
    Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER)
    load_conversation(conversation, workspace, user, lambda: None)
    for other in others.values():
        other.say([memory["text"] for memory in conversation.memories])
    now = max(datetime.fromisoformat(memory["at"]) for memory in conversation.memories) + timedelta(days=1)
    asked = [query["text"] for query in conversation.queries][:most]
    times: Times = {}
    for number, question in enumerate(asked):
        taken = _recall(question, workspace, user, now)
        for name, other in others.items():
            taken[f"chroma {name}, embedding"], taken[f"chroma {name}"] = other.say(question)
        if number >= len(asked) // 10:
            for name, seconds in taken.items():
                times.setdefault(name, []).append(seconds)
    workspace.delete()
    return times


def _recall(question: str, workspace: Workspace, user: User, now: datetime) -> dict[str, float]:
    """Time embedding on its own first, then recall, which finds its embeddings cached."""
    embedder: Any = get_embedder()
    began = time.perf_counter()
    embedder.embed_question([question, read_question(question, now).gist])
    embedded = time.perf_counter()
    recall(question, workspace, user, limit=10, now=now, policy=HERE)
    return {"recall, embedding": embedded - began, "recall": time.perf_counter() - began}


def report(times: Times) -> None:
    own = milliseconds(times["recall"], 0.5)
    print(f"{len(times['recall'])} questions")
    for name, seconds in times.items():
        middle = milliseconds(seconds, 0.5)
        ratio = (
            ""
            if name.startswith("recall") or "embedding" in name
            else f"   recall takes {own / middle:.2f} times"
        )
        print(f"{name:34} {middle:7.1f} / {milliseconds(seconds, 0.95):6.1f}{ratio}")


if __name__ == "__main__":
    main()
