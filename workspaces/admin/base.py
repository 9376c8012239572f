"""Base classes of the admin pages, whose lists cost the same at a hundred and at a hundred thousand rows.

Django's admin counts twice per list, selects every column, and offers all related rows in a filter. These classes count
up to a limit and estimate above it, select only the displayed columns, and use a search box to filter by a large table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ClassVar, cast

from allauth.account.decorators import secure_admin_login
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.admin.options import ShowFacets, get_content_type_for_model
from django.contrib.admin.views.main import ChangeList
from django.core import signing
from django.core.paginator import Paginator
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.text import capfirst, slugify

from memoryhub.database.queries import count_or_estimate
from memoryhub.errors import DomainError, SecretRefused
from memoryhub.ids import PATTERN
from workspaces import audit
from workspaces.admin.filters import AutocompleteFilter
from workspaces.models import Role, User, Workspace

__all__ = [
    "AT_ONCE",
    "EXCERPT",
    "BoundedPaginator",
    "LeanAdmin",
    "ReadOnlyAdmin",
    "ReadOnlyInline",
    "action",
    "counted",
    "offer_undo",
    "one_by_one",
    "refused",
    "rows_by_id",
    "with_rest",
]
EXCERPT = 120

admin.site.site_header = "MemoryHub"
admin.site.site_title = "MemoryHub admin"
admin.site.index_title = "Overview"
admin.site.enable_nav_sidebar = False  # lists need the width; the index page has every link
# One way in: the sign-in page with its limit on guesses. A signed-in user who is not staff gets 403.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]


ADMIN_VERBS = {
    ADDITION: audit.Verb.ADMIN_ADDED,
    CHANGE: audit.Verb.ADMIN_CHANGED,
    DELETION: audit.Verb.ADMIN_DELETED,
}


class BoundedPaginator(Paginator):
    """A paginator that counts exactly up to a limit, and uses the planner's estimate above it."""

    is_estimate = False

    @cached_property
    def count(self) -> int:
        number, self.is_estimate = count_or_estimate(cast("models.QuerySet[Any]", self.object_list))
        return number


class LeanChangeList(ChangeList):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # What stands here. Django's "Select … to change" is not so: most lists are to look at.
        self.title = str(capfirst(self.opts.verbose_name_plural or ""))

    def get_results(self, request: HttpRequest) -> None:
        # Only the displayed columns. Actions build their own queryset with complete rows.
        self.queryset = cast("LeanAdmin", self.model_admin).for_list(self.queryset)
        super().get_results(request)


class LeanAdmin(admin.ModelAdmin):
    """Base of the admin's lists."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 200
    many = "rows"  # plural name in the message after an action
    ids: ClassVar[dict[str, str]] = {}  # for the search box: the column of a public id by the id's prefix

    def for_list(self, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Return the rows without the columns that the list does not show."""
        return rows

    def named(self, row: Any) -> str:
        """Return a row's name for the confirmation page of an action."""
        return str(row)

    def get_search_fields(self, request: HttpRequest) -> Any:
        return self.search_fields or list(self.ids.values())

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[models.QuerySet[Any], bool]:
        if not self.ids:
            return super().get_search_results(request, queryset, search_term)
        return self.found(queryset, search_term.strip()), False

    def found(self, rows: models.QuerySet[Any], text: str) -> models.QuerySet[Any]:
        """Search a list by public id."""
        return rows_by_id(rows, text, self.ids)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LeanChangeList

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Allow only the lookups of the list's filters.

        A lookup such as ``startswith`` on a hash could reveal it letter by letter.
        """
        return lookup in {
            f"{each}__exact" if isinstance(each, str) else getattr(each, "parameter_name", None)
            for each in self.list_filter
        }

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Remove Django's hard delete: it would load and delete everything that refers to a row."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return cast("dict[str, Any]", actions)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Save through the domain. If it refuses, render the form again with the domain's errors."""
        try:
            return self.save_or_show(request, object_id, form_url, extra_context)
        except DomainError as refusal:
            request.refusal = refusal  # type: ignore[attr-defined]
            return self.save_or_show(request, object_id, form_url, extra_context)

    def save_or_show(self, *args: Any) -> Any:
        return super().changeform_view(*args)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        refusal = getattr(request, "refusal", None)
        return refused(form, refusal) if refusal else form

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]
        self.note(request, [obj], ADDITION, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]
        self.note(request, [obj], CHANGE, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:  # type: ignore[override]
        self.note(request, queryset, DELETION, "")

    def note(self, request: HttpRequest, objects: Iterable[Any], flag: int, message: Any) -> None:
        """Record the action in the admin's log and the audit log by public id, because copied text would outlive the
        row.
        """
        objects = list(objects)
        content_type = get_content_type_for_model(self.model)
        text = message if isinstance(message, str) else json.dumps(message)
        self._audit(cast("User", request.user), objects, flag, message)
        LogEntry.objects.bulk_create(
            LogEntry(
                user_id=cast("int", request.user.pk),
                content_type=content_type,
                object_id=str(each.pk),
                object_repr=getattr(each, "public_id", "") or f"{self.opts.verbose_name} {each.pk}",
                action_flag=flag,
                change_message=text,
            )
            for each in objects
        )

    def _audit(self, by: User, objects: list[Any], flag: int, message: Any) -> None:
        """Record one audit entry for all rows. The domain records single rows where that matters."""
        ids = [getattr(each, "public_id", "") or str(each.pk) for each in objects]
        alone = ids[0] if len(ids) == 1 and PATTERN.fullmatch(ids[0]) else ""
        details: dict[str, audit.Word | list[audit.Word]] = {"kind": _word(str(self.opts.verbose_name))}
        if not alone:
            details |= {"count": len(ids), "ids": list(ids[: audit.MOST_WORDS])}
        if isinstance(message, str) and message:
            details["what"] = _word(message)
        elif message and (fields := _changed(message)):
            details["fields"] = list(fields)
        verb = audit.Verb.ADMIN_ACTION if isinstance(message, str) and message else ADMIN_VERBS[flag]
        workspace = objects[0] if len(objects) == 1 and isinstance(objects[0], Workspace) else None
        audit.record(verb, by=by, workspace=workspace, target=alone, details=details)

    @property
    def media(self) -> forms.Media:
        media = super().media
        for each in self.list_filter:
            if isinstance(each, type) and issubclass(each, AutocompleteFilter):
                media += each.widget_of(self.model, self.admin_site).media
        return media


def _changed(message: list[dict[str, Any]]) -> list[str]:
    """Return the field names in Django's change message, as words."""
    parts = [part.get("changed", {}) for part in message]
    return [_word(name) for part in parts for name in part.get("fields", [])][: audit.MOST_WORDS]


def _word(text: str) -> str:
    """Return a word such as "staff_status" for "Staff status"."""
    return slugify(text).replace("-", "_")[:60]


def refused(form: type[forms.ModelForm], refusal: DomainError) -> type[forms.ModelForm]:
    """Return the form class with the domain's errors, at the fields that they name."""

    class Refused(form):  # type: ignore[misc, valid-type]
        def clean(self) -> Any:
            cleaned = super().clean()
            for name, text in refusal.fields.items():
                sentence = text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
                self.add_error(name if name in self.fields else None, sentence)
            if not refusal.fields or isinstance(refusal, SecretRefused):
                self.add_error(None, refusal.message)
            return cleaned

    return Refused


class ReadOnlyAdmin(LeanAdmin):
    """Read-only admin of records that the system writes. Actions may require the change permission."""

    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    sortable_by: ClassVar[tuple[str, ...]] = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


class ReadOnlyInline(admin.TabularInline):
    extra = 0
    can_delete = False
    show_change_link = False

    def has_add_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


def rows_by_id(rows: models.QuerySet[Any], text: str, fields: dict[str, str]) -> models.QuerySet[Any]:
    """Return the row with this public id, or none for other text. ``fields`` maps an id's prefix to its column."""
    if not text:
        return rows
    field = fields.get(text.split("_")[0]) if PATTERN.fullmatch(text) else None
    return rows.filter(**{field: text}) if field else rows.none()


# Actions of the admin's lists: each asks first on a page that says what will happen, and offers to undo it.
#
# The form contains the keys of the displayed rows, signed, so that the action applies to these rows even if the list
# changed in between.

AT_ONCE = 1000  # limit of rows per action, because the domain is called for each row
NAMED = 10  # rows that the confirmation page names
ANSWER_WITHIN = 3600  # seconds
UNDO = "admin_undo"  # session key of the last action's undo

Action = Callable[[Any, HttpRequest, "models.QuerySet[Any]"], Iterable[tuple[str, int]]]


def action(label: str, permission: str, *, asks: str, danger: bool = False) -> Callable[[Action], Any]:
    """Return a decorator for an admin action, a generator of (message, level) pairs.

    The action asks for confirmation, refuses more than ``AT_ONCE`` rows, and shows the domain's errors. ``permission``:
    view, change or delete, required for the action. ``asks``: text of the confirmation page about the consequences.
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
    """Add an undo button to the message of an action. It runs ``action`` on the rows with these keys."""
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
    """Call ``act`` for each row.

    Return the keys of successful rows, and messages about refused ones, which do not stop others.
    """
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
    """Return a sentence with a second count, such as "3 memories forgotten, 1 was already." for ``what="already"``."""
    return f"{sentence}, {counted(number, 'was', 'were')} {what}." if number else f"{sentence}."


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun, such as "1 memory" or "3 memories"."""
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
    model_admin.note(request, touched, CHANGE, f"Action: {label}")  # also for an action that failed halfway
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
    """Return the number of rows by workspace, largest first."""
    if not any(field.name == "workspace" for field in model_admin.model._meta.fields):
        return []
    return Counter(rows.order_by().values_list("workspace__name", flat=True)).most_common()


def _salt(model_admin: LeanAdmin, request: HttpRequest, action: str) -> str:
    """Return a signing salt that ties a confirmation to one action, list and person."""
    return f"admin {model_admin.opts.label} {action} {request.user.pk}"


def _next(request: HttpRequest) -> str:
    asked = request.POST.get("next", "")
    return asked if url_has_allowed_host_and_scheme(asked, None) and asked.startswith("/admin/") else ""


def _back(request: HttpRequest) -> HttpResponse | None:
    """Redirect to the page where the action began, or return None for the list."""
    return HttpResponseRedirect(_next(request)) if _next(request) else None


TOLD = ("They are told by mail, if they gave an address.", messages.INFO)
NOT_TOLD = ("No mail is set up here (MEMORYHUB_SMTP_URL): tell them yourself.", messages.WARNING)


def is_superuser(request: HttpRequest) -> bool:
    return cast(User, request.user).is_superuser


class ChangedBySuperusers(LeanAdmin):
    """Admin mixin: Django's permissions allow viewing, and only superusers may change."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_superuser(request) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_superuser(request) and super().has_delete_permission(request, obj)


# The owner in whose name staff act.


def acting_owner(workspace: Workspace, request: HttpRequest) -> User:
    """Return the owner in whose name staff act in the domain, because staff need not be members.

    The audit log and the admin's log record the staff member.
    """
    owners = User.objects.filter(memberships__workspace=workspace, memberships__role=Role.OWNER)
    acting = cast(User, request.user)
    return owners.filter(pk=acting.pk).first() or owners.first() or acting
