"""OAuth sign-in of a client that knows only the server's address, by the protocol's own client, over HTTP."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from mcp import Client as McpClient
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from memories.models import Memory
from tests.conftest import Cast
from tests.factories import make_memory
from tests.fakes.openai_server import HOLD, Answer, ScriptedOpenAI
from tests.workspaces.oauth.programs import BACK, ask, browser_of, consent, said_in, signed_in
from workspaces.accounts.keys import revoke_key
from workspaces.models import ApiKey, AuditEvent, OAuthToken

pytestmark = pytest.mark.django_db(transaction=True)


class Program(OAuthClientProvider):
    """The SDK's own client, whose user answers the consent page. ``times`` counts the consent pages."""

    def __init__(self, door: str, people: Cast, **consent_changes: str) -> None:
        self.tokens: Any = None
        self.information: Any = None
        self.times, self._said = 0, dict[str, str]()
        self._people, self._changes = people, consent_changes
        metadata = OAuthClientMetadata(client_name="Inspector", redirect_uris=[AnyUrl(BACK)])
        super().__init__(f"{door}/mcp", metadata, self, self._open, self._come_back)  # type: ignore[arg-type]

    async def _open(self, url: str) -> None:
        self.times += 1
        self._said = await sync_to_async(self._answer, thread_sensitive=False)(url)

    def _answer(self, url: str) -> dict[str, str]:
        parts = urlsplit(url)
        try:
            browser = browser_of(self._people.editor)
            browser.defaults["HTTP_HOST"] = parts.netloc
            asked = f"{parts.path}?{parts.query}"
            return said_in(consent(browser, asked, self._people.workspace, **self._changes))
        finally:
            connection.close()

    async def _come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self._said)

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.information

    async def set_client_info(self, client_info: Any) -> None:
        self.information = client_info

    def calls(self, door: str, tool: str, **arguments: Any) -> Any:
        async def run() -> Any:
            http = httpx2.AsyncClient(auth=self, timeout=20)
            async with http, McpClient(streamable_http_client(f"{door}/mcp", http_client=http)) as client:
                return await client.call_tool(tool, arguments)

        return asyncio.run(run())


def test_a_program_that_knows_only_the_address_signs_in_refreshes_and_is_revoked(
    door: str, people: Cast
) -> None:
    program = Program(door, people)
    saved = program.calls(door, "save_memory", content="Eddie's cat is called Tilly")
    assert saved.structured_content["outcome"] == "saved" and program.times == 1
    assert Memory.objects.get().author == people.editor
    key = ApiKey.objects.get()
    assert (key.user, key.workspace, key.scope, key.name) == (
        people.editor,
        people.workspace,
        "write",
        "Inspector",
    )
    assert key.calls >= 2 and AuditEvent.objects.filter(verb="key_made", target=key.public_id).exists()
    first = program.tokens
    program.context.token_expiry_time = 1.0
    assert program.calls(door, "list_memories").structured_content["memories"]
    assert program.times == 1 and program.tokens.access_token != first.access_token, (
        "without asking the person"
    )
    assert OAuthToken.objects.filter(kind="refresh", used_at=None).count() == 1
    revoke_key(key.public_id, by=people.editor, now=key.created_at)
    program.calls(door, "list_memories")
    assert program.times == 2, "its person is asked again"


def test_what_was_let_in_to_read_cannot_write(door: str, people: Cast) -> None:
    program = Program(door, people, scope="read")
    make_memory("The deadline is March 15", people.owner, people.workspace)
    assert program.calls(door, "list_memories").structured_content["memories"]
    refused = program.calls(door, "save_memory", content="Cats purr")
    assert refused.is_error and "only read" in refused.content[0].text
    assert program.times == 1


def test_a_token_speaks_the_openai_api_and_revoking_it_ends_its_streams(
    door: str, people: Cast, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = signed_in(people.editor, people.workspace, resource="/v1")
    client = openai.OpenAI(base_url=f"{door}/v1", api_key=token["access_token"], max_retries=0, timeout=20)
    monkeypatch.setattr("chat.programs.openai_api.answering.RECHECK_SECONDS", 0.05)
    scripted_model.script(Answer("On ", HOLD, "March 15."))
    messages: Any = [{"role": "user", "content": "When?"}]
    stream = iter(client.chat.completions.create(model="default", messages=messages, stream=True))
    next(stream)
    gone = ask("/oauth/revoke", client_id=token["client_id"], token=token["refresh_token"])
    assert gone.status_code == 200
    with pytest.raises(openai.APIError, match="may not be used any more"):
        list(stream)
    with pytest.raises(openai.AuthenticationError):
        client.models.list()
