"""``/mcp`` by the protocol's own client, over HTTP and over standard input and output."""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.utils import timezone
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from chat.programs.mcp_tools import TOOLS
from memories.models import Memory
from tests.conftest import Cast
from tests.factories import make_document, make_key_text, make_memory, make_token_text, make_workspace
from workspaces.accounts.keys import count_request, verify_key
from workspaces.models import ApiKey, AuditEvent, KeyScope, User

pytestmark = pytest.mark.django_db(transaction=True)


def with_client(door: str, key: str, use: Callable[[Any], Awaitable[Any]], **options: Any) -> Any:
    """Return the result of ``use`` with a connected client."""

    async def run() -> Any:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
            transport = streamable_http_client(f"{door}/mcp", http_client=http)
            async with McpClient(transport, **options) as client:
                try:
                    return await use(client)
                except MCPError as error:  # a task group would wrap it
                    return error

    made = asyncio.run(run())
    if isinstance(made, MCPError):
        raise made
    return made


def called(door: str, key: str, tool: str, **arguments: Any) -> Any:
    return with_client(door, key, lambda client: client.call_tool(tool, arguments))


@pytest.fixture
def key(people: Cast) -> str:
    return make_key_text(people.editor, people.workspace)


def test_what_is_saved_is_recalled_listed_read_and_forgotten(door: str, key: str, people: Cast) -> None:
    async def use(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == set(TOOLS)
        assert all(tool.title and tool.output_schema and tool.annotations for tool in tools.values())
        assert tools["recall_memory"].annotations.read_only_hint is True
        assert tools["forget_memory"].annotations.destructive_hint is True
        assert tools["recall_memory"].input_schema["required"] == ["query"]
        saved = await client.call_tool(
            "save_memory", {"content": "Eddie's cat is called Tilly", "category": "fact"}
        )
        memory = saved.structured_content["memory"]
        assert (saved.is_error, saved.structured_content["outcome"]) == (False, "saved")
        again = await client.call_tool("save_memory", {"content": "Eddie's cat is called Tilly"})
        assert again.structured_content["outcome"] == "duplicate"
        found = await client.call_tool("recall_memory", {"query": "What is the cat called?"})
        assert [each["id"] for each in found.structured_content["memories"]] == [memory["id"]]
        assert "Tilly" in found.content[0].text
        results = (await client.call_tool("search_workspace", {"query": "cat"})).structured_content["results"]
        assert results[0]["type"] == "memory"
        [resource] = (await client.list_resources()).resources
        read = await client.read_resource(resource.uri)
        assert read.contents[0].text == memory["content"]
        assert (await client.list_resource_templates()).resource_templates
        [prompt] = (await client.list_prompts()).prompts
        introduced = (await client.get_prompt(prompt.name)).messages[0].content.text
        assert "Shared" in introduced and "Tilly" in introduced
        gone = await client.call_tool("forget_memory", {"memory_id": memory["id"]})
        assert gone.structured_content == {"forgotten": memory["id"]}
        listed = await client.call_tool("list_memories", {})
        assert listed.structured_content["memories"] == []

    with_client(door, key, use)
    memory = Memory.objects.get()
    assert (memory.source_type, memory.author, memory.deleted_at is not None) == (
        "model",
        people.editor,
        True,
    )
    assert AuditEvent.objects.filter(
        verb="memory_deleted", target=memory.public_id, by_id=people.editor.public_id
    ).exists()
    assert ApiKey.objects.get().calls > 8


def test_oldest_and_newest_versions_of_the_protocol_are_understood(door: str, key: str, people: Cast) -> None:
    make_memory("Cats purr", people.editor, people.workspace)
    for version in ("2024-11-05", "2025-11-25", "2026-07-28"):
        speak(door, key, version)
        Memory.objects.filter(content__startswith="Spoken in").delete()


def speak(door: str, key: str, version: str) -> None:
    """Make each kind of request in this version, with one memory about cats in the workspace."""

    def post(method: str, params: Any, named: str = "name") -> httpx2.Response:
        headers = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
        if method != "initialize":
            headers["mcp-protocol-version"] = version
        if version >= "2026":
            headers |= {"mcp-method": method, **({"mcp-name": params[named]} if named in params else {})}
            meta = {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params = {**params, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return httpx2.post(f"{door}/mcp", json=body, headers=headers)

    if version < "2026":
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert post("initialize", hello).json()["result"]["protocolVersion"] == version
    tools = post("tools/list", {}).json()["result"]["tools"]
    assert {tool["name"] for tool in tools} == set(TOOLS)
    if version < "2026":  # later versions have no ping
        assert post("ping", {}).json()["result"] == {}
    [resource] = post("resources/list", {}).json()["result"]["resources"]
    assert post("resources/read", {"uri": resource["uri"]}, named="uri").json()["result"]["contents"][0][
        "text"
    ]
    assert len(post("resources/templates/list", {}).json()["result"]["resourceTemplates"]) == 2
    [prompt] = post("prompts/list", {}).json()["result"]["prompts"]
    assert "Cats purr" in post("prompts/get", {"name": prompt["name"]}).text
    refused = post("tools/call", {"name": "recall_memory", "arguments": {}}).json()["result"]
    assert refused["isError"] and "query is required" in refused["content"][0]["text"]
    assert post("tools/call", {"name": "no_such_tool", "arguments": {}}).json()["error"]["code"] == -32602
    made = post(
        "tools/call", {"name": "save_memory", "arguments": {"content": f"Spoken in {version}"}}
    ).json()
    assert "Saved to memory" in made["result"]["content"][0]["text"]


def test_progress_is_told_to_who_asks_and_hanging_up_cancels(
    door: str, key: str, people: Cast, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, of: float | None, message: str | None) -> None:
        told.append((done, of, message))

    saved = with_client(
        door,
        key,
        lambda client: client.call_tool("save_memory", {"content": "Cats purr"}, progress_callback=progress),
    )
    assert saved.structured_content["outcome"] == "saved"
    assert told == [(0, 1, "Save to memory"), (1, 1, None)]
    began, may_end, ended = threading.Event(), threading.Event(), list[BaseException | None]()

    async def slow(ctx: Any, params: Any) -> Any:
        began.set()
        try:
            await asyncio.wait_for(asyncio.to_thread(may_end.wait, 20), 20)
        except BaseException as error:
            ended.append(error)
            raise

    monkeypatch.setattr("chat.programs.mcp_server._list_tools", slow)
    headers = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
    params = {"_meta": {"progressToken": "p"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
    with httpx2.stream("POST", f"{door}/mcp", json=body, headers=headers, timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream") and began.wait(10)
    eventually(lambda: len(ended) == 1)
    monkeypatch.setattr("chat.views.mcp.RECHECK_SECONDS", 0.05)
    with httpx2.stream("POST", f"{door}/mcp", json=body, headers=headers, timeout=20) as answer:
        ApiKey.objects.update(revoked_at=timezone.now())
        assert not [line for line in answer.iter_lines() if line.startswith("data: {")]
    may_end.set()


def test_lost_key_ends_a_stream_that_never_falls_silent(
    door: str, people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def chatter(request: Any, key: Any, said: asyncio.Queue[str | None]) -> None:
        for _ in range(500):  # ten seconds
            said.put_nowait("data: {}\n\n")
            await asyncio.sleep(0.02)

    monkeypatch.setattr("chat.views.mcp._run", chatter)
    monkeypatch.setattr("chat.views.mcp.RECHECK_SECONDS", 0.1)
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {"progressToken": "p"}}}
    for how in ("revoked", "removed"):
        key = make_key_text(people.editor, people.workspace)
        headers = {"authorization": f"Bearer {key}", "accept": "text/event-stream"}
        with httpx2.stream("POST", f"{door}/mcp", json=body, headers=headers, timeout=20) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "data: {}"
            if how == "revoked":
                ApiKey.objects.update(revoked_at=timezone.now())
            else:
                people.workspace.memberships.filter(user=people.editor).delete()
            assert sum(1 for line in lines if line) < 250, how


def test_documents_are_found_read_on_and_read_as_resources(door: str, key: str, people: Cast) -> None:
    text = "".join(f"Line {number} of the manual says that ovens are hot.\n" for number in range(130))
    document = make_document(people.owner, people.workspace, text, title="Manual")
    make_document(people.stranger, text="The vault's code is red.", embedded=False)
    other = make_document(
        people.owner, make_workspace(owner=people.owner, name="Other"), "Ovens", embedded=False
    )
    memory = make_memory("Ovens are cleaned on Friday", people.owner, people.workspace)

    async def use(client: Any) -> None:
        asked = {"query": "What does the manual say of ovens?", "types": ["document"]}
        [found, *_rest] = (await client.call_tool("search_workspace", asked)).structured_content["results"]
        assert (found["type"], found["id"], found["title"]) == ("document", document.public_id, "Manual")
        read, start = "", 0
        while start is not None:
            given = {"id": document.public_id, "from": start}
            piece = (await client.call_tool("read_document", given)).structured_content
            read, start = read + piece["text"], piece["next_from"]
        assert read.split() == text.split() and piece["characters"] == document.characters
        none, malformed = "does not exist", "may not have a NUL character"
        for hidden, why in ((other.public_id, none), ("doc_x", none), ("\0", malformed)):
            refused = await client.call_tool("read_document", {"id": hidden})
            assert refused.is_error and why in refused.content[0].text
        first = await client.list_resources()
        assert [each.uri for each in first.resources] == [f"memory://{memory.public_id}"]
        second = await client.list_resources(cursor=first.next_cursor)
        assert [(each.uri, each.title) for each in second.resources] == [
            (f"document://{document.public_id}", "Manual")
        ]
        assert second.next_cursor is None and second.resources[0].annotations.last_modified
        whole = await client.read_resource(second.resources[0].uri)
        assert whole.contents[0].text.split() == text.split()
        for hidden in (f"document://{other.public_id}", f"memory://{document.public_id}"):
            with pytest.raises(MCPError):
                await client.read_resource(hidden)

    with_client(door, key, use)


def test_pages_follow_one_another_while_memories_come_and_go(door: str, key: str, people: Cast) -> None:
    made = [make_memory(f"Fact number {n}", people.owner, people.workspace).public_id for n in range(7)]

    async def use(client: Any) -> list[str]:
        seen, cursor = [], None
        while True:
            asked = {"limit": 3} | ({"cursor": cursor} if cursor else {})
            page = (await client.call_tool("list_memories", asked)).structured_content
            seen += [each["id"] for each in page["memories"]]
            cursor = page["next_cursor"]
            if cursor is None:
                return seen
            await client.call_tool("forget_memory", {"memory_id": cursor})
            await client.call_tool("save_memory", {"content": f"Came later, after {cursor}"})

    assert with_client(door, key, use) == made[::-1]


def test_what_is_listed_says_when_it_holds(door: str, key: str, people: Cast) -> None:
    until = datetime(2025, 6, 30, tzinfo=UTC)
    newer = make_memory("The vault is at Bo", people.owner, people.workspace)
    older = make_memory("The vault is at Ava", people.owner, people.workspace)
    Memory.objects.filter(pk=older.pk).update(valid_to=until, replaced_by=newer)
    [shown, _newer] = called(door, key, "list_memories").structured_content["memories"]
    assert (shown["valid_to"], shown["replaced_by"]) == (until.isoformat(), newer.public_id)

    async def use(client: Any) -> None:
        listed = (await client.list_resources()).resources
        assert [each.description.endswith("until 2025-06-30") for each in listed] == [True, False]

    with_client(door, key, use)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("save_memory", {}, "content is required"),
    ("save_memory", {"content": " "}, "content must not be blank"),
    ("save_memory", {"content": "x" * 2001}, "at most 2,000"),
    ("save_memory", {"content": "The key is sk-ant-api03-" + "a" * 80}, "not stored"),
    ("save_memory", {"content": "My card is 4111 1111 1111 1111"}, "not stored"),
    ("save_memory", {"content": ["a"]}, "content must be text"),
    ("recall_memory", {"query": "tea", "as_of": "last spring"}, "as_of must be a day, such as 2026-03-15"),
    ("list_memories", {"cursor": "mem_\x00"}, "cursor may not have a NUL character"),
    ("list_memories", {"category": "mem_\x00"}, "category may not have a NUL character"),
    ("list_memories", {"cursor": "mem_" + "a" * 24}, "none of this list"),
]


def test_invalid_arguments_are_refused_with_the_reason(door: str, key: str) -> None:
    async def use(client: Any) -> None:
        for tool, arguments, why in WRONG:
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error and why in refused.content[0].text, (tool, arguments)
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor="mem_\x00")
        for request in (
            lambda: client.call_tool("drop_tables", {}),
            lambda: client.read_resource("memory://mem_x"),
            lambda: client.read_resource("file:///etc/passwd"),
            lambda: client.get_prompt("other"),
            lambda: client.list_resources(cursor="mem_x"),
        ):
            with pytest.raises(MCPError):
                await request()

    with_client(door, key, use)
    assert not Memory.objects.exists()


# Permissions


def test_each_tool_by_each_kind_of_key(door: str, people: Cast) -> None:
    """Users see only their own data, and a key never exceeds its scope, its workspace and its user's role."""
    User.objects.update(memory_default=True)
    shared = make_memory("The deadline of Apollo is March 15", people.owner, people.workspace)
    own = make_memory("Olive is afraid of spiders", people.owner, people.workspace, scope="user")
    other = make_workspace(owner=people.owner, name="Other")
    keys = {
        "owner": make_key_text(people.owner, people.workspace),
        "owner, read": make_key_text(people.owner, people.workspace, scope=KeyScope.READ),
        "owner, elsewhere": make_key_text(people.owner, other),
        "editor": make_key_text(people.editor, people.workspace),
        "viewer": make_key_text(people.viewer, people.workspace, scope=KeyScope.READ),
        "stranger": make_key_text(people.stranger, make_workspace(owner=people.stranger)),
        "editor, token": make_token_text(people.editor, people.workspace, resource="/mcp"),
        "owner, read token": make_token_text(people.owner, people.workspace, scope=KeyScope.READ),
    }
    sees = {
        "owner": {shared.public_id, own.public_id},
        "owner, read": {shared.public_id, own.public_id},
        "owner, elsewhere": {own.public_id},
        "editor": {shared.public_id},
        "viewer": {shared.public_id},
        "stranger": set(),
        "editor, token": {shared.public_id},
        "owner, read token": {shared.public_id, own.public_id},
    }
    writes = {"owner", "owner, elsewhere", "editor", "stranger", "editor, token"}

    async def use(client: Any) -> dict[str, Any]:
        got: dict[str, Any] = {}
        for tool, arguments in (
            ("list_memories", {}),
            ("recall_memory", {"query": "When is the deadline of Apollo, and who is afraid of spiders?"}),
            ("search_workspace", {"query": "When is the deadline of Apollo, and who is afraid of spiders?"}),
        ):
            found = (await client.call_tool(tool, arguments)).structured_content
            got[tool] = {each["id"] for each in found.get("memories") or found.get("results") or ()}
        got["resources"] = {
            each.uri.removeprefix("memory://") for each in (await client.list_resources()).resources
        }
        readable = set()
        for memory in (shared, own):
            with suppress(MCPError):  # refused: the remaining data is compared below
                await client.read_resource(f"memory://{memory.public_id}")
                readable.add(memory.public_id)
        got["read"] = readable
        text = (await client.get_prompt("introduce_workspace")).messages[0].content.text
        got["prompt"] = {each.public_id for each in (shared, own) if each.content in text}
        got["save"] = not (await client.call_tool("save_memory", {"content": "Penguins cannot fly"})).is_error
        if "stranger" in who or "viewer" in who or "read" in who:
            forgot = [
                await client.call_tool("forget_memory", {"memory_id": each.public_id})
                for each in (shared, own)
            ]
            assert all(each.is_error for each in forgot)
        return got

    for who, key in keys.items():
        got = with_client(door, key, use)
        assert got.pop("save") == (who in writes), who
        new = set(Memory.objects.filter(content="Penguins cannot fly").values_list("public_id", flat=True))
        assert {name: found - new for name, found in got.items()} == dict.fromkeys(got, sees[who]), who
        Memory.objects.filter(public_id__in=new).delete()
    assert Memory.objects.live().count() == 2


def test_without_consent_nothing_is_automatic_and_looking_after_them_works(
    door: str, people: Cast, settings: Any
) -> None:
    memory = make_memory("The deadline of Apollo is March 15", people.owner, people.workspace)
    key = make_key_text(people.owner, people.workspace)
    User.objects.update(memory_default=None)

    async def use(client: Any) -> None:
        for tool, arguments in (
            ("save_memory", {"content": "Cats purr"}),
            ("recall_memory", {"query": "Apollo"}),
        ):
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error and "Memory is off" in refused.content[0].text
        assert (await client.call_tool("list_memories", {})).structured_content["memories"]
        assert not (await client.call_tool("forget_memory", {"memory_id": memory.public_id})).is_error

    with_client(door, key, use)


def test_a_workspace_that_stays_here_gives_nothing(door: str, key: str, people: Cast) -> None:
    make_memory("The deadline of Apollo is March 15", people.owner, people.workspace)
    people.workspace.local_only = True
    people.workspace.save()

    async def use(client: Any) -> None:
        for tool, arguments in (
            ("recall_memory", {"query": "Apollo"}),
            ("list_memories", {}),
            ("save_memory", {"content": "a b"}),
        ):
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error and "on this machine" in refused.content[0].text
        with pytest.raises(MCPError):
            await client.list_resources()

    with_client(door, key, use)


def test_request_without_a_valid_key_is_refused(people: Cast) -> None:
    for header in (None, "Bearer mh_" + "a" * 43, "Basic eDp5"):
        client = Client(headers={"authorization": header} if header else None)
        answer = client.post(
            "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, content_type="application/json"
        )
        assert answer.status_code == 401 and answer["WWW-Authenticate"].startswith("Bearer"), header
        client.force_login(people.owner)
        assert client.post("/mcp", {}, content_type="application/json").status_code == 401, header


def test_a_desktop_program_speaks_over_standard_input_and_output(
    people: Cast, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the command's own loop, with pipes to a client that sends, reads and disconnects."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "save_memory", "arguments": {"content": "Eddie's cat is called Tilly"}}
    answers: list[Any] = []

    def program(said: int, heard: int) -> None:
        with open(said, "w") as out, open(heard) as answered:
            for number, method, params in (
                (1, "initialize", hello),
                (2, "tools/call", call),
                (3, "tools/call", call),
            ):
                if number == 3:
                    ApiKey.objects.update(revoked_at=timezone.now())
                    connection.close()
                message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                out.write(json.dumps(message) + "\n")
                out.flush()
                answers.append(json.loads(answered.readline()))

    (stdin, said), (heard, stdout) = os.pipe(), os.pipe()
    monkeypatch.setenv("MEMORYHUB_KEY", key)
    thread = threading.Thread(target=program, args=(said, heard))
    with monkeypatch.context() as patch, open(stdin) as given, open(stdout, "w") as taken:
        patch.setattr(sys, "stdin", given)
        patch.setattr(sys, "stdout", taken)
        thread.start()
        call_command("mcp")
    thread.join(5)
    hi, saved, revoked = answers
    assert hi["result"]["serverInfo"]["name"] == "memoryhub"
    assert saved["result"]["structuredContent"]["outcome"] == "saved"
    assert "revoked" in revoked["error"]["message"]
    assert Memory.objects.get().author == people.editor


def test_standard_input_has_the_rate_limit_of_the_key(
    people: Cast, key: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.KEY_RATE = 1
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)  # the count is of one minute
    count_request(verify_key(key, now=now), now=now)
    monkeypatch.setenv("MEMORYHUB_KEY", key)
    with pytest.raises(CommandError, match="Try again"):
        call_command("mcp")
