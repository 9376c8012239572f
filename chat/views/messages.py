"""Views of a message: show, follow, stop, retry, edit, versions, rating, “Remember this”, and saving as an artifact."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import islice
from typing import cast

from asgiref.sync import sync_to_async
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat.access import get_message
from chat.chats.save_as_artifact import save_answer
from chat.chats.services import remove_rating, set_rating
from chat.live_answers import in_thread, stop_answer
from chat.models import Chat, Message, MessageRole
from chat.models.personal_marks import REASONS, Rating
from chat.models.runs import Run, RunStatus
from chat.runs.services import get_run
from chat.turns import services
from chat.turns.remember_this import is_question, proposal_for, remember_message, says_nothing
from chat.turns.stream import StreamEvent, follow_for, to_sse, with_html
from chat.views.shown_messages import entries_for, entry_for, load_transcript, plan_in
from memories.access import count_listed
from memories.models import Extraction
from memories.models.extraction import ExtractionStatus
from memories.models.memory import CONTENT_LENGTH
from memories.writing.extraction_jobs import retry as retry_extraction
from memoryhub.database.queries import release_connection
from memoryhub.errors import Conflict, Invalid, NotFound, Sensitive
from workspaces.artifacts import LooksSensitive
from workspaces.models import Role, User
from workspaces.views import PageRequest
from workspaces.views.artifacts import beside_chat, show
from workspaces.views.event_streams import EventStream, StreamSlot


@require_GET
def message(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Show a message in its current state. The page requests it when a stream ends."""
    chat, wanted = get_message(request.user, chat_id, message_id)
    return _message(request, chat, wanted)


def _message(request: PageRequest, chat: Chat, shown: Message) -> HttpResponse:
    entry = entry_for(shown, chat, request.user, now=timezone.now())
    context = {"chat": chat, "entry": entry, "can_write": Role(chat.role).allows(Role.EDITOR)}
    return render(request, "chat/message.html", context)


@require_POST
def stop(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Stop an answer. Its open stream ends and shows the text so far."""
    _chat, answer = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    stop_answer(answer, now=timezone.now())
    return HttpResponse(status=204)


@require_POST
def retry(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    chat, answer = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    return _message(request, chat, services.retry_answer(answer, by=request.user, now=timezone.now()))


@require_POST
def continue_cut(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Continue an answer that was cut off at its length limit."""
    chat, answer = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    return _message(request, chat, services.continue_answer(answer, by=request.user, now=timezone.now()))


@require_POST
def start_research(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Start the waiting research run with the submitted plan. Raises Conflict if the run no longer waits."""
    chat, answer = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    run = Run.objects.visible_to(request.user).filter(answer=answer).first()
    if run is None or run.status != RunStatus.WAITING:
        raise Conflict(_("This plan is no longer waiting."))
    run = get_run(request.user, chat.workspace, run.public_id)
    services.resume_from_chat(run, by=request.user, now=timezone.now(), plan=plan_in(run, request.POST))
    return _message(request, chat, get_message(request.user, chat_id, message_id)[1])


@require_POST
def remember(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Save a message as a memory. Replace its button with a confirmation, and make the memory panel reload.

    A question, an answer or a message that is too long is first edited. Rules propose a statement or, with ``improve``,
    the model. A personal number needs confirmation.
    """
    chat, wanted = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    user, content = request.user, request.POST.get("content")
    slot_context: dict[str, object] = {"chat_id": chat_id, "message_id": message_id}
    if request.POST.get("improve") == "on":  # saves nothing, even if other fields are sent
        better = proposal_for(wanted, by=user)
        slot_context |= {"content": better.content, "most": CONTENT_LENGTH}
        status = 200 if better.synthesized else 204
        return render(request, "chat/remember_text.html", slot_context, status=status)
    needs_an_edit = wanted.role == MessageRole.ASSISTANT or is_question(wanted)
    if content is None and (needs_an_edit or len(wanted.content) > CONTENT_LENGTH):
        if says_nothing(wanted.content):
            raise Invalid(_("There is nothing to remember in this message."))
        proposed = proposal_for(wanted, by=user, by_model=False).content if needs_an_edit else wanted.content
        slot_context |= {"state": "proposes", "content": proposed, "may_improve": needs_an_edit}
        slot_context |= {"most": CONTENT_LENGTH, "over": max(0, len(proposed) - CONTENT_LENGTH)}
        return render(request, "chat/remember_slot.html", slot_context)
    try:
        confirmed = request.POST.get("confirm") == "true"
        saved = remember_message(wanted, by=user, now=timezone.now(), content=content, confirmed=confirmed)
    except Sensitive as error:
        slot_context |= {"state": "asks", "content": content, "asks": next(iter(error.fields.values()), "")}
        response = render(request, "chat/remember_slot.html", slot_context, status=422)
        response["HX-Retarget"], response["HX-Reswap"] = "closest .remember-slot", "outerHTML"
        return response
    context = {
        "memory": saved.memory,
        "state": "already" if saved.duplicate else "new",
        "workspace": chat.workspace,
        "count": count_listed(chat.workspace, user, now=timezone.now()),
    }
    response = render(request, "chat/remembered.html", context)
    response["HX-Trigger"] = "memories:changed"
    return response


@require_POST
def save_again(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Retry the extraction of memories from this answer's turn, after it has failed."""
    chat, wanted = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    failed = Extraction.objects.troubled(request.user, [wanted.public_id])
    for extraction in failed.filter(status=ExtractionStatus.FAILED):
        retry_extraction(extraction, now=timezone.now())
    return _message(request, chat, wanted)


@require_GET
async def stream(request: PageRequest, chat_id: str, message_id: str) -> HttpResponseBase:
    """Stream the answer as server-sent events after the last received one. Holds no database connection while waiting.

    ``?as=html`` streams the whole answer as rendered HTML.
    """
    user = cast(User, await request.auser())
    await in_thread(get_message, user, chat_id, message_id)
    text = request.headers.get("Last-Event-ID") or request.GET.get("after", "")
    after = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    await sync_to_async(release_connection)()  # the connection that read the session
    if request.GET.get("as") == "html":
        stream_events = with_html(follow_for(user, chat_id, message_id))
    else:
        stream_events = follow_for(user, chat_id, message_id, after=after)
    return EventStream(_events(stream_events), slot=StreamSlot(user))


async def _events(stream_events: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[str, None]:
    async with aclosing(stream_events):
        async for event in stream_events:
            yield to_sse(event)


@require_POST
def rating(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Store the user's rating ("up" or "down") of an answer, or remove it if ``rating`` is empty.

    After a first rating, a form asks for reasons and a comment, and is submitted with ``told``.
    """
    chat, message = get_message(request.user, chat_id, message_id)
    value, told = request.POST.get("rating", ""), "told" in request.POST
    stored_rating = None
    if value:
        reasons = request.POST.getlist("reasons") if told else []
        comment, now = request.POST.get("comment", ""), timezone.now()
        stored_rating = set_rating(
            message, rating=value, reasons=reasons, comment=comment, by=request.user, now=now
        )
    else:
        remove_rating(message, by=request.user)
    asks = stored_rating is not None and not told
    context = {
        "chat": chat,
        "message": message,
        "rating": stored_rating,
        "asks": asks,
        "told": told,
        "reasons": [(reason.value, reason.label) for reason in REASONS[Rating(value)]] if asks else [],
    }
    return render(request, "chat/rating.html", context)


@require_POST
def save_artifact(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Save an answer as an artifact, or only the code block or table with the index ``block``."""
    chat, answer = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    block = request.POST.get("block", "")
    if block and not (block.isascii() and block.isdigit() and len(block) < 6):
        raise NotFound(_("There is no such piece in this answer."))
    confirmed, now = request.POST.get("confirm") == "true", timezone.now()
    try:
        artifact = save_answer(
            answer, block=int(block) if block else None, by=request.user, now=now, confirmed=confirmed
        )
    except LooksSensitive as error:
        asking = {
            "workspace": chat.workspace,
            "chat": chat,
            "answer": answer,
            "piece": block,
            "problem": error,
        }
        return beside_chat(render(request, "chat/keep_anyway.html", asking, status=error.status))
    if artifact.created_at != now:
        return show(request, artifact, {"known": True})
    told = _("Saved to Artifacts, only for you.") if artifact.owner_id else _("Saved to Artifacts.")
    return show(request, artifact, {"toast": told})


@require_http_methods(["GET", "POST"])
def edit(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Show the question in a text field (GET), or replace it and begin a new turn (POST)."""
    chat, message = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    if request.method == "GET":
        services.require_editable(message, request.user)
        services.require_idle(chat, now=timezone.now())
        follows = chat.messages.current().filter(pk__gt=message.pk).count()
        context = {"chat": chat, "message": message, "follows": follows}
        return render(request, "chat/edit_message.html", context)
    services.edit_message(
        message, content=request.POST.get("content", ""), by=request.user, now=timezone.now()
    )
    return _conversation(request, chat)


@require_GET
def versions(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Show the earlier versions of an answer, or those of a question with all messages that followed them."""
    chat, message = get_message(request.user, chat_id, message_id)
    earlier = services.versions_of(message, request.user)
    messages = [each for version in earlier for each in version.messages]
    entries = iter(entries_for(messages, chat, request.user, now=timezone.now(), ends=False))
    version_entries = [(version, list(islice(entries, len(version.messages)))) for version in earlier]
    can_write = Role(chat.role).allows(Role.EDITOR)
    may_change = can_write and message.superseded_by_id is None
    if message.role == "assistant":  # an answer with later messages cannot be replaced
        may_change &= not chat.messages.current().filter(pk__gt=message.pk).exists()
    context = {"chat": chat, "versions": version_entries, "may_bring_back": may_change}
    return render(request, "chat/versions.html", context)


@require_POST
def restore(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    chat, message = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    services.restore_version(message, by=request.user, now=timezone.now())
    return _conversation(request, chat)


@require_POST
def step(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """Replace a message by its previous version (``?to=older``) or by the next one."""
    chat, message = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    beside = services.adjacent_version(message, back=request.GET.get("to") == "older", by=request.user)
    beside.chat = chat
    services.restore_version(beside, by=request.user, now=timezone.now())
    return _conversation(request, chat)


def _conversation(request: PageRequest, chat: Chat) -> HttpResponse:
    """Return the current conversation, which replaces the one on the page."""
    if not request.htmx:
        return redirect(reverse("chat:chat", args=[chat.public_id]))
    shown = load_transcript(chat, request.user, now=timezone.now())
    response = render(request, "chat/messages.html", {"chat": chat, "transcript": shown, "can_write": True})
    response["HX-Retarget"], response["HX-Reswap"] = "#messages", "innerHTML"
    response.write(render(request, "chat/title.html", {"chat": chat, "oob": True}).content.decode())
    response["HX-Trigger"] = "chats:changed"
    return response
