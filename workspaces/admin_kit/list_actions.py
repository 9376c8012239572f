"""Actions of the admin's lists: each asks first on a page that says what will happen, and offers to undo it.

The shown rows travel to the answer as signed keys, so that what is done is what was shown, even if the list
changed in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE
from django.core import signing
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from memoryhub.errors import DomainError
from workspaces import audit

if TYPE_CHECKING:
    from workspaces.admin_kit.base import LeanAdmin
    from workspaces.models import User

AT_ONCE = 1000  # the most rows one click of an action may touch: each goes through the domain on its own
NAMED = 10  # rows that the page which asks shows
ANSWER_WITHIN = 3600  # seconds
UNDO = "admin_undo"  # of the session: what the last action's message offers

Action = Callable[[Any, HttpRequest, "models.QuerySet[Any]"], Iterable[tuple[str, int]]]


def action(label: str, permission: str, *, asks: str, danger: bool = False) -> Callable[[Action], Any]:
    """An admin action that yields (sentence, level) pairs, refuses a huge selection and words a refusal.

    ``permission``: view, change or delete; who lacks it is not offered the action, and cannot run it. ``asks`` tells
    on the page before what will come of it.
    """

    def decorate(function: Action) -> Any:
        name = function.__name__

        @wraps(function)
        def run(self: LeanAdmin, request: HttpRequest, queryset: models.QuerySet[Any]) -> HttpResponse | None:
            if "confirmed" not in request.POST:
                return _ask(self, request, queryset, name, label, asks, danger)
            try:
                keys = signing.loads(
                    request.POST["confirmed"], salt=_salt(self, request, name), max_age=ANSWER_WITHIN
                )
            except signing.BadSignature:
                self.message_user(request, "That page was too old: nothing was done.", messages.ERROR)
                return _back(request)
            rows = self.get_queryset(request).filter(pk__in=keys).order_by("pk")
            _run(self, request, rows, function, label)
            return _back(request)

        return admin.action(run, description=label, permissions=[permission])

    return decorate


def offer_undo(model_admin: LeanAdmin, request: HttpRequest, action: str, keys: list[Any]) -> None:
    """Have the message about what was just done carry a button that runs this action on those rows."""
    if not keys or action not in model_admin.get_actions(request):
        return
    opts = model_admin.opts
    request.session[UNDO] = {
        "url": reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist"),
        "action": action,
        "confirmed": signing.dumps(keys, salt=_salt(model_admin, request, action), compress=True),
        "key": keys[0],
    }
    request.undo_offered = True  # type: ignore[attr-defined]


def one_by_one(
    rows: Iterable[Any], act: Callable[..., Any], request: HttpRequest
) -> tuple[list[Any], list[tuple[str, int]]]:
    """Make one domain call a row; return the keys of those done, and messages of refused ones, which stop no others."""
    done, refused = [], []
    for row in rows:
        try:
            act(row, by=cast("User", request.user), now=timezone.now())
            done.append(row.pk)
        except DomainError as error:
            refused.append(f"{row.public_id}: {error.message}")
    if not refused:
        return done, []
    more = f" And {len(refused) - 5} more." if len(refused) > 5 else ""
    said = f"{counted(len(refused), 'was', 'were')} refused. {' '.join(refused[:5])}{more}"
    return done, [(said, messages.WARNING)]


def with_rest(sentence: str, number: int, what: str) -> str:
    """ "3 memories forgotten, 1 was already." """
    return f"{sentence}, {counted(number, 'was', 'were')} {what}." if number else f"{sentence}."


def counted(number: int, one: str, many: str) -> str:
    """ "1 memory", "3 memories"."""
    return f"{number:,} {one if number == 1 else many}"


def _run(
    model_admin: LeanAdmin, request: HttpRequest, rows: models.QuerySet[Any], function: Action, label: str
) -> None:
    touched = list(rows)
    said: list[tuple[str, int]] = []
    staff = cast("User", request.user)
    try:
        with audit.really_by(staff):  # the domain may get a chat's creator, or an owner
            said += function(model_admin, request, rows)
    except DomainError as error:
        said.append((error.message, messages.ERROR))
    model_admin.note(request, touched, CHANGE, f"Action: {label}")  # of one that was refused half-way, too
    for number, (sentence, level) in enumerate(said):
        undo = number == 0 and getattr(request, "undo_offered", False)
        model_admin.message_user(request, sentence, level, extra_tags="undo" if undo else "")


def _ask(
    model_admin: LeanAdmin,
    request: HttpRequest,
    queryset: models.QuerySet[Any],
    name: str,
    label: str,
    asks: str,
    danger: bool,
) -> HttpResponse | None:
    keys = list(queryset.order_by().values_list("pk", flat=True)[: AT_ONCE + 1])
    if len(keys) > AT_ONCE:
        text = f"More than {AT_ONCE:,} {model_admin.many} at once: nothing was done. Narrow the list down."
        model_admin.message_user(request, text, messages.ERROR)
        return None
    if not keys:
        model_admin.message_user(request, f"There are no such {model_admin.many}.", messages.WARNING)
        return _back(request)
    rows = model_admin.get_queryset(request).filter(pk__in=keys)
    one = str(model_admin.opts.verbose_name)
    context = {
        **model_admin.admin_site.each_context(request),
        "title": label.split(" (")[0],
        "opts": model_admin.opts,
        "number": counted(len(keys), one, model_admin.many),
        "asks": asks,
        "danger": danger,
        "rows": [model_admin.named(row) for row in rows.order_by("-pk")[:NAMED]],
        "more": max(0, len(keys) - NAMED),
        "places": _places(model_admin, rows),
        "action": name,
        "label": label.split(" (")[0],
        "checkbox": ACTION_CHECKBOX_NAME,
        "key": keys[0],
        "confirmed": signing.dumps(keys, salt=_salt(model_admin, request, name), compress=True),
        "next": _next(request),
        "back": _next(request) or request.get_full_path(),
    }
    return TemplateResponse(request, "admin/action_confirmation.html", context)


def _places(model_admin: LeanAdmin, rows: models.QuerySet[Any]) -> list[tuple[str, int]]:
    """Count the rows by workspace, the most first."""
    if not any(field.name == "workspace" for field in model_admin.model._meta.fields):
        return []
    return Counter(rows.order_by().values_list("workspace__name", flat=True)).most_common()


def _salt(model_admin: LeanAdmin, request: HttpRequest, action: str) -> str:
    """An answer holds for one action, one list and one person."""
    return f"admin {model_admin.opts.label} {action} {request.user.pk}"


def _next(request: HttpRequest) -> str:
    asked = request.POST.get("next", "")
    return asked if url_has_allowed_host_and_scheme(asked, None) and asked.startswith("/admin/") else ""


def _back(request: HttpRequest) -> HttpResponse | None:
    """To the page the action was begun on; None is Django's way to say the list."""
    return HttpResponseRedirect(_next(request)) if _next(request) else None
