import pytest

from chat.models import Chat
from tests.factories import make_chat, make_user
from tests.fakes.openai_server import ScriptedOpenAI


@pytest.fixture
def chat(scripted_model: ScriptedOpenAI) -> Chat:
    """A chat of a person who said yes to memory, with a scripted model."""
    return make_chat(make_user("olive", memory_default=True))
