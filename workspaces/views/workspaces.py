"""Pages of workspaces and of a person's own settings, and the stream of events for open pages."""

import json
import threading
import weakref
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.conf import settings as conf
from django.conf import settings as django_settings
from django.contrib import messages as notices
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe

from memoryhub import events as bus
from memoryhub.database.queries import release_connection
from memoryhub.database.replicas import pin_to_primary
from memoryhub.errors import DomainError, NotFound, TooManyRequests, Unavailable, trouble_of
from memoryhub.languages import isolated
from memoryhub.llm.registry import embedder_is_local
from memoryhub.monitoring import metrics
from workspaces.access import default_workspace, get_workspace, owners_of_personal, workspaces_of
from workspaces.accounts import invitations
from workspaces.accounts import keys as api_keys
from workspaces.accounts.invitations import Ended, link_token, open_invitations
from workspaces.accounts.sessions import live_sign_ins
from workspaces.accounts.sign_in import ask_for_password, confirmed, has_two_factor
from workspaces.actions import workspaces
from workspaces.actions.removal import lines_of
from workspaces.connections import chosen_for, options_for
from workspaces.models import ApiKey, Invitation, Membership, Role, User, Workspace
from workspaces.views import PageRequest
from workspaces.views.forms import DeleteForm, InvitationForm, KeyForm, MemberForm, WorkspaceForm

RETRY_SECONDS = 30
EVENTS, ANSWERS = (
    "event streams",
    "answers",
)  # kinds of streams: of pages and clients, of programs with a key
_lock = threading.Lock()
_open: Counter[tuple[str, int]] = (
    Counter()
)  # by kind and person; of this process, since a stream lives in one


class Overloaded(Unavailable):
    default_message = later("There is more to do here than can be done at once. Try again in a moment.")
    code, retry_after = "overloaded", 1


class Place:
    """A slot for an open stream of a person, released by ``leave`` or by garbage collection.

    ``of``: the kind of stream; those of programs with an API key (ANSWERS) are counted separately. Raises Overloaded
    above MEMORYHUB_STREAMS_AT_ONCE streams in this process, and TooManyRequests above MEMORYHUB_EVENT_STREAMS (or
    MEMORYHUB_ANSWER_STREAMS) of this person. A new stream is refused, because the oldest, if closed instead, would
    reconnect and close the next.
    """

    def __init__(self, user: User, *, of: str = EVENTS) -> None:
        most = django_settings.EVENT_STREAMS if of == EVENTS else django_settings.ANSWER_STREAMS
        with _lock:
            if _open.total() >= django_settings.STREAMS_AT_ONCE:
                metrics.SHED.labels("streams").inc()
                raise Overloaded
            if _open[of, user.pk] >= most:
                metrics.THROTTLED.labels(of).inc()
                raise TooManyRequests(retry_after=RETRY_SECONDS)
            _open[of, user.pk] += 1
        self.leave = weakref.finalize(self, _left, (of, user.pk))


class EventStream(StreamingHttpResponse):
    """A response of server-sent events. Closing it releases its ``place``.

    If an error occurs, it ends with an ``error`` event.
    """

    def __init__(self, events: AsyncGenerator[str, None], *, place: Place) -> None:
        super().__init__(_to_their_end(events), content_type="text/event-stream")
        self._place = place
        self["Cache-Control"] = "no-store, no-transform"
        self["X-Accel-Buffering"] = "no"  # proxies must not buffer the events

    def close(self) -> None:
        self._place.leave()
        super().close()


async def _to_their_end(events: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    async with aclosing(events):
        try:
            async for event in events:
                yield event
        except (DomainError, DatabaseError, InterfaceError) as error:
            said = error if isinstance(error, DomainError) else trouble_of(error)
            if said is None:
                raise
            yield f"event: error\ndata: {json.dumps(said.body()['error'])}\n\n"


def _left(held: tuple[str, int]) -> None:
    with _lock:
        _open[held] -= 1
        if not _open[held]:
            del _open[held]


HEARTBEAT = (
    15.0  # seconds: keeps proxies from closing a quiet stream, and ends streams of readers without access
)


@require_http_methods(["GET", "POST"])
def workspace_list(request: PageRequest) -> HttpResponse:
    form = WorkspaceForm(request.POST if request.method == "POST" else None)
    if made := form.done(lambda: workspaces.create_workspace(**form.cleaned_data, by=request.user)):
        return redirect("chat:workspace", made.public_id)
    found = workspaces_of(request.user)
    context = {
        "workspaces": found,
        "whose": owners_of_personal(found, request.user),
        "form": form,
        "invited_to": invitations.invitations_of(request.user, now=timezone.now()),
    }
    return render(request, "workspaces/list.html", context, status=422 if form.errors else 200)


def _members(workspace: Workspace) -> list[Membership]:
    """Return the members. ``must_stay`` is True for the last owner, and for the owner of a personal workspace."""
    members = list(workspace.memberships.select_related("user"))
    owners = [member for member in members if member.role == Role.OWNER]
    for member in members:
        is_home = member.user_id == workspace.default_of_id
        member.must_stay = is_home or owners == [member]  # type: ignore[attr-defined]
    return members


def invitation_link(request: PageRequest, invitation: Invitation) -> str:
    return request.build_absolute_uri(reverse("workspaces:invitation", args=[link_token(invitation)]))


def _invitations(request: PageRequest, workspace: Workspace) -> dict[str, Any]:
    """Return the template context of open invitations, by link and to single users. Two queries.

    Each link invitation has its URL as ``link``.
    """
    now = timezone.now()
    found = list(open_invitations(workspace, now=now))
    for each in found:
        each.link = invitation_link(request, each)  # type: ignore[attr-defined]
    return {
        "invitations": found,
        "invited": invitations.open_user_invitations(workspace, now=now),
        "invitation_form": InvitationForm(),
    }


def settings_page(request: PageRequest, workspace: Workspace, **forms: Any) -> HttpResponse:
    context = {
        "workspace": workspace,
        "is_owner": workspace.role == Role.OWNER,
        "members": _members(workspace),
        "roles": Role.choices,
        "form": WorkspaceForm(initial=_about(workspace)),
        "member_form": MemberForm(),
        "delete_form": DeleteForm(name=workspace.name),
        **(_invitations(request, workspace) if workspace.role == Role.OWNER else {}),
        "options": options_for(workspace, request.user, workspace.connection),
        "chosen": chosen_for(workspace, request.user),
        "embedder_is_local": embedder_is_local(),
    }
    # Not for htmx, which would show it as a notice.
    failed = not request.htmx and any(form.errors for form in forms.values())
    return render(request, "workspaces/settings.html", context | forms, status=422 if failed else 200)


def _about(workspace: Workspace) -> dict[str, str]:
    return {"name": workspace.name, "description": workspace.description}


@require_http_methods(["GET", "POST"])
def settings(request: PageRequest, ws_id: str) -> HttpResponse:
    if request.method == "GET":
        return settings_page(request, get_workspace(request.user, ws_id))
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    form = WorkspaceForm({**_about(workspace), **request.POST.dict()})

    def save() -> Workspace:
        sent = {name: value for name, value in form.cleaned_data.items() if name in request.POST}
        return workspaces.update_workspace(workspace, by=request.user, **sent)

    if form.done(save):
        notices.success(request, _("Saved."))
        return redirect("workspaces:settings", ws_id)
    return settings_page(request, get_workspace(request.user, ws_id), form=form)


@require_http_methods(["GET", "POST"])
def delete(request: PageRequest, ws_id: str) -> HttpResponse:
    """Delete a workspace after the person re-authenticated and typed its name. GET redirects to the settings."""
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    if request.method == "GET":
        return redirect("workspaces:settings", ws_id)
    form = DeleteForm(request.POST, name=workspace.name)
    if form.is_valid():
        ask_for_password(request)
        removed = form.done(lambda: workspaces.delete_workspace(workspace, by=request.user))
        if removed is not None:
            context = {"name": workspace.name, "report": {"lines": lines_of(removed)}}
            return render(request, "workspaces/removed.html", context)
    return settings_page(request, workspace, delete_form=form)


@require_POST
def add_member(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    form = MemberForm(request.POST)

    def add() -> Invitation:
        user, role = form.cleaned_data["username"], form.cleaned_data["role"]
        return invitations.invite(workspace, user=user, role=role, by=request.user, now=timezone.now())

    if form.done(add):
        name = form.cleaned_data["username"].shown_name
        notices.success(
            request, _("%(name)s is invited, and becomes a member on accepting.") % {"name": name}
        )
        return redirect("workspaces:settings", ws_id)
    return settings_page(request, workspace, member_form=form)


def _member(workspace: Workspace, user_id: str) -> User:
    membership = (
        Membership.objects.filter(workspace=workspace, user__public_id=user_id).select_related("user").first()
    )
    if membership is None:
        raise NotFound(_("There is no such member."))
    return membership.user


@require_POST
def change_role(request: PageRequest, ws_id: str, user_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    user = _member(workspace, user_id)
    changed = workspaces.change_role(workspace, user=user, role=request.POST.get("role", ""), by=request.user)
    text = _("%(name)s now has the role %(role)s.") % {
        "name": user.shown_name,
        "role": changed.get_role_display().lower(),
    }
    notices.success(request, text)
    if request.htmx and user.pk == request.user.pk:  # the person may not change the rest of the page any more
        return HttpResponse(headers={"HX-Refresh": "true"})
    return redirect("workspaces:settings", ws_id)


@require_POST
def remove_member(request: PageRequest, ws_id: str, user_id: str) -> HttpResponse:
    """Remove a member, or leave the workspace."""
    workspace = get_workspace(request.user, ws_id)
    user = _member(workspace, user_id)
    workspaces.remove_member(workspace, user=user, by=request.user)
    if user.pk == request.user.pk:
        notices.success(request, _("You have left “%(name)s”.") % {"name": workspace.name})
        return redirect("workspaces:list")
    notices.success(request, _("%(name)s is no longer a member.") % {"name": user.shown_name})
    return redirect("workspaces:settings", ws_id)


TRY_IT = """curl %(base)s/v1/chat/completions \\
  -H "Authorization: Bearer %(key)s" -H "Content-Type: application/json" \\
  -d '{"model": "default", "messages": [{"role": "user", "content": "What do you know about me?"}]}'"""


def _profile_page(
    request: PageRequest, form: KeyForm | None = None, made: ApiKey | None = None, new_key: str = ""
) -> HttpResponse:
    now = timezone.now()
    default_workspace(request.user)  # most keys are for it
    keys = list(ApiKey.objects.filter(user=request.user, revoked_at=None).select_related("workspace"))
    for key in keys:
        key.ended = key.is_expired(now)  # type: ignore[attr-defined]
    context = {
        "api_keys": keys,
        "key_form": form or KeyForm(user=request.user, now=now),
        "made": made,
        "new_key": new_key,
        "try_it": TRY_IT % {"base": request.build_absolute_uri("/").rstrip("/"), "key": new_key},
        "two_factor": has_two_factor(request),
        "sign_ins": live_sign_ins(request.user),
    }
    if form is None or not form.errors:
        return render(request, "workspaces/profile.html", context)
    wrong = next((name for name in form.errors if name in form.fields), "name")
    form.fields[wrong].widget.attrs["autofocus"] = True  # it is far down the page
    return render(request, "workspaces/profile.html", context, status=422)


@require_GET
def profile(request: PageRequest) -> HttpResponse:
    return _profile_page(request)


@require_http_methods(["GET", "POST"])
@confirmed(allow_get=True)
def keys(request: PageRequest) -> HttpResponse:
    """Create an API key and show it in the response. There is no redirect, because the key is stored nowhere.

    Sending the form again fails because the name is taken. GET redirects to the profile, because it follows a
    re-authentication.
    """
    if request.method == "GET":
        return redirect(reverse("workspaces:profile") + "#api-keys")
    now = timezone.now()
    form = KeyForm(request.POST, user=request.user, now=now)
    if made := form.done(lambda: api_keys.make_key(**form.cleaned_data, by=request.user, now=now)):
        return _profile_page(request, made=made[0], new_key=made[1])
    return _profile_page(request, form)


@require_POST
def revoke_key(request: PageRequest, key_id: str) -> HttpResponse:
    key = api_keys.revoke_key(key_id, by=request.user, now=timezone.now())
    notices.success(request, _("The key “%(name)s” has been revoked.") % {"name": key.name})
    return redirect(reverse("workspaces:profile") + "#api-keys")


@require_POST
def memory_default(request: PageRequest) -> HttpResponse:
    """Store whether automatic memory is on by default, from the question on the first page or the profile."""
    workspaces.set_memory_default(request.user, request.POST.get("memory") == "on")
    if request.htmx and request.POST.get("page") != "profile":
        response = HttpResponse(status=204)
        response["HX-Trigger"] = "memory:answered"  # chip, welcome and question all follow the answer
        return response
    notices.success(request, _("Saved."))
    return redirect("workspaces:profile")


@require_GET
async def events(request: PageRequest, ws_id: str) -> EventStream:
    """Stream the events of a workspace as server-sent events, for as long as the person is a member."""
    user = cast(User, await request.auser())
    workspace = await sync_to_async(get_workspace)(user, ws_id)
    await sync_to_async(release_connection)()
    session_key = request.session.session_key or ""
    return EventStream(_feed(workspace, user, session_key), place=Place(user))


async def _feed(workspace: Workspace, user: User, session_key: str) -> AsyncGenerator[str, None]:
    yield "retry: 3000\n: open\n\n"
    channels = (f"workspace:{workspace.public_id}", f"user:{user.public_id}")
    async for event in bus.subscribe(*channels, heartbeat=HEARTBEAT):
        if not await sync_to_async(_may_still_see)(
            workspace.pk, user.pk, session_key, has_news=event is not None
        ):
            yield "event: closed\ndata: {}\n\n"
            return
        yield _sse(event)


def _sse(event: bus.Event | None) -> str:
    return ": still here\n\n" if event is None else f"event: {event.name}\ndata: {json.dumps(event.data)}\n\n"


def _may_still_see(workspace_pk: int, user_pk: int, session_key: str, *, has_news: bool) -> bool:
    """Return whether the person is still a member with an open session. Checked at every event.

    ``has_news``: an event is about to be sent. The person's next reads then use the primary, because a replica may not
    have the change yet.
    """
    from django.contrib.sessions.models import Session

    try:
        member = Membership.objects.filter(workspace=workspace_pk, user=user_pk, user__is_active=True)
        if has_news:
            pin_to_primary(user_pk)
        return member.exists() and Session.objects.filter(session_key=session_key).exists()
    finally:
        release_connection()


@require_POST
def create(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    form = InvitationForm(request.POST)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    made = form.done(lambda: invitations.create_invitation(workspace, **form.cleaned_data, **who))
    if made is None:
        return settings_page(request, workspace, invitation_form=form)
    if made.email:
        invitations.send_by_mail(made, link=invitation_link(request, made))
        notices.success(request, _("The invitation is on its way to %s.") % made.email)
    else:
        notices.success(request, _("The link is ready: copy it and pass it on."))
    return redirect(reverse("workspaces:settings", args=[ws_id]) + "#invitations")


@require_POST
def revoke(request: PageRequest, ws_id: str, invitation_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    invitations.revoke_invitation(workspace, invitation_id, by=request.user, now=timezone.now())
    notices.success(request, _("The invitation is revoked. Anyone who has joined stays a member."))
    return redirect(reverse("workspaces:settings", args=[ws_id]) + "#invitations")


@login_not_required
@require_safe
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation's sender, workspace and role. GET changes nothing, because mail scanners open links too."""
    try:
        found = invitations.read_link(token, by=request.user.pk, now=timezone.now())
    except (Ended, NotFound) as error:
        return render(request, "workspaces/invitation_ended.html", {"error": error}, status=error.status)
    mine = Membership.objects.filter(workspace=found.workspace, user=request.user.pk)
    if mine.exists():
        return redirect("chat:workspace", found.workspace.public_id)
    context = {"invitation": found, "token": token, "signup_is_open": conf.SIGNUP_OPEN}
    return render(request, "workspaces/invitation.html", context)


@require_http_methods(["GET", "POST"])
def accept(request: PageRequest, token: str) -> HttpResponse:
    """Accept an invitation. GET redirects to its page, because it follows a sign-in."""
    if request.method == "GET":
        return redirect("workspaces:invitation", token)
    try:
        made = invitations.accept(token, by=request.user, now=timezone.now())
    except (Ended, NotFound) as error:
        return render(request, "workspaces/invitation_ended.html", {"error": error}, status=error.status)
    notices.success(
        request, _("You are now a member of “%(name)s”.") % {"name": isolated(made.workspace.name)}
    )
    return redirect("chat:workspace", made.workspace.public_id)


@require_POST
def answer(request: PageRequest, invitation_id: str) -> HttpResponse:
    """Accept or decline an invitation to oneself, or hide it until the next sign-in ("Not now")."""
    which: dict[str, Any] = {"by": request.user, "now": timezone.now(), "public_id": invitation_id}
    said = request.POST.get("answer")
    if said == "accept":
        made = invitations.accept_invited(**which)
        notices.success(
            request, _("You are now a member of “%(name)s”.") % {"name": isolated(made.workspace.name)}
        )
        return redirect("chat:workspace", made.workspace.public_id)
    if said == "decline":
        invitations.close_user_invitation(**which)
        notices.success(request, _("You declined the invitation."))
        return redirect("workspaces:list")
    if (
        not invitations.invitations_of(request.user, now=which["now"])
        .filter(public_id=invitation_id)
        .exists()
    ):
        raise NotFound(_("There is no such invitation."))
    later = [*request.session.get("invitations_later", []), invitation_id]
    request.session["invitations_later"] = later[-50:]
    return redirect("chat:home")
