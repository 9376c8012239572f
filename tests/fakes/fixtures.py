"""Fixtures of the fakes; tests/conftest.py loads them as a plugin."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.fakes.local_model import running_local_model
from tests.fakes.openai_server import ScriptedOpenAI


@pytest.fixture
def scripted_openai() -> Iterator[ScriptedOpenAI]:
    """A scripted OpenAI-compatible server on a port of its own."""
    server = ScriptedOpenAI().start()
    yield server
    server.stop()


@pytest.fixture
def scripted_model(scripted_openai: ScriptedOpenAI, settings: Settings) -> ScriptedOpenAI:
    """The scripted server as the chat model in the settings; the embedder stays the same."""
    settings.LLM_BASE_URL = scripted_openai.base_url
    settings.LLM_API_KEY = scripted_openai.api_key
    settings.LLM_MODEL = scripted_openai.model
    settings.EMBEDDED_MODEL = False
    settings.LLM_HAS_TOOLS = settings.LLM_CAN_EXTRACT = True
    settings.LLM_CONTEXT_TOKENS = 16_384
    return scripted_openai


@pytest.fixture(scope="session")
def local_model_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start the real embedded model server once a session. Yield the data folder with its address."""
    with running_local_model(tmp_path_factory.mktemp("local-model")) as data_dir:
        yield data_dir


@pytest.fixture
def local_model(local_model_data_dir: Path, settings: Settings) -> Path:
    """The real embedded model as the chat model in the settings. Mark such a test `local_model`."""
    settings.LLM_BASE_URL = None
    settings.EMBEDDED_MODEL = True
    settings.DATA_DIR = local_model_data_dir
    return local_model_data_dir
