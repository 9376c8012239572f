"""Fixtures that serve the application on a real port, for client libraries."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
import uvicorn

from memoryhub.asgi import application
from tests.conftest import Cast, make_cast
from tests.factories import make_key_text
from tests.fakes.openai_server import ScriptedOpenAI
from tests.stack import free_port
from workspaces.models import User, Workspace


@contextmanager
def running(app: Any) -> Iterator[str]:
    """Yield the address of a real server in a thread."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def door() -> Iterator[str]:
    with running(application) as address:
        yield address


@pytest.fixture
def people(transactional_db: None, scripted_model: ScriptedOpenAI) -> Cast:
    """Create and commit the cast; the owner and the editor have memory turned on."""
    cast = make_cast()
    User.objects.filter(pk__in=[cast.owner.pk, cast.editor.pk]).update(memory_default=True)
    cast.owner.refresh_from_db()
    cast.editor.refresh_from_db()
    return cast


def client_of(door: str, by: User, workspace: Workspace, **options: Any) -> openai.OpenAI:
    """Return OpenAI's own client with a new API key of this user."""
    key = make_key_text(by, workspace, **options)
    return openai.OpenAI(base_url=f"{door}/v1", api_key=key, max_retries=0, timeout=20)
