"""The current page of a fragment's request, from the address that htmx sends."""

from __future__ import annotations

from contextlib import suppress

from workspaces.views import PageRequest


def _parts(request: PageRequest) -> list[str]:
    path = ""
    with suppress(ValueError):  # no address: anybody may write one
        path = (request.htmx.current_url_abs_path or "") if request.htmx else ""
    return path.split("?")[0].strip("/").split("/")


def chat_on_screen(request: PageRequest) -> str:
    """The id of the chat that is being read, or nothing."""
    parts = _parts(request)
    return parts[1] if len(parts) == 2 and parts[0] == "chats" else ""


def has_panel(request: PageRequest) -> bool:
    """Whether memories stand beside what is shown: beside chats, begun or not."""
    parts = _parts(request)
    return len(parts) == 2 and parts[0] in ("chats", "workspaces")
