"""Addresses that people and programs write with slight variations."""

import httpx2
import pytest

from chat.programs.mcp_tools import TOOLS
from tests.conftest import Cast
from tests.factories import make_agent, make_key_text
from tests.fakes.openai_server import ScriptedOpenAI

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def headers(people: Cast) -> dict[str, str]:
    return {"authorization": f"Bearer {make_key_text(people.editor, people.workspace)}"}


def test_the_address_of_mcp_may_end_in_a_slash_and_has_no_session_to_end(
    door: str, headers: dict[str, str]
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    said = httpx2.post(f"{door}/mcp/", json=message, headers=headers).json()
    assert {tool["name"] for tool in said["result"]["tools"]} == set(TOOLS)
    for method in ("GET", "DELETE"):
        assert httpx2.request(method, f"{door}/mcp", headers=headers).status_code == 405
    challenge = httpx2.post(f"{door}/mcp/", json=message).headers["www-authenticate"]
    where = challenge.partition('resource_metadata="')[2].partition('"')[0]
    assert httpx2.get(where).json()["resource"] == f"{door}/mcp"


def test_name_in_a_header_may_have_any_letters(
    door: str, people: Cast, scripted_model: ScriptedOpenAI, headers: dict[str, str]
) -> None:
    make_agent(people.owner, people.workspace, name="Prüferin", instructions="Look twice.")
    asked = {"model": "default", "messages": [{"role": "user", "content": "Is it right?"}]}
    for encoding in ("utf-8", "latin-1"):  # as curl sends it, and as browsers do
        sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        sent.append((b"x-memoryhub-assistant", "Prüferin".encode(encoding)))
        assert httpx2.post(f"{door}/v1/chat/completions", json=asked, headers=sent).status_code == 200
        assert "Look twice." in scripted_model.requests[-1].messages[0]["content"], encoding


def test_invalid_number_in_json_is_refused(
    door: str, scripted_model: ScriptedOpenAI, headers: dict[str, str]
) -> None:
    headers["content-type"] = "application/json"
    for number in ("1e999", "-1e999", "NaN", "Infinity", "9" * 5_000):
        body = f'{{"model": "default", "temperature": {number}, "messages": [{{"role": "user", "content": "Hi"}}]}}'
        refused = httpx2.post(f"{door}/v1/chat/completions", content=body, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "malformed"), number[:8]
    assert not scripted_model.requests
