"""One message: as it stands now, followed while it is written, stopped, written anew, remembered."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from asgiref.sync import sync_to_async
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from chat.access import get_message
from chat.agents.runs import get_run
from chat.answers.answer_state import stop_answer
from chat.answers.threads import in_thread
from chat.chats.proposing import is_question, proposal_for, says_nothing
from chat.chats.remembering import remember_message
from chat.models import Chat, Message, MessageRole
from chat.models.runs import Run, RunStatus
from chat.pages.plans import plan_in
from chat.pages.transcript import entry_for
from chat.turns.growing import with_html
from chat.turns.planned import go_on_with
from chat.turns.retry import continue_answer, retry_answer
from chat.turns.stream import StreamEvent, follow_for, to_sse
from memories.models.memory import CONTENT_LENGTH
from memories.usage import count_listed
from memoryhub.database.locks import release_connection
from memoryhub.errors import Conflict, Invalid, Sensitive
from workspaces.event_streams import EventStream, Place
from workspaces.models import Role, User
from workspaces.views import PageRequest


@require_GET
def message(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """One message as it stands now: what a finished stream is replaced with."""
    found, wanted = get_message(request.user, chat_id, message_id)
    return _message(request, found, wanted)


def _message(request: PageRequest, found: Chat, shown: Message) -> HttpResponse:
    entry = entry_for(shown, found, request.user, now=timezone.now())
    context = {"chat": found, "entry": entry, "can_write": Role(found.role).allows(Role.EDITOR)}
    return render(request, "chat/message.html", context)


@require_POST
def stop(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """The open stream ends by itself and shows what is there."""
    _chat, answer = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    stop_answer(answer, by=request.user, now=timezone.now())
    return HttpResponse(status=204)


@require_POST
def retry(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    found, answer = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    return _message(request, found, retry_answer(answer, by=request.user, now=timezone.now()))


@require_POST
def go_on(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """“Continue”: an answer that was cut at its limit is streamed on."""
    found, answer = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    return _message(request, found, continue_answer(answer, by=request.user, now=timezone.now()))


@require_POST
def start_research(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """By the plan as the form has it."""
    found, answer = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    run = Run.objects.visible_to(request.user).filter(answer=answer).first()
    if run is None or run.status != RunStatus.WAITING:
        raise Conflict(_("This plan does not wait for anybody any more."))
    run = get_run(request.user, found.workspace, run.public_id)
    go_on_with(run, by=request.user, now=timezone.now(), plan=plan_in(run, request.POST))
    return _message(request, found, get_message(request.user, chat_id, message_id)[1])


@require_POST
def remember(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """“Remember this”: the button becomes the confirmation, the badge counts on, the panel looks again.

    Of a question or an answer a statement is proposed first, to be edited: at once by rule, then by the model where it
    can (``improve``). A message that is too long for a memory is to be edited, too. A number of their own is asked
    about: the button becomes the question.
    """
    found, wanted = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    user, content = request.user, request.POST.get("content")
    asked: dict[str, object] = {"chat_id": chat_id, "message_id": message_id}
    if request.POST.get("improve") == "on":  # stores nothing, whatever else is sent with it
        better = proposal_for(wanted, by=user)
        asked |= {"content": better.content, "most": CONTENT_LENGTH}
        return render(request, "chat/remember_text.html", asked, status=200 if better.synthesized else 204)
    needs_an_edit = wanted.role == MessageRole.ASSISTANT or is_question(wanted)
    if content is None and (needs_an_edit or len(wanted.content) > CONTENT_LENGTH):
        if says_nothing(wanted.content):
            raise Invalid(_("There is nothing to remember in this message."))
        proposed = proposal_for(wanted, by=user, by_model=False).content if needs_an_edit else wanted.content
        asked |= {"state": "proposes", "content": proposed, "may_improve": needs_an_edit}
        asked |= {"most": CONTENT_LENGTH, "over": max(0, len(proposed) - CONTENT_LENGTH)}
        return render(request, "chat/remember_slot.html", asked)
    try:
        confirmed = request.POST.get("confirm") == "true"
        saved = remember_message(wanted, by=user, now=timezone.now(), content=content, confirmed=confirmed)
    except Sensitive as error:
        asked |= {"state": "asks", "content": content, "asks": next(iter(error.fields.values()), "")}
        response = render(request, "chat/remember_slot.html", asked, status=422)
        response["HX-Retarget"], response["HX-Reswap"] = "closest .remember-slot", "outerHTML"
        return response
    context = {
        "memory": saved.memory,
        "state": "already" if saved.duplicate else "new",
        "workspace": found.workspace,
        "count": count_listed(found.workspace, user, now=timezone.now()),
    }
    response = render(request, "chat/remembered.html", context)
    response["HX-Trigger"] = "memories:changed"
    return response


@require_GET
async def stream(request: PageRequest, chat_id: str, message_id: str) -> HttpResponseBase:
    """The answer as server-sent events, from where the browser left off. Holds no database connection as it waits.

    With ``?as=html`` the whole of it, rendered as it grows.
    """
    user = cast(User, await request.auser())
    await in_thread(get_message, user, chat_id, message_id)
    after = _offset(request.headers.get("Last-Event-ID") or request.GET.get("after", ""))
    await sync_to_async(release_connection)()  # with it the session was read
    if request.GET.get("as") == "html":
        found = with_html(follow_for(user, chat_id, message_id))
    else:
        found = follow_for(user, chat_id, message_id, after=after)
    return EventStream(_events(found), place=Place(user))


async def _events(found: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[str, None]:
    async with aclosing(found):
        async for event in found:
            yield to_sse(event)


def _offset(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
