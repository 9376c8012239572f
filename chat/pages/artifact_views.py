"""“Keep”: an answer, or a piece of it, becomes an artifact that opens beside the chat."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from chat.access import get_message
from chat.chats.keep_as_artifact import keep_answer
from memoryhub.errors import NotFound
from workspaces.artifacts import LooksDelicate
from workspaces.models import Role
from workspaces.views import PageRequest
from workspaces.views.artifacts import beside_chat, show


@require_POST
def keep(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """``block`` is the number of its code or table; without it all of the answer is kept."""
    chat, answer = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    asked = request.POST.get("block", "")
    if asked and not (asked.isascii() and asked.isdigit() and len(asked) < 6):
        raise NotFound(_("There is no such piece in this answer."))
    confirmed = request.POST.get("confirm") == "true"
    try:
        made = keep_answer(
            answer,
            block=int(asked) if asked else None,
            by=request.user,
            now=timezone.now(),
            confirmed=confirmed,
        )
    except LooksDelicate as error:
        asking = {
            "workspace": chat.workspace,
            "chat": chat,
            "answer": answer,
            "piece": asked,
            "problem": error,
        }
        return beside_chat(render(request, "chat/keep_anyway.html", asking, status=error.status))
    told = _("Saved to Artifacts, only for you.") if made.owner_id else _("Saved to Artifacts.")
    return show(request, made, {"toast": told})
