"""A shared middleware chain for all of Django's test clients, each of which would load its own for a request or two.

It is loaded again after a setting has changed, since some middleware reads settings when loaded.
"""

from typing import Any

import pytest
from django.core.signals import setting_changed
from django.test.client import ClientHandler

djangos_own = ClientHandler.load_middleware
_loaded: list[ClientHandler] = []


def load_middleware(handler: ClientHandler, is_async: bool = False) -> None:
    if not _loaded:
        djangos_own(handler, is_async)
        _loaded.append(handler)
    handler._middleware_chain = _loaded[0]._middleware_chain  # type: ignore[attr-defined]


def _forget(**_: Any) -> None:
    _loaded.clear()


@pytest.fixture(scope="session", autouse=True)
def _middleware_is_loaded_once() -> None:
    ClientHandler.load_middleware = load_middleware  # type: ignore[assignment, method-assign]
    setting_changed.connect(_forget)
