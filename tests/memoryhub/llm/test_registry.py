import asyncio
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from memoryhub.llm import errors, registry
from memoryhub.llm.base import Capabilities, Message
from memoryhub.llm.bundled_embedder import TwoEncoders
from memoryhub.local import model_server
from tests.fakes.openai_server import ScriptedOpenAI

QUESTION = [Message("user", "Hello")]


@pytest.fixture
def embedded(settings: Settings, tmp_path: Path) -> Path:
    settings.LLM_BASE_URL = None
    settings.EMBEDDED_MODEL = True
    settings.DATA_DIR = tmp_path
    (tmp_path / "run").mkdir()
    return tmp_path


def announce(data_dir: Path, server: ScriptedOpenAI) -> None:
    model_server.write_endpoint(
        data_dir, model_server.Endpoint(server.base_url, server.api_key, "smollm2-135m-instruct")
    )


def test_a_configured_server(scripted_model: ScriptedOpenAI, settings: Settings) -> None:
    settings.LLM_HAS_TOOLS, settings.LLM_CAN_EXTRACT, settings.LLM_CONTEXT_TOKENS = True, True, 9000
    model = registry.get_chat_model()
    assert model.name == "scripted-model"
    assert model.capabilities == Capabilities(
        has_tools=True, can_extract=True, context_tokens=9000, local=True
    )
    assert model.complete(QUESTION) == "Hello from the script."


def test_knows_whether_the_model_is_on_this_machine(
    scripted_model: ScriptedOpenAI, settings: Settings
) -> None:
    for url, local in (
        ("https://api.openai.com/v1", False),
        ("http://192.168.1.20:11434/v1", False),
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1:1234/v1", True),
        ("http://[::1]:1234/v1", True),
    ):
        settings.LLM_BASE_URL = url
        assert registry.get_chat_model().capabilities.local is local, url


def test_models_are_made_once_until_settings_change(
    scripted_model: ScriptedOpenAI, settings: Settings
) -> None:
    chat, embedder = registry.get_chat_model(), registry.get_embedder()
    assert registry.get_chat_model() is chat
    assert registry.get_embedder() is embedder
    settings.LLM_MODEL = "another"
    assert registry.get_chat_model().name == "another"
    assert registry.get_embedder() is embedder


def test_the_embedded_model_before_it_runs(embedded: Path) -> None:
    model = registry.get_chat_model()
    assert model.capabilities == registry.EMBEDDED_CAPABILITIES
    with pytest.raises(errors.ModelUnavailable, match="built-in model is still starting"):
        model.complete(QUESTION)
    with pytest.raises(errors.ModelUnavailable, match="built-in model is still starting"):
        asyncio.run(anext(model.stream(QUESTION)))


def test_the_embedded_model_is_found_once_it_runs_and_after_it_moved(
    embedded: Path, scripted_openai: ScriptedOpenAI
) -> None:
    model = registry.get_chat_model()
    model_server.write_endpoint(
        embedded, model_server.Endpoint("http://127.0.0.1:9/v1", "old-key", "old-model")
    )
    with pytest.raises(errors.ModelUnavailable, match="cannot be reached"):
        model.complete(QUESTION)
    announce(embedded, scripted_openai)
    assert model.complete(QUESTION) == "Hello from the script."
    assert registry.get_chat_model() is model
    assert model.name == "smollm2-135m-instruct"


def test_neither_a_server_nor_the_embedded_model(settings: Settings) -> None:
    settings.LLM_BASE_URL = None
    settings.EMBEDDED_MODEL = False
    with pytest.raises(errors.ModelMissing, match="No model is connected"):
        registry.get_chat_model().complete(QUESTION)


def test_embedders(settings: Settings, scripted_openai: ScriptedOpenAI) -> None:
    settings.EMBEDDING_BASE_URL, settings.EMBEDDING_MODEL = None, "none"
    assert registry.get_embedder() is None
    settings.EMBEDDING_MODEL = ""
    assert isinstance(registry.get_embedder(), TwoEncoders)
    settings.EMBEDDING_BASE_URL = scripted_openai.base_url
    settings.EMBEDDING_API_KEY, settings.EMBEDDING_MODEL = scripted_openai.api_key, "big-embedder"
    embedder = registry.get_embedder()
    assert embedder is not None
    assert embedder.name == "big-embedder"
    assert embedder.embed(["tea"]).shape == (1, 384)
