"""The page that searches memories, documents, artifacts and messages of a workspace."""

import re
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as later
from django.views.decorators.http import require_GET

from chat.rendering.markdown import Budget, TooHeavy, render_markdown
from memories.recalling.workspace_search import TYPES, Found, search_workspace
from workspaces.access import get_workspace
from workspaces.data_policy import DataPolicy
from workspaces.models import Workspace
from workspaces.views import PageRequest

LONGEST_SEARCH = 400  # characters of a query
MOST_FOUND = 30
EXCERPT = 280  # limit in characters of a result's text
EXCERPT_STEPS = 2_000
_HEADING = re.compile(r"<(/?)h[1-6]\b[^>]*>")
NAMES = {
    "memory": (later("Memories"), "memory"),
    "document": (later("Documents"), "paperclip"),
    "artifact": (later("Artifacts"), "file-text"),
    "message": (later("Messages"), "message-square"),
}


@dataclass(frozen=True)
class Shown:
    found: Found
    url: str
    icon: str
    q: str

    @property
    def html(self) -> SafeString:
        """Return the beginning of the result as HTML, with the query's words marked.

        Markdown is rendered, with headings as paragraphs. An artifact, or a text too costly to render, is shown as
        plain source.
        """
        text = Truncator(self.found.text).chars(EXCERPT)
        if self.found.type != "artifact":
            with suppress(TooHeavy):
                return marked(_HEADING.sub(r"<\1p>", render_markdown(text, Budget(EXCERPT_STEPS))), self.q)
        return marked(format_html("<p>{}</p>", text), self.q)


def marked(html: str, q: str) -> SafeString:
    """Wrap words that start with a word of the query in ``<mark>``, outside HTML tags and character references."""
    words = [rf"\b{word}" if word.isascii() else word for word in re.findall(r"\w{2,}", q)]
    if not words:
        return SafeString(html)
    pattern = re.compile(rf"<[^>]*>|&#?\w+;|({'|'.join(words)})", re.IGNORECASE)
    return SafeString(pattern.sub(lambda match: f"<mark>{match[1]}</mark>" if match[1] else match[0], html))


@require_GET
def search(request: PageRequest, ws_id: str) -> HttpResponse:
    """Search for ``?q=`` among results of the types ``?type=``, by default all."""
    workspace, q = get_workspace(request.user, ws_id), request.GET.get("q", "").strip()[:LONGEST_SEARCH]
    types = [each for each in request.GET.getlist("type") if each in TYPES]
    results = search_workspace(
        q,
        workspace,
        request.user,
        limit=MOST_FOUND,
        types=types or TYPES,
        now=timezone.now(),
        policy=DataPolicy.here(workspace),
        private_chats=True,
        noted=False,  # a GET writes nothing
        listed=True,
    )
    context = {
        "workspace": workspace,
        "q": q,
        "types": [(each, name, each in (types or TYPES)) for each, (name, _icon) in NAMES.items()],
        "results": [Shown(each, _address(each, workspace), NAMES[each.type][1], q) for each in results],
    }
    return render(request, "chat/search.html", context)


def _address(result: Found, workspace: Workspace) -> str:
    """Return the URL of a result, which opens it at the match."""
    if result.type == "document":
        url = reverse("workspaces:document", args=[result.workspace_id, result.id])
        return f"{url}?passage={result.number}#passage-{result.number}"
    if result.type == "artifact":
        return reverse("workspaces:artifact", args=[result.workspace_id, result.id])
    if result.type == "message":
        return f"{reverse('chat:chat', args=[result.chat_id])}?at={result.id}#{result.id}"
    return url_in_panel(workspace, result.text)


def url_in_panel(workspace: Workspace, text: str) -> str:
    """Return the URL that searches for this memory in the workspace's memory panel."""
    words = " ".join(text.split()[:8])
    return f"{reverse('chat:workspace', args=[workspace.public_id])}?{urlencode({'find': words})}"
