"""Base classes of the admin pages: lists of any length, saving by services, and actions with a confirmation page."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, ClassVar, cast

from allauth.account.decorators import secure_admin_login
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.admin.options import ShowFacets, get_content_type_for_model
from django.core.paginator import Paginator
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.functional import Promise, cached_property
from django.utils.text import capfirst, slugify

from memoryhub.database.queries import count_or_estimate
from memoryhub.errors import DomainError, SecretRefused
from memoryhub.ids import PATTERN
from workspaces import audit
from workspaces.models import Role, User, Workspace

admin.site.site_header = "MemoryHub"
admin.site.site_title = "MemoryHub admin"
admin.site.index_title = "Overview"
admin.site.enable_nav_sidebar = False  # lists need the width; the index page has every link
admin.site.disable_action("delete_selected")  # would load and delete everything that refers to a row
# One way in: the sign-in page with its limit on guesses. A signed-in user who is not staff gets 403.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

ADMIN_VERBS = {
    ADDITION: audit.Verb.ADMIN_ADDED,
    CHANGE: audit.Verb.ADMIN_CHANGED,
    DELETION: audit.Verb.ADMIN_DELETED,
}
Messages = Iterator[tuple[str, int]]  # with their levels
EXCERPT = 120  # characters of a text in a list
LOOKUPS = {"", "exact", "gte", "lt", "isempty", "isnull", "year", "month", "day"}  # of Django's filters


class BoundedPaginator(Paginator):
    """A paginator that counts exactly up to a limit, and uses the planner's estimate above it."""

    is_estimate = False

    @cached_property
    def count(self) -> int:
        number, self.is_estimate = count_or_estimate(cast("models.QuerySet[Any]", self.object_list))
        return number


class ConditionFilter(admin.SimpleListFilter):
    """A list filter with fixed choices, each a condition. Listing the choices needs no query."""

    conditions: ClassVar[dict[str, tuple[str | Promise, models.Q]]]  # by value: label and condition

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(value, label) for value, (label, _) in self.conditions.items()]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        chosen = self.conditions.get(self.value() or "")
        return queryset.filter(chosen[1]) if chosen else queryset


class LeanAdmin(admin.ModelAdmin):
    """Base of admin pages whose lists take the same time with a hundred and with a hundred thousand rows."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 200
    ids: ClassVar[dict[str, str]] = {}  # for the search box: the column of a public id by the id's prefix
    links: ClassVar[tuple[str, ...]] = ("workspace", "user")  # columns by which other pages link to the list
    sortable_by: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.ids and cls.search_help_text is None:
            cls.search_help_text = f"An id ({', '.join(f'{prefix}_' for prefix in cls.ids)})."

    def describe(self, row: Any, action: str) -> str:
        """Return a row's name for the confirmation page of an action."""
        return str(row)

    def each(
        self,
        request: HttpRequest,
        rows: models.QuerySet[Any],
        wanted: models.QuerySet[Any],
        act: Callable[..., Any],
        done: str,
    ) -> Messages:
        """Call ``act`` for each row of ``wanted``, and yield messages about the numbers.

        ``rows``: all selected rows; those that are not in ``wanted`` are reported as left unchanged. ``done``: what
        happened to the others, such as "deleted". A row for which ``act`` raises a DomainError is reported as refused.
        """
        by, now, number, refused = cast("User", request.user), timezone.now(), rows.count(), []
        targets = list(wanted)
        for row in targets:
            try:
                act(row, by=by, now=now)
            except DomainError as error:
                refused.append(f"{getattr(row, 'public_id', row.pk)}: {error.message}")
        one, many = str(self.opts.verbose_name), str(self.opts.verbose_name_plural)
        left = f", {number - len(targets)} left as before" if number > len(targets) else ""
        succeeded = len(targets) - len(refused)
        level = messages.SUCCESS if succeeded else messages.INFO
        yield f"{counted(succeeded, one, many)} {done}{left}.", level
        if refused:
            more = " …" if len(refused) > 5 else ""
            yield f"{len(refused)} refused. {' '.join(refused[:5])}{more}", messages.WARNING

    def get_search_fields(self, request: HttpRequest) -> Any:
        return self.search_fields or list(self.ids.values())

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[models.QuerySet[Any], bool]:
        """Search by an exact public id if the class sets ``ids``, which uses an index. Else search as Django does.

        Django's search by several columns would join all of their tables.
        """
        if not self.ids:
            return super().get_search_results(request, queryset, search_term)
        return self.search(queryset, search_term.strip()), False

    def search(self, rows: models.QuerySet[Any], text: str) -> models.QuerySet[Any]:
        return rows_by_id(rows, text, self.ids)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Allow only the lookups that the list's filters and links use.

        With a lookup such as ``startswith``, staff could find out a hash letter by letter.
        """
        filters: Any = (each[0] if isinstance(each, tuple) else each for each in self.list_filter)
        names = {each if isinstance(each, str) else each.parameter_name for each in filters}
        name, _, how = lookup.partition("__")
        return name in names.union(self.links, [self.date_hierarchy]) and how in LOOKUPS

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Show the list with the model's name as its title. Django's title says that rows can be changed."""
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Save the form. If a service raises a DomainError, render the form again with its messages."""
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
        return form_with_errors(form, refusal) if refusal else form

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]
        self.note(request, [obj], ADDITION, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]
        self.note(request, [obj], CHANGE, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:  # type: ignore[override]
        self.note(request, queryset, DELETION, "")

    def note(self, request: HttpRequest, objects: Iterable[Any], flag: int, message: Any) -> None:
        """Record the action in the admin's log and the audit log.

        Rows are named by public id. Their text is not copied, because it would outlive them.
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
        """Record one audit entry for all ``objects``. Services record entries for single rows where that matters."""
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


def _changed(message: list[dict[str, Any]]) -> list[str]:
    """Return the changed fields that Django's change message names, each as a single word such as "staff_status"."""
    parts = [part.get("changed", {}) for part in message]
    return [_word(name) for part in parts for name in part.get("fields", [])][: audit.MOST_WORDS]


def _word(text: str) -> str:
    """Return a text as a single word, such as "staff_status" for "Staff status"."""
    return slugify(text).replace("-", "_")[:60]


def form_with_errors(form: type[forms.ModelForm], refusal: DomainError) -> type[forms.ModelForm]:
    """Return a form class that shows the errors of ``refusal`` at the fields that they name."""

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
    """Read-only admin of records that the system writes.

    Its forms cannot be saved. Admin actions stay available, also those that require the change permission.
    """

    ordering: ClassVar[tuple[str, ...]] = ("-id",)

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
    """Return the rows whose public id is ``text``: all rows if it is empty, none if it is not an id of a known kind.

    ``fields`` maps the prefix of an id, such as "mem", to the column that contains such ids.
    """
    if not text:
        return rows
    field = fields.get(text.split("_")[0]) if PATTERN.fullmatch(text) else None
    return rows.filter(**{field: text}) if field else rows.none()


# Actions of the admin's lists. Each asks first, on one page that says what will happen.

AT_ONCE = 500  # limit of rows per action, because the domain is called for each row
NAMED = 10  # rows that the confirmation page names
Action = Callable[[Any, HttpRequest, "models.QuerySet[Any]"], Messages]


def action(label: str, permission: str, *, asks: str, danger: bool = False) -> Callable[[Action], Any]:
    """Return a decorator for an admin action. The decorated method yields (message, level) pairs.

    The action first shows a confirmation page, refuses more than ``AT_ONCE`` rows, and shows a DomainError as a
    message. ``permission``: view, change or delete, required for the action. ``asks``: text about the consequences on
    the confirmation page. ``danger``: the action cannot be undone.
    """

    def decorate(function: Action) -> Any:
        @wraps(function)
        def run(self: LeanAdmin, request: HttpRequest, queryset: models.QuerySet[Any]) -> HttpResponse | None:
            keys = list(queryset.order_by().values_list("pk", flat=True)[: AT_ONCE + 1])
            if not 0 < len(keys) <= AT_ONCE:
                text = f"Choose 1 to {AT_ONCE} {self.opts.verbose_name_plural}: nothing was done."
                self.message_user(request, text, messages.ERROR)
                return None
            # Without the list's filters: what the action changes may leave the filtered list.
            rows = self.get_queryset(request).filter(pk__in=keys).order_by("pk")
            if "confirmed" in request.POST:
                _run(self, request, rows, function, label)
                return None
            one, many = str(self.opts.verbose_name), str(self.opts.verbose_name_plural)
            context = {
                **self.admin_site.each_context(request),
                "title": f"{label}: {counted(len(keys), one, many)}?",
                "opts": self.opts,
                "asks": asks,
                "danger": danger,
                "rows": [self.describe(row, function.__name__) for row in rows[:NAMED]],
                "more": max(0, len(keys) - NAMED),
                "keys": keys,
                "action": function.__name__,
                "label": label,
                "checkbox": ACTION_CHECKBOX_NAME,
                "back": request.get_full_path(),
            }
            return TemplateResponse(request, "admin/action_confirmation.html", context)

        return admin.action(run, description=label, permissions=[permission])

    return decorate


def _run(
    model_admin: LeanAdmin, request: HttpRequest, rows: models.QuerySet[Any], function: Action, label: str
) -> None:
    touched = list(rows)
    staff = cast("User", request.user)
    try:
        with audit.really_by(staff):  # the domain may get a chat's creator, or an owner
            for sentence, level in function(model_admin, request, rows):
                model_admin.message_user(request, sentence, level)
    except DomainError as error:
        model_admin.message_user(request, error.message, messages.ERROR)
    model_admin.note(request, touched, CHANGE, f"Action: {label}")  # also for an action that failed halfway


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun, such as "1 memory" or "3 memories"."""
    return f"{number:,} {one if number == 1 else many}"


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


def acting_owner(workspace: Workspace, request: HttpRequest) -> User:
    """Return the owner in whose name staff act, because services require a member's role and staff need not be members.

    The audit log and the admin's log record the staff member.
    """
    owners = User.objects.filter(memberships__workspace=workspace, memberships__role=Role.OWNER)
    acting = cast(User, request.user)
    return owners.filter(pk=acting.pk).first() or owners.first() or acting
