from __future__ import annotations

from collections.abc import Callable

import pytest

from memoryhub.llm.base import Embedder
from tests.fakes.embedder import FakeEmbedder

USERS_OF_THE_EMBEDDER = ("memories.embedding", "memories.recall", "memories.tasks")


@pytest.fixture
def use_embedder(monkeypatch: pytest.MonkeyPatch) -> Callable[[Embedder | None], None]:
    """Put another embedder (or none) in the place of the bundled one."""

    def use(embedder: Embedder | None) -> None:
        for module in USERS_OF_THE_EMBEDDER:
            monkeypatch.setattr(f"{module}.get_embedder", lambda: embedder)

    return use


@pytest.fixture
def fake_embedder(use_embedder: Callable[[Embedder | None], None]) -> FakeEmbedder:
    embedder = FakeEmbedder(64)
    use_embedder(embedder)
    return embedder
