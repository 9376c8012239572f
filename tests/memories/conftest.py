from collections.abc import Callable

import pytest
from django.test import Client

from memoryhub.llm.base import Embedder
from tests.admin_pages import staff
from tests.fakes.embedder import FakeEmbedder


@pytest.fixture
def use_embedder(monkeypatch: pytest.MonkeyPatch) -> Callable[[Embedder | None], None]:
    """Replace the bundled embedder with another one, or none."""

    def use(embedder: Embedder | None) -> None:
        monkeypatch.setattr("workspaces.index.embedding.get_embedder", lambda: embedder)

    return use


@pytest.fixture
def fake_embedder(use_embedder: Callable[[Embedder | None], None]) -> FakeEmbedder:
    embedder = FakeEmbedder(64)
    use_embedder(embedder)
    return embedder


@pytest.fixture
def boss(fake_embedder: FakeEmbedder) -> Client:
    """A superuser's client."""
    return staff(username="root", is_superuser=True)
