"""Every route of the product and who may do what on it. ``tests/test_access_matrix.py`` verifies it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

LOGIN = "login"  # redirected to the login page
Status = int | str

# The statuses for owner, editor, viewer and stranger; then for an anonymous visitor.
EVERYBODY = (200, 200, 200, 200, 401)
MEMBERS = (200, 200, 200, 404, 401)
EDITORS = (200, 200, 403, 404, 401)
OWNERS = (200, 403, 403, 404, 401)
ANYBODY = (200, 200, 200, 200, 200)
PAGE_EVERYBODY = (200, 200, 200, 200, LOGIN)
PAGE_MEMBERS = (200, 200, 200, 404, LOGIN)
PAGE_EDITORS = (200, 200, 403, 404, LOGIN)
PAGE_OWNERS = (200, 403, 403, 404, LOGIN)
# Visible to their creator alone, the cast's owner.
THEIRS = (200, 404, 404, 404, 401)
PAGE_THEIRS = (200, 404, 404, 404, LOGIN)
# The statuses for a read key, a write key, a key of another workspace, an expired and a revoked one; all the owner's.
NO_KEYS = (401, 401, 401, 401, 401)
FORM = "application/x-www-form-urlencoded"  # as browsers send a form without a file
KEYS_READ = (200, 200, 404, 401, 401)
KEYS_WRITE = (403, 200, 404, 401, 401)
KEYS_NEVER = (403, 403, 403, 401, 401)
KEYS_OWN = (200, 200, 200, 401, 401)
NOBODY = (401, 401, 401, 401, 401)
# Routes of other packages, with their own tests: one row covers access to the admin, allauth's are public. The
# directory's require its token (tests/workspaces/scim).
NOT_OURS = ("admin/", "accounts/", "scim/")


def answering(code: int, statuses: tuple[Status, ...]) -> tuple[Status, ...]:
    """Return the same permissions with another success code."""
    return tuple(code if status == 200 else status for status in statuses)


@dataclass(frozen=True)
class Row:
    method: str
    route: str
    statuses: tuple[Status, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    deleted: bool = False  # for a deleted chat or memory
    proposed: bool = False  # for a memory that waits for review
    in_threads: bool = False  # reads the database from other threads
    keys: tuple[Status, ...] = NO_KEYS
    query: str = ""
    upload: bool = False  # the body is a form with a file
    message: str = ""  # another message than the answer: the question, or an earlier version of the answer
    fresh: bool = False  # requires a recently re-authenticated session

    def __str__(self) -> str:
        return f"{self.method} /{self.route}"

    @property
    def keys_alone(self) -> bool:
        """Return whether only keys open the route, and no session."""
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
INVITATION = {"role": "viewer", "most": "1", "lasts": "7"}
HOOK = {"name": "Wiki", "url": "https://example.org/hooks"}
CHAT = "chat/api/<chat_id:chat_id>"
LINKS = "chat/api/chats/<chat_id:chat_id>/links"
LINKS_PAGE = "chats/<str:chat_id>/links/"
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
CLEAR = "workspaces/<str:ws_id>/clear/"
PROFILE = "workspaces/<str:ws_id>/profile/"
TIDY = "workspaces/<str:ws_id>/tidy/"
NODES = "workspaces/<str:ws_id>/nodes/"
NODE_PAGE = f"{NODES}<str:node_id>/"
API_ROWS = [
    Row("GET", "chat/api/account", EVERYBODY, keys=KEYS_NEVER),
    # The owner is the only one of a shared workspace.
    Row("DELETE", "chat/api/account", (409, 200, 200, 200, 401), keys=KEYS_NEVER, fresh=True),
    Row("GET", "chat/api/account/copy", EVERYBODY, fresh=True),
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
    # No one of the cast is invited: tests/workspaces/invitations/test_invited.py.
    Row("POST", f"{WS}/members/accept", (404, 404, 404, 404, 401)),
    Row("GET", "chat/api/invitations", EVERYBODY),
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
    # For its creator or an owner: the cast's owner created it.
    Row("POST", f"{ARTIFACT}/forget", OWNERS, fresh=True),
    Row("GET", "chat/api/usage", EVERYBODY),
    Row("GET", f"{WS}/usage", MEMBERS),
    Row("PUT", f"{WS}/budget", OWNERS, {"tokens": 1_000_000}),
    Row("GET", f"{WS}/retention", MEMBERS),
    Row("PUT", f"{WS}/retention", OWNERS, {"chats": 90}),
    Row("POST", f"{WS}/retention/preview", OWNERS, {"chats": 90}),
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
    Row("GET", f"{WS}/clearings", OWNERS, keys=KEYS_NEVER),
    Row("POST", f"{WS}/clearings", answering(202, OWNERS), {"for_good": True}, keys=KEYS_NEVER, fresh=True),
    Row("GET", f"{WS}/clearings/<clr_id:clearing_id>", THEIRS, keys=KEYS_NEVER),
    Row("POST", f"{WS}/clearings/<clr_id:clearing_id>/undo", answering(202, THEIRS), keys=KEYS_NEVER),
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
    Row("GET", f"{WS}/profile", MEMBERS, keys=KEYS_READ),
    Row(
        "PUT",
        f"{WS}/profile/lines/<mem_id:memory_id>",
        answering(204, MEMBERS),
        {"hidden": True},
        keys=answering(204, KEYS_WRITE),
    ),
    Row("POST", f"{WS}/recall", MEMBERS, {"query": "deadline"}, keys=KEYS_READ),
    Row("POST", f"{WS}/search", MEMBERS, {"query": "deadline"}, keys=KEYS_READ),
    Row("GET", "chat/api/chats", EVERYBODY),
    Row("POST", "chat/api/chats", answering(201, EDITORS), {"workspace_id": "{ws}"}),
    Row("GET", "chat/api/chats/<chat_id:chat_id>", MEMBERS),
    Row("PATCH", "chat/api/chats/<chat_id:chat_id>", EDITORS, {"title": "Plans"}),
    Row("DELETE", "chat/api/chats/<chat_id:chat_id>", answering(204, OWNERS)),
    Row("PUT", "chat/api/chats/<chat_id:chat_id>/mark", MEMBERS, {"mark": "pinned"}),
    Row("GET", "chat/api/chats/<chat_id:chat_id>/export", MEMBERS),
    Row("GET", "chat/api/chats/<chat_id:chat_id>/tags", MEMBERS),
    Row("PUT", "chat/api/chats/<chat_id:chat_id>/tags", MEMBERS, {"tags": ["travel"]}),
    Row("GET", f"{WS}/tags", MEMBERS),
    Row("GET", f"{MESSAGE}/rating", MEMBERS),
    Row("PUT", f"{MESSAGE}/rating", MEMBERS, {"rating": "up"}),
    Row("DELETE", f"{MESSAGE}/rating", answering(204, MEMBERS)),
    Row("GET", LINKS, MEMBERS),
    Row("POST", LINKS, answering(201, EDITORS), {"days": 7}),
    # For its creator or an owner: the cast's owner created it.
    Row("POST", f"{LINKS}/<link_id:link_id>/update", OWNERS),
    Row("DELETE", f"{LINKS}/<link_id:link_id>", answering(204, OWNERS)),
    Row("GET", f"{WS}/links", MEMBERS),
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
    # The embedded model calls no tools, so people who may start one get that error.
    Row("GET", f"{WS}/runs", MEMBERS),
    Row("POST", f"{WS}/runs", answering(422, EDITORS), {"objective": "Compare the offers"}),
    Row("GET", RUN, MEMBERS),
    Row("GET", f"{RUN}/memory", MEMBERS),
    Row("GET", f"{RUN}/events", MEMBERS, in_threads=True),
    Row("POST", f"{RUN}/stop", answering(409, OWNERS)),
    Row("POST", f"{RUN}/resume", answering(409, OWNERS)),
    Row("GET", f"{WS}/prompts", MEMBERS),
    Row("POST", f"{WS}/prompts", answering(201, MEMBERS), {"name": "No", "text": "Decline {{it}}."}),
    Row(
        "POST",
        f"{WS}/prompts",
        answering(201, EDITORS),
        {"name": "No", "text": "Decline.", "personal": False},
    ),
    Row("GET", f"{WS}/prompts/<prm_id:prompt_id>", MEMBERS),
    Row("PATCH", f"{WS}/prompts/<prm_id:prompt_id>", OWNERS, {"name": "Yes"}),
    Row("DELETE", f"{WS}/prompts/<prm_id:prompt_id>", answering(204, OWNERS)),
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
    # For programs: only a key opens them, and only for its own workspace.
    Row("GET", "v1/models", NOBODY, keys=KEYS_OWN),
    Row("GET", "v1/models/<path:model>", NOBODY, keys=KEYS_OWN),
    Row("POST", "v1/chat/completions", NOBODY, {"model": "built-in"}, keys=answering(400, KEYS_OWN)),
    Row("POST", "v1/responses", NOBODY, {"model": "built-in"}, keys=answering(400, KEYS_OWN)),
    Row("POST", "v1/messages", NOBODY, {"model": "built-in"}, keys=answering(400, KEYS_OWN)),
    Row(
        "POST",
        "v1/messages/count_tokens",
        NOBODY,
        {"model": "built-in", "messages": [{"role": "user", "content": "Cats"}]},
        keys=KEYS_OWN,
    ),
    Row("POST", "v1/embeddings", NOBODY, {"model": "default", "input": "Cats"}, keys=KEYS_OWN),
    Row("GET", "v1/", NOBODY, keys=answering(404, KEYS_OWN)),
    # An invalid message of the protocol; its tools have their own matrix (tests/chat/programs/test_mcp.py).
    Row("POST", "mcp", NOBODY, keys=answering(406, KEYS_OWN)),
    Row("POST", "mcp/", NOBODY, keys=answering(406, KEYS_OWN)),
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
    Row("GET", "workspaces/<str:ws_id>/usage/", PAGE_MEMBERS),
    Row("POST", "workspaces/<str:ws_id>/usage/", answering(302, PAGE_OWNERS), {"tokens": "1000000"}),
    Row("GET", "workspaces/<str:ws_id>/retention/", PAGE_MEMBERS),
    Row("POST", "workspaces/<str:ws_id>/retention/", answering(302, PAGE_OWNERS), {"chats": "90"}),
    Row("GET", "profile/usage/", PAGE_EVERYBODY),
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
    Row("GET", f"{DOCUMENT_PAGE}picture/", PAGE_MEMBERS),
    Row("POST", f"{DOCUMENT_PAGE}delete/", answering(302, PAGE_EDITORS)),
    Row("POST", f"{DOCUMENT_PAGE}restore/", answering(302, PAGE_EDITORS), deleted=True),
    Row("POST", f"{DOCUMENT_PAGE}retry/", answering(302, PAGE_EDITORS)),
    Row("POST", f"{DOCUMENT_PAGE}replace/", answering(302, PAGE_EDITORS), upload=True),
    Row("GET", f"{DOCUMENT_PAGE}edit/", PAGE_EDITORS),
    Row("POST", f"{DOCUMENT_PAGE}edit/", answering(302, PAGE_EDITORS), {"text": "x", "version": "1"}),
    Row("POST", f"{DOCUMENT_PAGE}back/<int:number>/", answering(302, PAGE_EDITORS)),
    Row("POST", f"{DOCUMENT_PAGE}whose/", answering(302, PAGE_OWNERS)),
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
    Row("POST", f"{ARTIFACT_PAGE}whose/", answering(302, PAGE_OWNERS)),
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
    Row(
        "POST",
        "connections/",
        answering(302, PAGE_EVERYBODY),
        {**MODEL, "context_tokens": "8000", "act": "keep"},
    ),
    Row("GET", CONNECTION_PAGE, PAGE_THEIRS),
    Row(
        "POST",
        CONNECTION_PAGE,
        answering(302, PAGE_THEIRS),
        {**MODEL, "api_key": "k", "context_tokens": "8000"},
    ),
    Row("POST", f"{CONNECTION_PAGE}switch/", answering(302, PAGE_THEIRS), {"has_tools": "on"}),
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
    Row("POST", "oauth/token", answering(401, ANYBODY)),  # the client is not a user: tests/workspaces/oauth
    Row("POST", "oauth/revoke", answering(401, ANYBODY)),
    Row("GET", "connect/", PAGE_EVERYBODY),
    Row("POST", "connect/", answering(302, PAGE_EVERYBODY), {"name": "Script"}),
    Row("GET", "profile/delete/", PAGE_EVERYBODY, fresh=True),
    Row("GET", "profile/copy/", PAGE_EVERYBODY, fresh=True),
    Row("GET", "profile/keys/", answering(302, PAGE_EVERYBODY)),
    Row("POST", "profile/keys/", answering(302, PAGE_EVERYBODY), {"name": "Script"}),
    Row("POST", "profile/keys/<str:key_id>/revoke/", (302, 404, 404, 404, LOGIN)),
    Row("POST", "profile/sessions/<str:session_id>/end/", (302, 404, 404, 404, LOGIN)),
    Row("POST", "profile/sessions/end-others/", answering(302, PAGE_EVERYBODY)),
    Row("POST", "profile/short-term/", answering(302, PAGE_EVERYBODY), {"everywhere": "on"}),
    Row("POST", "profile/picture/", answering(302, PAGE_EVERYBODY), upload=True),
    Row("GET", "people/<str:user_id>/picture/", PAGE_MEMBERS),
    Row("POST", "profile/name/", answering(302, PAGE_EVERYBODY), {"name": "Zoë Quinn"}),
    Row("POST", "profile/language/", answering(302, PAGE_EVERYBODY), {"language": "de"}),
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
    # For its creator, the cast's owner.
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
    # An author may edit their own message, here the cast's owner.
    Row("GET", f"{MESSAGE_PAGE}edit/", PAGE_OWNERS, message="question"),
    Row(
        "POST", f"{MESSAGE_PAGE}edit/", answering(302, PAGE_OWNERS), {"content": "When?"}, message="question"
    ),
    Row("GET", f"{MESSAGE_PAGE}versions/", PAGE_MEMBERS),
    Row("POST", f"{MESSAGE_PAGE}back/", answering(302, PAGE_EDITORS), message="earlier"),
    Row("POST", "chats/<str:chat_id>/messages/<str:message_id>/stop/", answering(204, PAGE_EDITORS)),
    Row("POST", "chats/<str:chat_id>/messages/<str:message_id>/retry/", PAGE_EDITORS),
    Row("POST", "chats/<str:chat_id>/messages/<str:message_id>/continue/", PAGE_EDITORS),
    Row("POST", f"{MESSAGE_PAGE}start/", answering(409, PAGE_EDITORS)),
    Row("POST", f"{MESSAGE_PAGE}keep/", PAGE_EDITORS),
    Row("POST", "chats/<str:chat_id>/messages/<str:message_id>/remember/", PAGE_EDITORS),
    Row("POST", "chats/<str:chat_id>/messages/<str:message_id>/save/", PAGE_EDITORS),
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
    Row("GET", "workspaces/<str:ws_id>/memories/all/", PAGE_MEMBERS, query="?q=tea"),
    Row(
        "POST",
        "workspaces/<str:ws_id>/memories/all/change/",
        PAGE_EDITORS,
        {"act": "pin", "memory": "{mem}"},
    ),
    Row("GET", PROFILE, PAGE_MEMBERS),
    Row(
        "POST",
        PROFILE,
        answering(302, PAGE_MEMBERS),
        {"content": "I collect stamps"},
    ),
    Row("POST", f"{PROFILE}hide/", PAGE_MEMBERS, {"memory": "{mem}"}),
    Row("POST", f"{PROFILE}use/", answering(302, PAGE_MEMBERS), {"profile": "on"}),
    Row("GET", TIDY, PAGE_MEMBERS),
    Row("POST", f"{TIDY}forget/", PAGE_EDITORS, {"memory": "{mem}"}),
    # A memory cannot replace itself.
    Row("POST", f"{TIDY}replace/", answering(422, PAGE_EDITORS), {"memory": "{mem}", "into": "{mem}"}),
    Row("POST", f"{TIDY}replaced/<str:mem_id>/undo/", PAGE_EDITORS),
    Row("POST", f"{TIDY}keep/", PAGE_EDITORS, {"memory": "{mem}"}),
    Row("POST", f"{TIDY}kept/<int:kept_id>/undo/", PAGE_EDITORS),
    Row("POST", f"{TIDY}index/", PAGE_EDITORS),
    Row("GET", CLEAR, PAGE_MEMBERS),
    Row("POST", CLEAR, answering(302, PAGE_OWNERS), query="?scope=workspace"),
    Row("POST", CLEAR, answering(302, PAGE_MEMBERS), query="?scope=user"),
    Row("GET", f"{CLEAR}for-good/", PAGE_OWNERS, query="?scope=workspace", fresh=True),
    Row("POST", f"{CLEAR}for-good/", answering(302, PAGE_OWNERS), query="?scope=workspace", fresh=True),
    Row("POST", f"{CLEAR}<str:clearing_id>/undo/", answering(302, PAGE_THEIRS)),
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
    Row("POST", f"{NODE_PAGE}differ/", answering(302, PAGE_EDITORS), {"other": "{other_node}"}),
    Row("POST", f"{NODE_PAGE}merge/", answering(302, PAGE_EDITORS), {"into": "{other_node}"}),
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
    Row("POST", f"{RUN_PAGE}plan/", answering(409, PAGE_OWNERS)),
    Row("POST", f"{RUN_PAGE}resume/", answering(409, PAGE_OWNERS)),
    Row("POST", f"{RUN_PAGE}again/", answering(422, PAGE_EDITORS)),
    Row("GET", "workspaces/<str:ws_id>/prompts/", PAGE_MEMBERS),
    Row("GET", "workspaces/<str:ws_id>/prompts/choices/", PAGE_MEMBERS),
    Row("GET", "workspaces/<str:ws_id>/prompts/<str:prompt_id>/", PAGE_OWNERS),
    Row(
        "POST",
        "workspaces/<str:ws_id>/prompts/<str:prompt_id>/",
        answering(302, PAGE_OWNERS),
        {"name": "Yes", "text": "Accept."},
    ),
    Row("POST", "workspaces/<str:ws_id>/prompts/<str:prompt_id>/delete/", answering(302, PAGE_OWNERS)),
    Row("POST", f"{RUN_PAGE}template/", answering(422, PAGE_EDITORS)),
    Row(
        "POST",
        "workspaces/<str:ws_id>/runs/templates/<str:template_id>/delete/",
        answering(302, PAGE_OWNERS),
    ),
    Row("GET", "workspaces/<str:ws_id>/export/", PAGE_MEMBERS),
    Row("GET", "export/", PAGE_EVERYBODY),
    Row("GET", "manifest.webmanifest", ANYBODY),
    Row("GET", "service-worker.js", ANYBODY),
    Row("GET", "offline/", ANYBODY),
    Row("GET", "connections/built-in/", PAGE_EVERYBODY),
    Row("POST", "connections/built-in/", (403, 403, 403, 403, LOGIN), {"want": "pause"}),
    Row("GET", "connections/here/", answering(302, PAGE_EVERYBODY)),
    Row(
        "POST", "connections/here/", (403, 403, 403, 403, LOGIN)
    ),  # tests/workspaces/connections/test_local_servers.py
    Row("POST", "connections/here/connect/", (403, 403, 403, 403, LOGIN), {"server": "ollama", "model": "m"}),
    Row("POST", "workspaces/<str:ws_id>/invitations/", answering(302, PAGE_OWNERS), INVITATION),
    Row(
        "POST",
        "workspaces/<str:ws_id>/invitations/<str:invitation_id>/revoke/",
        answering(302, PAGE_OWNERS),
    ),
    Row("POST", "invitations/<str:invitation_id>/", (404, 404, 404, 404, LOGIN), {"answer": "accept"}),
    # Members are redirected; anyone else with the link may join after signing in.
    Row("GET", "join/<str:token>/", (302, 302, 302, 200, 200)),
    Row("POST", "join/<str:token>/accept/", answering(302, PAGE_EVERYBODY)),
    Row("GET", "chats/<str:chat_id>/export/", PAGE_MEMBERS),
    Row("GET", "chats/<str:chat_id>/print/", PAGE_MEMBERS),
    Row("GET", "chats/<str:chat_id>/tags/", PAGE_MEMBERS),
    Row("POST", "chats/<str:chat_id>/tags/", PAGE_MEMBERS, {"tags": "travel"}),
    Row("POST", f"{MESSAGE_PAGE}rating/", PAGE_MEMBERS, {"rating": "up"}),
    Row("POST", f"{MESSAGE_PAGE}step/", answering(302, PAGE_EDITORS)),
    Row("GET", LINKS_PAGE, PAGE_MEMBERS),
    Row("POST", f"{LINKS_PAGE}make/", PAGE_EDITORS, {"days": "7"}),
    Row("POST", f"{LINKS_PAGE}<str:link_id>/update/", PAGE_OWNERS),
    Row("POST", f"{LINKS_PAGE}<str:link_id>/close/", PAGE_OWNERS),
    Row("GET", "workspaces/<str:ws_id>/links/", PAGE_MEMBERS),
    Row("POST", "workspaces/<str:ws_id>/share-links/", answering(302, PAGE_OWNERS), {"links": "on"}),
    # Anyone with the link, signed in or not.
    Row("GET", "shared/<str:share_token>/", ANYBODY),
    Row("GET", "imports/", PAGE_EVERYBODY),
    # A workspace in which the user may not write is no choice of the form.
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
    # For the user who asked, the cast's owner.
    Row("POST", "receipts/items/<int:item_id>/not-relevant/", (200, 404, 404, 404, LOGIN)),
]
ROWS = [*API_ROWS, *PAGE_ROWS]


def known_routes() -> Iterator[tuple[str, str]]:
    """Yield every (method, route) of the URL resolver; the method of a function view is ``*``."""
    for route, pattern in route_patterns(get_resolver().url_patterns, ""):
        view = getattr(pattern.callback, "cls", None)
        methods = [name.upper() for name in ("get", "post", "put", "patch", "delete") if hasattr(view, name)]
        for method in methods or ["*"]:
            yield method, route


def route_patterns(patterns: list[Any], prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if route.startswith(NOT_OURS):
            continue
        if isinstance(pattern, URLResolver):
            yield from route_patterns(pattern.url_patterns, route)
        else:
            yield route, pattern
