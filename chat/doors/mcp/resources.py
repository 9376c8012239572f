"""What a program can read over MCP without its model asking: memories, and an introduction to the workspace."""

from __future__ import annotations

import mcp_types as types
from django.utils.translation import gettext as _

from chat.doors.mcp.session import caller
from chat.doors.mcp.shapes import in_sight, page
from chat.prompting.context import recalled_block
from chat.prompting.text import escape
from memories.models import Memory
from memories.recalling.ranked_search import Recalled
from memoryhub.errors import NotFound

SCHEME = "memory://"
TEXT = "text/plain"
PAGE = 50
INTRODUCED = 20  # memories
NAME_LENGTH = 60
TEMPLATES = [
    types.ResourceTemplate(
        name="memory",
        title="A memory",
        uri_template=f"{SCHEME}{{memory_id}}",
        description="One memory, by its id.",
        mime_type=TEXT,
    )
]
INTRODUCTION = types.Prompt(
    name="introduce_workspace",
    title="Introduce the workspace",
    description="What this workspace is about and what matters most in it.",
)


def list_resources(cursor: str | None) -> types.ListResourcesResult:
    """The memories in sight, newest first."""
    who = caller(automatic=False)
    found, more = page(in_sight(who), who, cursor, PAGE)
    return types.ListResourcesResult(resources=[_resource(memory) for memory in found], next_cursor=more)


def read_resource(uri: str) -> types.ReadResourceResult:
    who = caller(automatic=False)
    found = (
        in_sight(who).live(who.now) if uri.startswith(SCHEME) and "\0" not in uri else Memory.objects.none()
    )
    memory = found.filter(public_id=uri.removeprefix(SCHEME)).first()
    if memory is None:
        raise NotFound(_("This memory does not exist, or you do not have access to it."))
    contents = types.TextResourceContents(uri=uri, text=memory.content, mime_type=TEXT)
    return types.ReadResourceResult(contents=[contents])


def get_prompt(name: str) -> types.GetPromptResult:
    if name != INTRODUCTION.name:
        raise NotFound(_("There is no prompt of this name."))
    who = caller()
    best = (
        in_sight(who)
        .live(who.now)
        .select_related("author")
        .order_by("-pinned", "-importance", "-updated_at", "-pk")[:INTRODUCED]
    )
    about = [_("This is the workspace “%s”.") % escape(who.workspace.name), escape(who.workspace.description)]
    several = who.workspace.memberships.count() > 1
    block = recalled_block([Recalled(memory, 0.0, {}) for memory in best], names_people=several)
    text = "\n\n".join(filter(None, [" ".join(filter(None, about)), block]))
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=INTRODUCTION.description, messages=[message])


def _resource(memory: Memory) -> types.Resource:
    name = memory.content if len(memory.content) <= NAME_LENGTH else memory.content[: NAME_LENGTH - 1] + "…"
    return types.Resource(
        name=memory.public_id, title=name, uri=f"{SCHEME}{memory.public_id}", mime_type=TEXT
    )
