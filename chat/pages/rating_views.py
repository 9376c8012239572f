"""Thumbs under an answer."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from chat.access import get_message
from chat.chats.rating import rate, take_back
from chat.models.ratings import REASONS, Rating
from workspaces.views import PageRequest


@require_POST
def rating(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """``rating``: up, down, or nothing to take it back. With ``told`` the reasons came along, and are asked no more."""
    chat, message = get_message(request.user, chat_id, message_id)
    said, told = request.POST.get("rating", ""), "told" in request.POST
    found = None
    if said:
        reasons = request.POST.getlist("reasons") if told else []
        comment = request.POST.get("comment", "")
        now = timezone.now()
        found = rate(message, rating=said, reasons=reasons, comment=comment, by=request.user, now=now)
    else:
        take_back(message, by=request.user)
    asks = found is not None and not told
    context = {
        "chat": chat,
        "message": message,
        "rating": found,
        "asks": asks,
        "told": told,
        "reasons": [(reason.value, reason.label) for reason in REASONS[Rating(said)]] if asks else [],
    }
    return render(request, "chat/rating.html", context)
