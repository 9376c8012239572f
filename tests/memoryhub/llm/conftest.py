import pytest

from memoryhub.llm import openai_errors
from memoryhub.llm.base import Capabilities
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.openai_compatible import OpenAIChatModel
from tests.fakes.openai_server import ScriptedOpenAI


@pytest.fixture(autouse=True)
def no_waiting_between_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_errors, "RETRY_DELAYS_SECONDS", (0.0, 0.0))


def model_of(server: ScriptedOpenAI) -> OpenAIChatModel:
    """Return a model that has learned nothing of the server yet."""
    endpoint = Endpoint(server.base_url, server.api_key, server.model)
    capabilities = Capabilities(has_tools=False, can_extract=True, context_tokens=4096, local=True)
    return OpenAIChatModel(lambda: endpoint, capabilities, timeout=5.0)


@pytest.fixture
def model(scripted_openai: ScriptedOpenAI) -> OpenAIChatModel:
    return model_of(scripted_openai)
