"""Fixtures of the seeds: an installation with a scripted model, used over REST."""

from collections.abc import Sequence
from typing import Any

import pytest

from chat.runs.worker import work
from memories import tasks
from memories.models import Extraction
from memories.models.extraction import ExtractionStatus
from tests.api import Api
from tests.conftest import Cast
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.openai_server import Received, ScriptedOpenAI
from workspaces.access import default_workspace


class Hub:
    """A REST client of one user in one workspace, with the requests to the model."""

    def __init__(self, cast: Cast, model: ScriptedOpenAI) -> None:
        self.cast, self.model = cast, model
        self.ws = f"workspaces/{cast.workspace.public_id}"
        self.api = Api(cast.owner)

    def move_home(self) -> None:
        """Switch to the user's own workspace, which has no other readers."""
        self.ws = f"workspaces/{default_workspace(self.cast.owner).public_id}"

    def chat(self, **fields: Any) -> str:
        body = {"workspace_id": self.ws.removeprefix("workspaces/"), "memory_enabled": True} | fields
        made = self.api.post("chats", body)
        assert made.status_code == 201, made.content
        return str(made.json()["id"])

    def say(self, chat_id: str, text: str, **fields: Any) -> dict[str, Any]:
        """Take a whole turn. Return its answer."""
        turn = self.api.post(f"{chat_id}/messages", {"content": text, "stream": False, **fields})
        assert turn.status_code == 201, turn.content
        return dict(turn.json()["answer"])

    def save(self, content: str, **fields: Any) -> dict[str, Any]:
        made = self.api.post(f"{self.ws}/memories", {"content": content, **fields})
        assert made.status_code in (200, 201), made.content
        return dict(made.json())

    def memories(self) -> list[dict[str, Any]]:
        return list(self.api.get(f"{self.ws}/memories").json()["items"])

    def texts(self) -> set[str]:
        return {memory["content"] for memory in self.memories()}

    def recall(self, query: str, **fields: Any) -> list[dict[str, Any]]:
        found = self.api.post(f"{self.ws}/recall", {"query": query, **fields})
        assert found.status_code == 200, found.content
        return list(found.json()["memories"])

    def mine(self) -> None:
        """Run the jobs that extract from finished turns."""
        for row in Extraction.objects.exclude(status=ExtractionStatus.DONE):
            tasks.extract_turn(extraction_id=row.pk)

    @property
    def asked(self) -> Received:
        """Return the last request to the model."""
        return self.model.chat_requests[-1]

    def items(self, tag: str) -> list[dict[str, Any]]:
        return [said for said in self.asked.messages if tag in str(said["content"])]

    def run(self, objective: str = "Compare", **fields: Any) -> dict[str, Any]:
        """Run to the end. Return the run."""
        made = self.api.post(f"{self.ws}/runs", {"objective": objective, **fields})
        assert made.status_code == 202, made.content
        work(seconds=20, at_once=1)
        return dict(self.api.get(f"{self.ws}/runs/{made.json()['id']}").json())

    def entries(self, run_id: str) -> dict[str, dict[str, Any]]:
        """Return a run's memory by key, with values."""
        address = f"{self.ws}/runs/{run_id}/memory"
        keys = [entry["key"] for entry in self.api.get(address).json()["items"]]
        return {key: self.api.get(address, key=key).json()["items"][0] for key in keys}


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch) -> FakeEmbedder:
    """An embedder for which texts that share words are close."""
    fake = FakeEmbedder(64)
    monkeypatch.setattr("workspaces.index.embedding.get_embedder", lambda: fake)
    return fake


@pytest.fixture
def hub(cast: Cast, scripted_model: ScriptedOpenAI) -> Hub:
    return Hub(cast, scripted_model)


@pytest.fixture
def turns(transactional_db: None, hub: Hub) -> Hub:
    """The client with committed rows, which the threads of turns need."""
    return hub


def contents(messages: Sequence[dict[str, Any]]) -> str:
    return "\n".join(str(said["content"]) for said in messages)
