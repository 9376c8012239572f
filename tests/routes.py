"""Every route of the product and who may do what on it. ``tests/test_access_matrix.py`` proves it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from chat.agents.templates import save_template
from chat.chats.actions import delete_chat
from chat.exchange import run
from chat.models import MessageRole, Run
from chat.models.imports import Import
from chat.turns.versions import set_aside
from memories.models import CopyKind, KeptCopy, Receipt, ReceiptItem
from memories.recalling.recall_test import keep_question
from memories.tidying.deciding import keep
from memories.writing.gate import Draft, delete_memory, save_memory
from tests.conftest import Cast
from tests.factories import (
    make_agent,
    make_artifact,
    make_asset,
    make_chat,
    make_connection,
    make_delivery,
    make_document,
    make_key_text,
    make_memory,
    make_message,
    make_node,
    make_user,
    make_webhook,
)
from workspaces.artifacts import artifacts
from workspaces.documents import documents
from workspaces.models import ApiKey, Membership, Role, SignIn
from workspaces.oauth import clients

LOGIN = "login"  # sent to the login page
Status = int | str

# What owner, editor, viewer and stranger get; then who is not signed in.
EVERYBODY = (200, 200, 200, 200, 401)
MEMBERS = (200, 200, 200, 404, 401)
EDITORS = (200, 200, 403, 404, 401)
OWNERS = (200, 403, 403, 404, 401)
ANYBODY = (200, 200, 200, 200, 200)
PAGE_EVERYBODY = (200, 200, 200, 200, LOGIN)
PAGE_MEMBERS = (200, 200, 200, 404, LOGIN)
PAGE_EDITORS = (200, 200, 403, 404, LOGIN)
PAGE_OWNERS = (200, 403, 403, 404, LOGIN)
# What one person brought in is theirs alone: the cast's owner's.
THEIRS = (200, 404, 404, 404, 401)
PAGE_THEIRS = (200, 404, 404, 404, LOGIN)
# What a read key, a write key, a key of another workspace, an expired and a revoked one get; all made by the owner.
NO_KEYS = (401, 401, 401, 401, 401)
FORM = "application/x-www-form-urlencoded"  # as browsers send one without a file
KEYS_READ = (200, 200, 404, 401, 401)
KEYS_WRITE = (403, 200, 404, 401, 401)
KEYS_NEVER = (403, 403, 403, 401, 401)
KEYS_OWN = (200, 200, 200, 401, 401)
NOBODY = (401, 401, 401, 401, 401)
# Routes of others, with their own tests: who may enter the admin is proved here in one row, allauth's are public.
NOT_OURS = ("admin/", "accounts/")


def answering(code: int, statuses: tuple[Status, ...]) -> tuple[Status, ...]:
    """The same people let in, with another success code."""
    return tuple(code if status == 200 else status for status in statuses)


@dataclass(frozen=True)
class Row:
    method: str
    route: str
    statuses: tuple[Status, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    deleted: bool = False  # of a chat or memory that is deleted
    proposed: bool = False  # of a memory that waits for review
    in_threads: bool = False  # reads the database from threads of its own
    keys: tuple[Status, ...] = NO_KEYS
    query: str = ""
    upload: bool = False  # its body is a form with a file
    message: str = ""  # another than the answer: the question, or an earlier version of the answer
    fresh: bool = False  # needs a session whose person has just typed the password again

    def __str__(self) -> str:
        return f"{self.method} /{self.route}"

    @property
    def keys_alone(self) -> bool:
        """Of a door that knows no session."""
        return all(status == 401 for status in self.statuses)

    @property
    def is_api(self) -> bool:
        return self.route.startswith(("chat/api/", "api/", "v1/", "mcp"))


WS = "chat/api/workspaces/<ws_id:workspace_id>"
DOCUMENT = f"{WS}/documents/<doc_id:document_id>"
ARTIFACT = f"{WS}/artifacts/<art_id:artifact_id>"
AGENT = "chat/api/agents/<agent_id:agent_id>"
CONNECTION = "chat/api/connections/<conn_id:connection_id>"
CONNECTION_PAGE = "connections/<str:connection_id>/"
MODEL = {"name": "Mine", "base_url": "https://api.example.org/v1", "model": "m"}
WEBHOOK = f"{WS}/webhooks/<hook_id:webhook_id>"
WEBHOOKS_PAGE = "workspaces/<str:ws_id>/webhooks/"
WEBHOOK_PAGE = f"{WEBHOOKS_PAGE}<str:hook_id>/"
HOOK = {"name": "Wiki", "url": "https://example.org/hooks"}
CHAT = "chat/api/<chat_id:chat_id>"
CONSENT = (
    f"?response_type=code&client_id={{app}}&redirect_uri=https://example.org/back&code_challenge={'a' * 43}"
)
MESSAGE = f"{CHAT}/messages/<msg_id:message_id>"
RUN, RUN_PAGE = f"{WS}/runs/<run_id:run_id>", "workspaces/<str:ws_id>/runs/<str:run_id>/"
IMPORT, IMPORT_PAGE = "chat/api/imports/<imp_id:import_id>", "imports/<str:import_id>/"
V1, IN_WS = "api/v1", "?workspace_id={ws}"
NODE = f"{V1}/memory-nodes/<node_id:node_id>"
MEMORY_PAGE = "workspaces/<str:ws_id>/memories/<str:mem_id>/"
DOCUMENT_PAGE = "workspaces/<str:ws_id>/documents/<str:doc_id>/"
ARTIFACT_PAGE = "workspaces/<str:ws_id>/artifacts/<str:art_id>/"
MESSAGE_PAGE = "chats/<str:chat_id>/messages/<str:message_id>/"
RECALL_TEST = "workspaces/<str:ws_id>/recall-test/"
TIDY = "workspaces/<str:ws_id>/tidy/"
NODES = "workspaces/<str:ws_id>/nodes/"
NODE_PAGE = f"{NODES}<str:node_id>/"
API_ROWS = [
    Row("GET", "chat/api/account", EVERYBODY, keys=KEYS_NEVER),
    # The owner is the only one of a workspace that others use.
    Row("DELETE", "chat/api/account", (409, 200, 200, 200, 401), keys=KEYS_NEVER, fresh=True),
    Row("GET", "chat/api/keys", EVERYBODY),
    Row(
        "POST",
        "chat/api/keys",
        answering(201, MEMBERS),
        {"name": "Script", "workspace_id": "{ws}"},
        fresh=True,
    ),
    Row("DELETE", "chat/api/keys/<key_id:key_id>", answering(204, THEIRS)),
    Row("GET", "chat/api/workspaces", EVERYBODY),
    Row("POST", "chat/api/workspaces", answering(201, EVERYBODY), {"name": "Launch"}),
    Row("GET", WS, MEMBERS),
    Row("PATCH", WS, OWNERS, {"name": "Launch"}),
    Row("DELETE", WS, OWNERS, fresh=True),
    Row("GET", f"{WS}/members", MEMBERS),
    Row("POST", f"{WS}/members", answering(201, OWNERS), {"username": "sam", "role": "editor"}),
    Row("PATCH", f"{WS}/members/<usr_id:user_id>", OWNERS, {"role": "viewer"}),
    Row("DELETE", f"{WS}/members/<usr_id:user_id>", answering(204, OWNERS)),
    Row("GET", f"{WS}/agents", MEMBERS),
    Row("POST", f"{WS}/agents", answering(201, EDITORS), {"name": "Planner"}),
    Row("GET", f"{WS}/documents", MEMBERS),
    Row("POST", f"{WS}/documents", answering(201, EDITORS), {"title": "Rules", "text": "Turn the oven off."}),
    Row("GET", DOCUMENT, MEMBERS),
    Row("PATCH", DOCUMENT, EDITORS, {"title": "House rules"}),
    Row("DELETE", DOCUMENT, answering(204, EDITORS)),
    Row("GET", f"{DOCUMENT}/content", MEMBERS),
    Row("POST", f"{DOCUMENT}/restore", EDITORS, deleted=True),
    Row("GET", f"{DOCUMENT}/versions", MEMBERS),
    Row("POST", f"{DOCUMENT}/versions", answering(201, EDITORS), {"text": "The oven is turned off by ten."}),
    Row("POST", f"{DOCUMENT}/forget", OWNERS, deleted=True, fresh=True),
    Row("GET", f"{WS}/artifacts", MEMBERS),
    Row(
        "POST",
        f"{WS}/artifacts",
        answering(201, EDITORS),
        {"title": "Sums", "kind": "code", "content": "1 + 1"},
    ),
    Row("GET", ARTIFACT, MEMBERS),
    Row("PATCH", ARTIFACT, EDITORS, {"content": "2 + 2"}),
    Row("DELETE", ARTIFACT, answering(204, EDITORS)),
    Row("GET", f"{ARTIFACT}/versions", MEMBERS),
    Row("POST", f"{ARTIFACT}/restore", EDITORS, deleted=True),
    # Its maker, or an owner: the cast's owner made it.
    Row("POST", f"{ARTIFACT}/forget", OWNERS, fresh=True),
    Row("GET", f"{WS}/webhooks", OWNERS),
    Row("POST", f"{WS}/webhooks", answering(201, OWNERS), HOOK | {"events": ["memory.saved"]}, fresh=True),
    Row("GET", WEBHOOK, OWNERS),
    Row("PATCH", WEBHOOK, OWNERS, {"name": "Wiki"}, fresh=True),
    Row("DELETE", WEBHOOK, answering(204, OWNERS)),
    Row("POST", f"{WEBHOOK}/rotate", OWNERS, fresh=True),
    Row("GET", f"{WEBHOOK}/deliveries", OWNERS),
    Row("POST", f"{WEBHOOK}/deliveries/<evt_id:delivery_id>/resend", answering(202, OWNERS)),
    Row("GET", AGENT, MEMBERS),
    Row("PATCH", AGENT, EDITORS, {"name": "Planner"}),
    Row("DELETE", AGENT, answering(204, EDITORS)),
    Row("POST", f"{AGENT}/restore", EDITORS),
    Row("GET", "chat/api/connections", EVERYBODY),
    Row("POST", "chat/api/connections", answering(201, EVERYBODY), MODEL),
    Row("GET", CONNECTION, THEIRS),
    Row("PATCH", CONNECTION, THEIRS, {"name": "Mine"}),
    Row("DELETE", CONNECTION, answering(204, THEIRS)),
    Row("POST", f"{CONNECTION}/test", THEIRS),
    Row("GET", f"{WS}/memories", MEMBERS, keys=KEYS_READ),
    Row(
        "POST",
        f"{WS}/memories",
        answering(201, EDITORS),
        {"content": "Cats purr"},
        keys=answering(201, KEYS_WRITE),
    ),
    Row("GET", f"{WS}/memories/<mem_id:memory_id>", MEMBERS, keys=KEYS_READ),
    Row("PATCH", f"{WS}/memories/<mem_id:memory_id>", EDITORS, {"content": "Cats purr"}, keys=KEYS_WRITE),
    Row("DELETE", f"{WS}/memories/<mem_id:memory_id>", answering(204, EDITORS), keys=KEYS_NEVER),
    Row("POST", f"{WS}/memories/<mem_id:memory_id>/restore", EDITORS, deleted=True, keys=KEYS_WRITE),
    Row("POST", f"{WS}/memories/<mem_id:memory_id>/forget", OWNERS, keys=KEYS_NEVER, fresh=True),
    Row("GET", f"{WS}/memories/<mem_id:memory_id>/revisions", MEMBERS, keys=KEYS_READ),
    Row("GET", f"{WS}/proposals", MEMBERS, keys=KEYS_READ),
    Row(
        "POST",
        f"{WS}/proposals",
        answering(202, EDITORS),
        {"content": "Cats purr"},
        keys=answering(202, KEYS_WRITE),
    ),
    Row("POST", f"{WS}/proposals/<mem_id:memory_id>/approve", EDITORS, keys=KEYS_NEVER, proposed=True),
    Row(
        "POST",
        f"{WS}/proposals/<mem_id:memory_id>/reject",
        answering(204, EDITORS),
        keys=KEYS_NEVER,
        proposed=True,
    ),
    Row("GET", f"{WS}/copies", MEMBERS, keys=KEYS_READ),
    Row("POST", f"{WS}/copies/<mem_id:memory_id>/forget", OWNERS, keys=KEYS_NEVER, fresh=True),
    Row("POST", f"{WS}/copies/<mem_id:memory_id>/keep", answering(204, OWNERS), keys=KEYS_NEVER),
    Row("GET", f"{WS}/recall-questions", MEMBERS, keys=KEYS_READ),
    Row(
        "POST",
        f"{WS}/recall-questions",
        answering(201, EDITORS),
        {"text": "When is the deadline?", "memory_ids": ["{mem}"]},
        keys=answering(201, KEYS_WRITE),
    ),
    Row("POST", f"{WS}/recall-questions/run", EDITORS, keys=KEYS_WRITE),
    Row(
        "DELETE",
        f"{WS}/recall-questions/<ask_id:ask_id>",
        answering(204, EDITORS),
        keys=KEYS_NEVER,
    ),
    Row("GET", f"{WS}/tidy", MEMBERS, keys=KEYS_READ, query="?show=stale"),
    Row("GET", f"{WS}/tidy/pairs", MEMBERS, keys=KEYS_READ),
    Row(
        "POST",
        f"{WS}/tidy/kept",
        answering(201, EDITORS),
        {"memory_id": "{mem}"},
        keys=answering(201, KEYS_WRITE),
    ),
    Row("DELETE", f"{WS}/tidy/kept/<int:kept_id>", answering(204, EDITORS), keys=KEYS_NEVER),
    Row("POST", f"{WS}/recall", MEMBERS, {"query": "deadline"}, keys=KEYS_READ),
    Row("POST", f"{WS}/search", MEMBERS, {"query": "deadline"}, keys=KEYS_READ),
    Row("GET", "chat/api/chats", EVERYBODY),
    Row("POST", "chat/api/chats", answering(201, EDITORS), {"workspace_id": "{ws}"}),
    Row("GET", "chat/api/chats/<chat_id:chat_id>", MEMBERS),
    Row("PATCH", "chat/api/chats/<chat_id:chat_id>", EDITORS, {"title": "Plans"}),
    Row("DELETE", "chat/api/chats/<chat_id:chat_id>", answering(204, OWNERS)),
    Row("PUT", "chat/api/chats/<chat_id:chat_id>/mark", MEMBERS, {"mark": "pinned"}),
    Row("POST", "chat/api/chats/<chat_id:chat_id>/restore", OWNERS, deleted=True),
    Row("POST", "chat/api/chats/<chat_id:chat_id>/forget", OWNERS, fresh=True),
    Row("GET", f"{CHAT}/messages", MEMBERS),
    Row("POST", f"{CHAT}/messages", EDITORS, {"content": "Hello"}),
    Row("POST", f"{CHAT}/messages/<msg_id:message_id>/stop", EDITORS),
    Row("POST", f"{CHAT}/messages/<msg_id:message_id>/retry", EDITORS, {"stream": True}),
    Row("POST", f"{CHAT}/messages/<msg_id:message_id>/continue", EDITORS, {"stream": True}),
    Row("POST", f"{CHAT}/messages/<msg_id:message_id>/proposal", EDITORS),
    Row("POST", f"{MESSAGE}/edit", OWNERS, {"content": "When?"}, message="question"),
    Row("GET", f"{MESSAGE}/versions", MEMBERS),
    Row("POST", f"{MESSAGE}/restore", EDITORS, message="earlier"),
    Row("GET", f"{CHAT}/messages/<msg_id:message_id>/receipt", MEMBERS),
    Row("GET", f"{CHAT}/short-term", MEMBERS),
    Row("PATCH", f"{CHAT}/short-term", EDITORS, {"summary": "Cats purr"}),
    Row("POST", f"{CHAT}/memory", answering(201, EDITORS), {"content": "Cats purr"}),
    Row("GET", f"{CHAT}/memories", MEMBERS),
    Row("PATCH", f"{CHAT}/memories/<mem_id:memory_id>", EDITORS, {"content": "Cats purr"}),
    Row("DELETE", f"{CHAT}/memories/<mem_id:memory_id>", answering(204, EDITORS)),
    Row("POST", f"{CHAT}/memories/<mem_id:memory_id>/rerun-extraction", answering(202, EDITORS)),
    Row("GET", f"{WS}/export", MEMBERS),
    # The embedded model calls no tools: whoever may start one is told so.
    Row("GET", f"{WS}/runs", MEMBERS),
    Row("POST", f"{WS}/runs", answering(422, EDITORS), {"objective": "Compare the offers"}),
    Row("GET", RUN, MEMBERS),
    Row("GET", f"{RUN}/memory", MEMBERS),
    Row("GET", f"{RUN}/events", MEMBERS, in_threads=True),
    Row("POST", f"{RUN}/stop", answering(409, OWNERS)),
    Row("POST", f"{RUN}/resume", answering(409, OWNERS)),
    Row("POST", f"{RUN}/template", answering(201, EDITORS), {"name": "Offers"}),
    Row("GET", f"{WS}/runs/templates", MEMBERS),
    Row("POST", f"{WS}/runs/templates/<rtp_id:template_id>/start", answering(422, EDITORS)),
    Row("DELETE", f"{WS}/runs/templates/<rtp_id:template_id>", answering(204, OWNERS)),
    Row("POST", f"{RUN}/again", answering(422, EDITORS)),
    Row("GET", "chat/api/export", EVERYBODY),
    Row("GET", "chat/api/imports", EVERYBODY),
    Row("POST", "chat/api/imports", answering(201, EDITORS), {"workspace_id": "{ws}"}, upload=True),
    Row("GET", IMPORT, THEIRS),
    Row("DELETE", IMPORT, answering(204, THEIRS)),
    Row("GET", f"{IMPORT}/rows", THEIRS),
    Row("POST", f"{IMPORT}/start", answering(202, THEIRS), {"chats": True}),
    Row("POST", f"{IMPORT}/stop", answering(409, THEIRS)),
    Row("POST", f"{IMPORT}/resume", answering(409, THEIRS)),
    Row("GET", "chat/api/", answering(404, EVERYBODY)),
    Row("GET", f"{V1}/memories", MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row(
        "POST",
        f"{V1}/memories",
        answering(201, EDITORS),
        {"value": "Cats purr"},
        keys=answering(201, KEYS_WRITE),
        query=IN_WS,
    ),
    Row("DELETE", f"{V1}/memories", EDITORS, {"ids": ["{mem}"]}, keys=KEYS_NEVER, query=IN_WS, fresh=True),
    Row("POST", f"{V1}/memories/recall", MEMBERS, {"query": "deadline"}, keys=KEYS_READ, query=IN_WS),
    Row("GET", f"{V1}/memories/<mem_id:memory_id>", MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row(
        "PATCH",
        f"{V1}/memories/<mem_id:memory_id>",
        EDITORS,
        {"value": "Cats purr"},
        keys=KEYS_WRITE,
        query=IN_WS,
    ),
    Row(
        "DELETE",
        f"{V1}/memories/<mem_id:memory_id>",
        answering(204, EDITORS),
        keys=KEYS_NEVER,
        query=IN_WS,
        fresh=True,
    ),
    Row("GET", f"{V1}/agents", MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row("GET", f"{V1}/agents/<agent_id:agent_id>", MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row("GET", f"{V1}/memories/<mem_id:memory_id>/assets", MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row(
        "POST",
        f"{V1}/memories/<mem_id:memory_id>/assets",
        answering(201, EDITORS),
        keys=answering(201, KEYS_WRITE),
        query=IN_WS,
        upload=True,
    ),
    Row("GET", f"{V1}/assets/<asset_id:asset_id>", MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row(
        "DELETE",
        f"{V1}/assets/<asset_id:asset_id>",
        answering(204, EDITORS),
        keys=KEYS_NEVER,
        query=IN_WS,
        fresh=True,
    ),
    Row("GET", f"{V1}/memory-nodes", MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row(
        "POST",
        f"{V1}/memory-nodes",
        answering(201, EDITORS),
        {"name": "Apollo"},
        keys=answering(201, KEYS_WRITE),
        query=IN_WS,
    ),
    Row("GET", NODE, MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row("PATCH", NODE, EDITORS, {"name": "Apollo"}, keys=KEYS_WRITE, query=IN_WS),
    Row("DELETE", NODE, answering(204, EDITORS), keys=KEYS_NEVER, query=IN_WS, fresh=True),
    Row("GET", f"{NODE}/memories", MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row(
        "POST",
        f"{NODE}/memories",
        answering(201, EDITORS),
        {"memoryId": "{mem}"},
        keys=answering(201, KEYS_WRITE),
        query=IN_WS,
    ),
    Row("POST", f"{NODE}/memories/unlink", EDITORS, {"memoryId": "{mem}"}, keys=KEYS_WRITE, query=IN_WS),
    Row("GET", f"{NODE}/relations", MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row(
        "POST",
        f"{NODE}/relations",
        answering(201, EDITORS),
        {"nodeId": "{other_node}", "relation": "works on"},
        keys=answering(201, KEYS_WRITE),
        query=IN_WS,
    ),
    Row(
        "POST",
        f"{NODE}/relations/unlink",
        EDITORS,
        {"nodeId": "{other_node}", "relation": "works on"},
        keys=KEYS_WRITE,
        query=IN_WS,
    ),
    Row("GET", f"{NODE}/neighbours", MEMBERS, keys=KEYS_READ, query=IN_WS),
    Row("GET", f"{V1}/", answering(404, EVERYBODY), keys=(404, 404, 404, 401, 401)),
    # For programs: a key opens what its own workspace has, and nothing else does.
    Row("GET", "v1/models", NOBODY, keys=KEYS_OWN),
    Row("GET", "v1/models/<path:model>", NOBODY, keys=KEYS_OWN),
    Row("POST", "v1/chat/completions", NOBODY, {"model": "built-in"}, keys=answering(400, KEYS_OWN)),
    Row("POST", "v1/responses", NOBODY, {"model": "built-in"}, keys=answering(400, KEYS_OWN)),
    Row("POST", "v1/embeddings", NOBODY, {"model": "default", "input": "Cats"}, keys=KEYS_OWN),
    Row("GET", "v1/", NOBODY, keys=answering(404, KEYS_OWN)),
    # What is no message of the protocol; its tools have a matrix of their own (tests/chat/doors/test_mcp.py).
    Row("POST", "mcp", NOBODY, keys=answering(406, KEYS_OWN)),
    Row("GET", "api/schema/", EVERYBODY),
    Row("GET", "api/docs/", EVERYBODY),
]
PAGE_ROWS = [
    Row("GET", "", answering(302, PAGE_EVERYBODY)),
    Row("GET", "workspaces/", PAGE_EVERYBODY),
    Row("POST", "workspaces/", answering(302, PAGE_EVERYBODY), {"name": "Launch"}),
    Row("GET", "workspaces/<str:ws_id>/", PAGE_MEMBERS),
    Row("GET", "workspaces/<str:ws_id>/settings/", PAGE_MEMBERS),
    Row("POST", "workspaces/<str:ws_id>/short-term/", answering(302, PAGE_OWNERS), {"private": "on"}),
    Row("POST", "workspaces/<str:ws_id>/settings/", answering(302, PAGE_OWNERS), {"name": "Launch"}),
    Row("GET", "workspaces/<str:ws_id>/activity/", PAGE_OWNERS),
    Row("POST", "workspaces/<str:ws_id>/delete/", PAGE_OWNERS, {"confirm": "Shared"}, fresh=True),
    Row(
        "POST",
        "workspaces/<str:ws_id>/members/",
        answering(302, PAGE_OWNERS),
        {"username": "sam", "role": "editor"},
    ),
    Row(
        "POST",
        "workspaces/<str:ws_id>/members/<str:user_id>/role/",
        answering(302, PAGE_OWNERS),
        {"role": "viewer"},
    ),
    Row("POST", "workspaces/<str:ws_id>/members/<str:user_id>/remove/", answering(302, PAGE_OWNERS)),
    Row("GET", "workspaces/<str:ws_id>/documents/", PAGE_MEMBERS),
    Row("POST", "workspaces/<str:ws_id>/documents/", answering(302, PAGE_EDITORS), upload=True),
    Row("GET", "workspaces/<str:ws_id>/documents/choices/", PAGE_MEMBERS),
    Row("GET", DOCUMENT_PAGE, PAGE_MEMBERS),
    Row("GET", f"{DOCUMENT_PAGE}content/", PAGE_MEMBERS),
    Row("POST", f"{DOCUMENT_PAGE}delete/", answering(302, PAGE_EDITORS)),
    Row("POST", f"{DOCUMENT_PAGE}restore/", answering(302, PAGE_EDITORS), deleted=True),
    Row("POST", f"{DOCUMENT_PAGE}retry/", answering(302, PAGE_EDITORS)),
    Row("POST", f"{DOCUMENT_PAGE}replace/", answering(302, PAGE_EDITORS), upload=True),
    Row("GET", f"{DOCUMENT_PAGE}edit/", PAGE_EDITORS),
    Row("POST", f"{DOCUMENT_PAGE}edit/", answering(302, PAGE_EDITORS), {"text": "x", "version": "1"}),
    Row("POST", f"{DOCUMENT_PAGE}back/<int:number>/", answering(302, PAGE_EDITORS)),
    Row("GET", f"{DOCUMENT_PAGE}forget/", PAGE_OWNERS, fresh=True),
    Row("POST", f"{DOCUMENT_PAGE}forget/", answering(302, PAGE_OWNERS), deleted=True, fresh=True),
    Row("GET", "workspaces/<str:ws_id>/artifacts/", PAGE_MEMBERS),
    Row(
        "POST",
        "workspaces/<str:ws_id>/artifacts/",
        answering(302, PAGE_EDITORS),
        {"title": "Sums", "kind": "code", "content": "1 + 1"},
    ),
    Row("GET", ARTIFACT_PAGE, PAGE_MEMBERS),
    Row("POST", ARTIFACT_PAGE, answering(302, PAGE_EDITORS), {"title": "Sums", "content": "2 + 2"}),
    Row("GET", f"{ARTIFACT_PAGE}frame/", PAGE_MEMBERS),
    Row("GET", f"{ARTIFACT_PAGE}download/", PAGE_MEMBERS),
    Row("GET", f"{ARTIFACT_PAGE}versions/", PAGE_MEMBERS),
    Row("POST", f"{ARTIFACT_PAGE}back/", answering(302, PAGE_EDITORS), {"number": "1"}),
    Row("POST", f"{ARTIFACT_PAGE}undo/", PAGE_EDITORS, {"version": "1"}),
    Row("POST", f"{ARTIFACT_PAGE}delete/", answering(302, PAGE_EDITORS)),
    Row("POST", f"{ARTIFACT_PAGE}restore/", answering(302, PAGE_EDITORS), deleted=True),
    Row("GET", f"{ARTIFACT_PAGE}forget/", PAGE_OWNERS, fresh=True),
    Row("POST", f"{ARTIFACT_PAGE}forget/", answering(302, PAGE_OWNERS), deleted=True, fresh=True),
    Row("GET", "workspaces/<str:ws_id>/agents/", PAGE_MEMBERS),
    Row("POST", "workspaces/<str:ws_id>/agents/", answering(302, PAGE_EDITORS), {"name": "Planner"}),
    Row("GET", "workspaces/<str:ws_id>/agents/<str:agent_id>/", PAGE_MEMBERS),
    Row(
        "POST",
        "workspaces/<str:ws_id>/agents/<str:agent_id>/",
        answering(302, PAGE_EDITORS),
        {"name": "Planner"},
    ),
    Row("POST", "workspaces/<str:ws_id>/agents/<str:agent_id>/archive/", answering(302, PAGE_EDITORS)),
    Row("POST", "workspaces/<str:ws_id>/agents/<str:agent_id>/restore/", answering(302, PAGE_EDITORS)),
    Row("GET", "workspaces/<str:ws_id>/events/", PAGE_MEMBERS),
    Row("POST", "workspaces/<str:ws_id>/model/", answering(302, PAGE_OWNERS), {"connection": ""}),
    Row("POST", "workspaces/<str:ws_id>/local-only/", answering(302, PAGE_OWNERS), {"local_only": "on"}),
    Row("GET", "connections/", PAGE_EVERYBODY),
    Row("POST", "connections/", answering(302, PAGE_EVERYBODY), {**MODEL, "context_tokens": "8000"}),
    Row("GET", CONNECTION_PAGE, PAGE_THEIRS),
    Row(
        "POST",
        CONNECTION_PAGE,
        answering(302, PAGE_THEIRS),
        {**MODEL, "api_key": "k", "context_tokens": "8000"},
    ),
    Row("POST", f"{CONNECTION_PAGE}delete/", answering(302, PAGE_THEIRS)),
    Row("POST", f"{CONNECTION_PAGE}test/", PAGE_THEIRS),
    Row("GET", "profile/", PAGE_EVERYBODY),
    Row("GET", ".well-known/oauth-protected-resource", ANYBODY),
    Row("GET", ".well-known/oauth-protected-resource/<path:resource>", ANYBODY),
    Row("GET", ".well-known/oauth-authorization-server", ANYBODY),
    Row("POST", "oauth/register", answering(400, ANYBODY)),
    Row("GET", "oauth/authorize", PAGE_EVERYBODY, query=CONSENT, fresh=True),
    Row(
        "POST", "oauth/authorize", answering(302, PAGE_EVERYBODY), {"answer": "no"}, query=CONSENT, fresh=True
    ),
    Row("POST", "oauth/token", answering(401, ANYBODY)),  # who asks is not a person: tests/workspaces/oauth
    Row("POST", "oauth/revoke", answering(401, ANYBODY)),
    Row("GET", "connect/", PAGE_EVERYBODY),
    Row("POST", "connect/", answering(302, PAGE_EVERYBODY), {"name": "Script"}),
    Row("GET", "profile/delete/", PAGE_EVERYBODY, fresh=True),
    Row("GET", "profile/keys/", answering(302, PAGE_EVERYBODY)),
    Row("POST", "profile/keys/", answering(302, PAGE_EVERYBODY), {"name": "Script"}),
    Row("POST", "profile/keys/<str:key_id>/revoke/", (302, 404, 404, 404, LOGIN)),
    Row("POST", "profile/sessions/<str:session_id>/end/", (302, 404, 404, 404, LOGIN)),
    Row("POST", "profile/sessions/end-others/", answering(302, PAGE_EVERYBODY)),
    Row("POST", "profile/short-term/", answering(302, PAGE_EVERYBODY), {"everywhere": "on"}),
    Row("POST", "profile/memory/", answering(302, PAGE_EVERYBODY), {"memory": "on"}),
    Row("POST", "workspaces/<str:ws_id>/chats/", answering(302, PAGE_EDITORS), {"content": "Hello"}),
    Row("GET", "workspaces/<str:ws_id>/chats/list/", PAGE_MEMBERS),
    Row("GET", "workspaces/<str:ws_id>/search/", PAGE_MEMBERS, query="?q=deadline"),
    Row("GET", "workspaces/<str:ws_id>/palette/", PAGE_MEMBERS),
    Row("GET", "chats/<str:chat_id>/", PAGE_MEMBERS),
    Row("GET", "chats/<str:chat_id>/row/", PAGE_MEMBERS),
    Row("POST", "chats/<str:chat_id>/mark/", PAGE_MEMBERS, {"mark": "pinned"}),
    Row("GET", "chats/<str:chat_id>/rename/", PAGE_EDITORS),
    Row("POST", "chats/<str:chat_id>/rename/", PAGE_EDITORS, {"title": "Plans"}),
    Row("POST", "chats/<str:chat_id>/delete/", PAGE_OWNERS),
    Row("POST", "chats/<str:chat_id>/restore/", PAGE_OWNERS, deleted=True),
    # Its creator's to say: the cast's owner's.
    Row("POST", "chats/<str:chat_id>/private/", PAGE_OWNERS, {"private": "on"}),
    Row("POST", "chats/<str:chat_id>/agent/", PAGE_EDITORS, {"agent": "{agent}"}),
    Row("GET", "chats/<str:chat_id>/model/", PAGE_MEMBERS),
    Row("POST", "chats/<str:chat_id>/model/", PAGE_EDITORS, {"connection": ""}),
    Row("GET", "workspaces/<str:ws_id>/models/", PAGE_MEMBERS),
    Row("GET", "chats/<str:chat_id>/forget/", PAGE_OWNERS, fresh=True),
    Row("POST", "chats/<str:chat_id>/forget/", PAGE_OWNERS, deleted=True, fresh=True),
    Row("GET", "chats/<str:chat_id>/short-term/", PAGE_MEMBERS),
    Row("POST", "chats/<str:chat_id>/short-term/", PAGE_EDITORS, {"summary": "Cats purr"}),
    Row("POST", "chats/<str:chat_id>/memory/", PAGE_EDITORS, {"memory": "on"}),
    Row("POST", "chats/<str:chat_id>/personal/", PAGE_EDITORS, {"personal": "on"}),
    Row("GET", "chats/<str:chat_id>/transcript/", PAGE_MEMBERS),
    Row("POST", "chats/<str:chat_id>/messages/", answering(302, PAGE_EDITORS), {"content": "Hello"}),
    Row("GET", "chats/<str:chat_id>/messages/<str:message_id>/", PAGE_MEMBERS),
    Row("GET", "chats/<str:chat_id>/messages/<str:message_id>/stream/", PAGE_MEMBERS, in_threads=True),
    # What the cast's owner said is theirs to say otherwise.
    Row("GET", f"{MESSAGE_PAGE}edit/", PAGE_OWNERS, message="question"),
    Row(
        "POST", f"{MESSAGE_PAGE}edit/", answering(302, PAGE_OWNERS), {"content": "When?"}, message="question"
    ),
    Row("GET", f"{MESSAGE_PAGE}versions/", PAGE_MEMBERS),
    Row("POST", f"{MESSAGE_PAGE}back/", answering(302, PAGE_EDITORS), message="earlier"),
    Row("POST", "chats/<str:chat_id>/messages/<str:message_id>/stop/", answering(204, PAGE_EDITORS)),
    Row("POST", "chats/<str:chat_id>/messages/<str:message_id>/retry/", PAGE_EDITORS),
    Row("POST", "chats/<str:chat_id>/messages/<str:message_id>/continue/", PAGE_EDITORS),
    Row("POST", f"{MESSAGE_PAGE}keep/", PAGE_EDITORS),
    Row("POST", "chats/<str:chat_id>/messages/<str:message_id>/remember/", PAGE_EDITORS),
    Row("GET", "workspaces/<str:ws_id>/memories/", PAGE_MEMBERS),
    Row("POST", "workspaces/<str:ws_id>/memories/add/", PAGE_EDITORS, {"new-content": "Cats purr"}),
    Row("GET", "workspaces/<str:ws_id>/memories/count/", PAGE_MEMBERS),
    Row("GET", "workspaces/<str:ws_id>/memories/<str:mem_id>/", PAGE_MEMBERS),
    Row("GET", "workspaces/<str:ws_id>/memories/<str:mem_id>/edit/", PAGE_EDITORS),
    Row(
        "POST",
        "workspaces/<str:ws_id>/memories/<str:mem_id>/edit/",
        PAGE_EDITORS,
        {"{mem}-content": "Cats purr"},
    ),
    Row("POST", "workspaces/<str:ws_id>/memories/<str:mem_id>/delete/", PAGE_EDITORS),
    Row("POST", "workspaces/<str:ws_id>/memories/<str:mem_id>/restore/", PAGE_EDITORS, deleted=True),
    Row("GET", "workspaces/<str:ws_id>/memories/<str:mem_id>/forget/", PAGE_OWNERS, fresh=True),
    Row(
        "POST", "workspaces/<str:ws_id>/memories/<str:mem_id>/forget/", PAGE_OWNERS, deleted=True, fresh=True
    ),
    Row("POST", "workspaces/<str:ws_id>/memories/<str:mem_id>/pin/", PAGE_EDITORS, {"pinned": "on"}),
    Row("POST", "workspaces/<str:ws_id>/memories/<str:mem_id>/replace/", PAGE_EDITORS),
    Row("GET", "workspaces/<str:ws_id>/memories/<str:mem_id>/history/", PAGE_MEMBERS),
    Row("POST", f"{MEMORY_PAGE}assets/", PAGE_EDITORS, upload=True),
    Row("GET", f"{MEMORY_PAGE}assets/<str:asset_id>/", PAGE_MEMBERS),
    Row("GET", f"{MEMORY_PAGE}assets/<str:asset_id>/remove/", PAGE_EDITORS, fresh=True),
    Row("POST", f"{MEMORY_PAGE}assets/<str:asset_id>/remove/", answering(302, PAGE_EDITORS), fresh=True),
    Row("GET", RECALL_TEST, PAGE_MEMBERS),
    Row(
        "POST",
        RECALL_TEST,
        answering(302, PAGE_EDITORS),
        {"text": "When is the deadline?", "memories": "{mem}"},
    ),
    Row("GET", f"{RECALL_TEST}offered/", PAGE_EDITORS),
    Row("POST", f"{RECALL_TEST}run/", answering(302, PAGE_EDITORS)),
    Row("POST", f"{RECALL_TEST}<str:ask_id>/remove/", answering(302, PAGE_EDITORS)),
    Row("GET", TIDY, PAGE_MEMBERS),
    Row("POST", f"{TIDY}forget/", PAGE_EDITORS, {"memory": "{mem}"}),
    Row("POST", f"{TIDY}keep/", PAGE_EDITORS, {"memory": "{mem}"}),
    Row("POST", f"{TIDY}kept/<int:kept_id>/undo/", PAGE_EDITORS),
    Row("POST", f"{TIDY}index/", PAGE_EDITORS),
    Row("GET", NODES, PAGE_MEMBERS),
    Row("POST", NODES, answering(302, PAGE_EDITORS), {"name": "Apollo"}),
    Row("GET", NODE_PAGE, PAGE_MEMBERS),
    Row("POST", NODE_PAGE, answering(302, PAGE_EDITORS), {"name": "Apollo"}),
    Row("GET", f"{NODE_PAGE}find/", PAGE_EDITORS),
    Row("POST", f"{NODE_PAGE}link/", answering(302, PAGE_EDITORS), {"memory": "{mem}"}),
    Row("POST", f"{NODE_PAGE}unlink/", answering(302, PAGE_EDITORS), {"memory": "{mem}"}),
    Row(
        "POST",
        f"{NODE_PAGE}relate/",
        answering(302, PAGE_EDITORS),
        {"relation": "works on", "other": "Launch"},
    ),
    Row(
        "POST",
        f"{NODE_PAGE}unrelate/",
        answering(302, PAGE_EDITORS),
        {"source": "{node}", "target": "{other_node}", "relation": "works on"},
    ),
    Row("GET", f"{NODE_PAGE}delete/", answering(302, PAGE_EDITORS)),
    Row("POST", f"{NODE_PAGE}delete/", answering(302, PAGE_EDITORS), fresh=True),
    Row("GET", WEBHOOKS_PAGE, PAGE_OWNERS),
    Row("POST", WEBHOOKS_PAGE, PAGE_OWNERS, HOOK | {"memory_saved": "on"}, fresh=True),
    Row("GET", WEBHOOK_PAGE, PAGE_OWNERS),
    Row("POST", WEBHOOK_PAGE, answering(302, PAGE_OWNERS), HOOK | {"run_finished": "on"}, fresh=True),
    Row("GET", f"{WEBHOOK_PAGE}rotate/", answering(302, PAGE_OWNERS), fresh=True),
    Row("POST", f"{WEBHOOK_PAGE}rotate/", PAGE_OWNERS, fresh=True),
    Row("POST", f"{WEBHOOK_PAGE}enable/", answering(302, PAGE_OWNERS), fresh=True),
    Row("GET", f"{WEBHOOK_PAGE}enable/", answering(302, PAGE_OWNERS), fresh=True),
    Row("POST", f"{WEBHOOK_PAGE}delete/", answering(302, PAGE_OWNERS)),
    Row("POST", f"{WEBHOOK_PAGE}deliveries/<str:delivery_id>/resend/", answering(302, PAGE_OWNERS)),
    Row("GET", "workspaces/<str:ws_id>/runs/", PAGE_MEMBERS),
    Row(
        "POST",
        "workspaces/<str:ws_id>/runs/",
        answering(422, PAGE_EDITORS),
        {"objective": "Compare", "mode": "plan"},
    ),
    Row("GET", RUN_PAGE, PAGE_MEMBERS),
    Row("GET", f"{RUN_PAGE}live/", PAGE_MEMBERS),
    Row("GET", f"{RUN_PAGE}entry/", answering(404, PAGE_MEMBERS)),
    Row("POST", f"{RUN_PAGE}stop/", answering(409, PAGE_OWNERS)),
    Row("POST", f"{RUN_PAGE}resume/", answering(409, PAGE_OWNERS)),
    Row("POST", f"{RUN_PAGE}again/", answering(422, PAGE_EDITORS)),
    Row("POST", f"{RUN_PAGE}template/", answering(422, PAGE_EDITORS)),
    Row(
        "POST",
        "workspaces/<str:ws_id>/runs/templates/<str:template_id>/delete/",
        answering(302, PAGE_OWNERS),
    ),
    Row("GET", "workspaces/<str:ws_id>/export/", PAGE_MEMBERS),
    Row("GET", "export/", PAGE_EVERYBODY),
    Row("GET", "chats/<str:chat_id>/export/", PAGE_MEMBERS),
    Row("GET", "imports/", PAGE_EVERYBODY),
    # A workspace in which somebody may not write is no choice of the form.
    Row("POST", "imports/", (302, 302, 422, 422, LOGIN), {"workspace": "{ws}"}, upload=True),
    Row("GET", IMPORT_PAGE, PAGE_THEIRS),
    Row("GET", f"{IMPORT_PAGE}progress/", PAGE_THEIRS),
    Row("POST", f"{IMPORT_PAGE}start/", answering(302, PAGE_THEIRS), {"memories": "on"}),
    Row("POST", f"{IMPORT_PAGE}stop/", answering(409, PAGE_THEIRS)),
    Row("POST", f"{IMPORT_PAGE}resume/", answering(409, PAGE_THEIRS)),
    Row("POST", f"{IMPORT_PAGE}delete/", answering(302, PAGE_THEIRS)),
    Row("POST", "workspaces/<str:ws_id>/proposals/<str:mem_id>/approve/", PAGE_EDITORS, proposed=True),
    Row("POST", "workspaces/<str:ws_id>/proposals/<str:mem_id>/reject/", PAGE_EDITORS, proposed=True),
    Row("POST", "workspaces/<str:ws_id>/proposals/<str:mem_id>/reconsider/", PAGE_EDITORS, proposed=True),
    Row("POST", "workspaces/<str:ws_id>/copies/<str:mem_id>/forget/", PAGE_OWNERS, fresh=True),
    Row("POST", "workspaces/<str:ws_id>/copies/<str:mem_id>/keep/", PAGE_OWNERS),
    Row("POST", "workspaces/<str:ws_id>/reviews/", answering(302, PAGE_OWNERS), {"reviews": "on"}),
    Row("GET", "receipts/<str:msg_id>/", PAGE_MEMBERS),
    # Theirs to say about their own turns: the cast's owner asked.
    Row("POST", "receipts/items/<int:item_id>/not-relevant/", (200, 404, 404, 404, LOGIN)),
]
ROWS = [*API_ROWS, *PAGE_ROWS]


@dataclass(frozen=True)
class World:
    """One of everything, made by the cast's owner in the shared workspace."""

    cast: Cast
    ids: dict[str, str]
    deleted_ids: dict[str, str]
    proposed_ids: dict[str, str]

    def url(self, row: Row) -> str:
        ids = self.ids | (self.deleted_ids if row.deleted else {})
        ids |= self.proposed_ids if row.proposed else {}
        ids |= {"message_id": self.ids[f"{row.message}_id"]} if row.message else {}
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: ids[match[1]], row.route)

    def address(self, row: Row) -> str:
        """With the query that asks for the shared workspace, where the route does not name one."""
        return self.url(row) + row.query.replace("{ws}", self.ids["ws_id"]).replace(
            "{app}", self.ids["app_id"]
        )

    def data(self, row: Row) -> dict[str, Any]:
        def fill(text: Any) -> Any:
            if isinstance(text, list):
                return [fill(each) for each in text]
            if not isinstance(text, str):
                return text
            for name in ("ws", "mem", "agent", "node", "other_node"):
                text = text.replace(f"{{{name}}}", self.ids[f"{name}_id"])
            return text

        return {fill(name): fill(value) for name, value in row.data.items()}


def make_world(cast: Cast) -> World:
    owner, workspace = cast.owner, cast.workspace
    member = make_user("max")
    Membership.objects.create(workspace=workspace, user=member, role=Role.EDITOR)
    chat = make_chat(owner, workspace, title="Deadlines")
    question = make_message(chat, "When is the deadline?")
    answer = make_message(
        chat, "In March.", role=MessageRole.ASSISTANT, reply_to=question, error_code="length"
    )
    source: dict[str, Any] = {"source_chat_id": chat.public_id, "source_message_id": question.public_id}
    earlier = make_message(chat, "In May.", role=MessageRole.ASSISTANT, reply_to=question)
    set_aside(chat.messages.filter(pk=earlier.pk), first=earlier, by=answer, now=timezone.now())
    memory = make_memory("The deadline is March 15", by=owner, workspace=workspace, **source)
    receipt = Receipt.objects.create(
        message_id=answer.public_id, workspace=workspace, user=owner, ranking="hybrid", threshold=0.3
    )
    item = ReceiptItem.objects.create(
        receipt=receipt, memory=memory, position=1, score=0.5, content=memory.content, used=True
    )
    KeptCopy.objects.create(memory=memory, kind=CopyKind.ITEM, row_id=item.pk)
    asked = keep_question(workspace, "When is it due?", [memory], by=owner, now=timezone.now())
    gone_memory = make_memory("Olive is vegetarian", by=owner, workspace=workspace)
    gone_chat = make_chat(owner, workspace, title="Gone")
    delete_memory(gone_memory, by=owner, now=timezone.now())
    delete_chat(gone_chat, by=owner, now=timezone.now())
    make_key_text(owner, workspace)
    key = ApiKey.objects.get(user=owner)
    sign_in = SignIn.objects.create(user=owner, session_key="elsewhere")
    brought = run.begin(
        owner, workspace=workspace, filename="list.txt", pieces=[b"Cats purr"], now=timezone.now()
    )
    Import.objects.filter(pk=brought.pk).update(checked_at=timezone.now())
    done = Run.objects.create(
        workspace=workspace,
        user=owner,
        mode="loop",
        objective="Compare the offers",
        status="done",
        deadline_at=timezone.now(),
    )
    document = make_document(owner, workspace)
    page = make_artifact(owner, workspace, "<p>Hello</p>", kind="html")
    gone_page = make_artifact(owner, workspace, kind="html")
    artifacts.delete(gone_page, by=owner, now=timezone.now())
    hook = make_webhook(workspace, owner)
    ids = {
        "webhook_id": hook.public_id,
        "hook_id": hook.public_id,
        "delivery_id": make_delivery(hook).public_id,
        "run_id": done.public_id,
        "template_id": save_template(done, "Compared", by=owner, now=timezone.now()).public_id,
        "import_id": brought.public_id,
        "session_id": sign_in.public_id,
        "workspace_id": workspace.public_id,
        "ws_id": workspace.public_id,
        "user_id": member.public_id,
        "chat_id": chat.public_id,
        "question_id": question.public_id,
        "earlier_id": earlier.public_id,
        "message_id": answer.public_id,
        "msg_id": answer.public_id,
        "memory_id": memory.public_id,
        "mem_id": memory.public_id,
        "item_id": str(item.pk),
        "ask_id": asked.public_id,
        "kept_id": str(keep(memory, by=owner, now=timezone.now()).pk),
        "asset_id": make_asset(memory).public_id,
        "node_id": make_node(owner, workspace, name="Maria").public_id,
        "other_node_id": make_node(owner, workspace, name="Launch").public_id,
        "artifact_id": page.public_id,
        "art_id": page.public_id,
        "document_id": document.public_id,
        "doc_id": document.public_id,
        "number": "1",
        "agent_id": make_agent(owner, workspace, name="Proofreader").public_id,
        "key_id": key.public_id,
        "app_id": clients.register("Claude", ["https://example.org/back"], now=timezone.now()).public_id,
        "resource": "mcp",
        "model": "built-in",
        # Its test asks nobody: a person's connection never goes to an address of this machine.
        "connection_id": make_connection(owner, base_url="http://127.0.0.1:9/v1").public_id,
    }
    gone_document = make_document(owner, workspace, "Nobody reads this.")
    documents.delete(gone_document, by=owner, now=timezone.now())
    gone = {
        "artifact_id": gone_page.public_id,
        "art_id": gone_page.public_id,
        "document_id": gone_document.public_id,
        "doc_id": gone_document.public_id,
        "chat_id": gone_chat.public_id,
        "memory_id": gone_memory.public_id,
        "mem_id": gone_memory.public_id,
    }
    draft = Draft("Olive sings", workspace, owner).to_review()
    proposed = save_memory(draft, by=owner, now=timezone.now()).memory.public_id
    return World(cast, ids, gone, {"memory_id": proposed, "mem_id": proposed})


def known_routes() -> Iterator[tuple[str, str]]:
    """Every (method, route) that the URL resolver knows. Of a function only that it is there: ``*``."""
    for route, pattern in _patterns(get_resolver().url_patterns, ""):
        view = getattr(pattern.callback, "cls", None)
        methods = [name.upper() for name in ("get", "post", "put", "patch", "delete") if hasattr(view, name)]
        for method in methods or ["*"]:
            yield method, route


def _patterns(patterns: list[Any], prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if route.startswith(NOT_OURS):
            continue
        if isinstance(pattern, URLResolver):
            yield from _patterns(pattern.url_patterns, route)
        else:
            yield route, pattern
