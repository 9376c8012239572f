"""Account pages: sign-in, profile, API keys, deletion, profile picture, sessions and activity."""

import secrets
import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from allauth.account.adapter import get_adapter
from allauth.account.views import login, password_reset, signup
from django.contrib import messages as notices
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memoryhub import mail
from memoryhub.errors import DomainError, Invalid, NotFound
from memoryhub.stored_files import SHUT, require_fitting, too_long
from workspaces import audit
from workspaces.access import default_workspace, get_workspace
from workspaces.accounts import keys as api_keys
from workspaces.accounts import sessions
from workspaces.accounts.account_changes import delete_account, foresee_leaving
from workspaces.accounts.reauthentication import ask_for_password, confirmed, has_two_factor
from workspaces.accounts.sessions import live_sign_ins
from workspaces.actions import workspaces
from workspaces.actions.purging import lines_of
from workspaces.documents.reading.parent_process import CouldNotRead, read_file
from workspaces.documents.reading.pictures import FACE
from workspaces.models import ApiKey, PersonPicture, Role, User
from workspaces.quotas import spend
from workspaces.views import PageRequest, reload_or_redirect
from workspaces.views.forms import DeleteForm, KeyForm


@login_not_required
def sign_in(request: HttpRequest) -> HttpResponseBase:
    """Sign in, or create the first account if there is none yet."""
    is_fresh = not request.user.is_authenticated and not User.objects.exists()
    if is_fresh and get_adapter(request).is_open_for_signup(request):
        request.is_fresh_installation = True  # type: ignore[attr-defined]
        return signup(request)
    return login(request)


@login_not_required
def reset_password(request: HttpRequest) -> HttpResponseBase:
    """Reset a password by mail, or show whom to contact if no mail server is configured."""
    return (
        password_reset(request) if mail.is_set() else render(request, "account/password_reset_no_mail.html")
    )


@require_http_methods(["GET", "POST"])
def delete(request: PageRequest) -> HttpResponse:
    """Show what deleting the account removes (GET), or delete it after its name was typed (POST)."""
    ask_for_password(request)
    user = request.user
    form = DeleteForm(
        request.POST if request.method == "POST" else None, name=user.get_username(), what="account"
    )
    removed = form.done(lambda: delete_account(user))
    if removed is not None:
        request.session.flush()
        request.user = AnonymousUser()  # type: ignore[assignment]  # there is nobody any more
        return render(request, "workspaces/account_deleted.html", {"report": {"lines": lines_of(removed)}})
    others = User.objects.filter(is_active=True).exclude(pk=user.pk)
    is_only_admin = user.is_superuser and others.exists() and not others.filter(is_superuser=True).exists()
    context = {"form": form, "plan": foresee_leaving(user), "is_only_admin": is_only_admin}
    return render(request, "workspaces/delete_account.html", context, status=422 if form.errors else 200)


@csrf_exempt  # checked after the length, because the check reads the whole form
def change(request: PageRequest) -> HttpResponse:
    require_fitting(request, MOST_BYTES)
    return _change(request)


@csrf_protect
@require_POST
def _change(request: PageRequest) -> HttpResponse:
    """Set the person's picture to the uploaded ``file``, or delete it if the form contains ``remove``."""
    file = request.FILES.get("file")
    try:
        if file is not None:
            set_picture(request.user, file.chunks(), now=timezone.now())
        elif "remove" in request.POST:
            remove_picture(request.user)
        else:
            raise Invalid(_("Choose a file first."))
        notices.success(request, _("Saved."))
    except DomainError as error:
        notices.error(request, error.message)
    # Reload the whole page: other parts show the picture as well.
    return reload_or_redirect(request, reverse("workspaces:profile") + "#picture")


@require_GET
def picture(request: PageRequest, user_id: str) -> HttpResponse:
    """Return a picture, which browsers may cache because a new picture has another URL (``?v=``)."""
    response = HttpResponse(picture_of(request.user, user_id), content_type="image/jpeg", headers=SHUT)
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return response


# A person's profile picture is stored in the database, as the pictures of documents are, so it is deleted in one
# transaction with the account, and backups and other hosts include it.

MOST_BYTES = 10_000_000  # of the upload; about 15,000 are stored
SECONDS = 10  # limit of processor time for re-encoding


def set_picture(user: User, content: Iterable[bytes], *, now: datetime) -> None:
    """Re-encode the centre of the picture in another process and store it.

    Raises TooManyRequests, TooLarge above ``MOST_BYTES``, and Invalid if the file is no picture.
    """
    spend("uploads", user, now=now)
    with tempfile.NamedTemporaryFile(prefix="memoryhub-picture-") as file:
        for chunk in content:
            file.write(chunk)
            if file.tell() > MOST_BYTES:
                raise too_long(MOST_BYTES)
        file.flush()
        try:
            drawn = read_file(Path(file.name), FACE, most=SECONDS).picture
        except CouldNotRead:
            drawn = None
    if drawn is None:
        raise Invalid(_("This picture could not be read. Choose a PNG, JPEG, GIF or WebP."))
    with transaction.atomic():
        _set_picture_version(user, secrets.token_hex(8))
        PersonPicture.objects.update_or_create(user=user, defaults={"jpeg": drawn.jpeg})


def remove_picture(user: User) -> None:
    with transaction.atomic():
        _set_picture_version(user, "")
        PersonPicture.objects.filter(user=user).delete()


def picture_of(asker: User, user_id: str) -> bytes:
    """Return a person's picture as JPEG, if ``asker`` shares a workspace with them.

    Raises NotFound if not, or if they have no picture.
    """
    shared = Q(user__memberships__workspace__memberships__user=asker)
    row = PersonPicture.objects.filter(Q(user=asker) | shared, user__public_id=user_id).first()
    if row is None:
        raise NotFound(_("There is no such picture."))
    return bytes(row.jpeg)


def _set_picture_version(user: User, version: str) -> None:
    """Store the version of the picture.

    The row stays locked until the commit, so that concurrent changes run in sequence.
    """
    User.objects.filter(pk=user.pk).update(picture_version=version)
    user.picture_version = version


@require_POST
def end_session(request: PageRequest, session_id: str) -> HttpResponse:
    """End one of one's own sessions. Ending the current session signs out."""
    ended = sessions.end_session(session_id, by=request.user)
    if ended.session_key == request.session.session_key:
        request.session.flush()
        return redirect("account_login")
    notices.success(request, _("That session is signed out."))
    return _to_sessions()


@require_POST
def end_other_sessions(request: PageRequest) -> HttpResponse:
    ended = sessions.end_other_sessions(request.user, keep=request.session.session_key, by=request.user)
    text = ngettext(
        "%(number)s other session was signed out.", "%(number)s other sessions were signed out.", ended
    )
    notices.success(request, text % {"number": ended})
    return _to_sessions()


@require_GET
def activity(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the activity of a workspace to its owners."""
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    page = audit.page_of(workspace, before=request.GET.get("before", ""))
    return render(request, "workspaces/activity.html", {"workspace": workspace, "page": page})


def _to_sessions() -> HttpResponse:
    return redirect(reverse("workspaces:profile") + "#sessions")


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
    if key_and_secret := form.done(lambda: api_keys.make_key(**form.cleaned_data, by=request.user, now=now)):
        return _profile_page(request, made=key_and_secret[0], new_key=key_and_secret[1])
    return _profile_page(request, form)


@require_POST
def revoke_key(request: PageRequest, key_id: str) -> HttpResponse:
    key = api_keys.revoke_key(key_id, by=request.user, now=timezone.now())
    notices.success(request, _("The key “%(name)s” has been revoked.") % {"name": key.name})
    return redirect(reverse("workspaces:profile") + "#api-keys")


@require_POST
def memory_default(request: PageRequest) -> HttpResponse:
    """Store whether automatic memory is on by default, from the question on the first page or the profile."""
    workspaces.set_preference(request.user, "memory_default", request.POST.get("memory") == "on")
    if request.htmx and request.POST.get("page") != "profile":
        response = HttpResponse(status=204)
        response["HX-Trigger"] = "memory:answered"  # chip, welcome and question all follow the answer
        return response
    notices.success(request, _("Saved."))
    return redirect("workspaces:profile")
