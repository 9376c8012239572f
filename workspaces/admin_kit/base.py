"""Base of every admin page: lists that cost the same at a hundred and at a hundred thousand rows.

Django's admin counts twice for each list, selects every column and offers all related rows as choices of
a filter. Here a count stops at a bound and is estimated above it, a list selects what it shows, and a filter
over a long table is a search box.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar, cast

from allauth.account.decorators import secure_admin_login
from django import forms
from django.contrib import admin
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.admin.options import ShowFacets, get_content_type_for_model
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import models
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.text import capfirst, slugify

from memoryhub.database.queries import count_or_estimate
from memoryhub.errors import DomainError, SecretRefused
from memoryhub.ids import PATTERN
from workspaces import audit
from workspaces.admin_kit.filters import AutocompleteFilter
from workspaces.admin_kit.list_actions import AT_ONCE, action, counted, offer_undo, one_by_one, with_rest
from workspaces.models import User, Workspace

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
admin.site.enable_nav_sidebar = False  # a list of memories needs the width; the first page has every link
# One way in: the sign-in page with its limit on guesses. Who is signed in and no member of staff gets 403.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]


ADMIN_VERBS = {
    ADDITION: audit.Verb.ADMIN_ADDED,
    CHANGE: audit.Verb.ADMIN_CHANGED,
    DELETION: audit.Verb.ADMIN_DELETED,
}


class BoundedPaginator(Paginator):
    """Counts exactly up to a bound; above it the number is the planner's estimate and costs no scan."""

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
        # Only what is shown: actions build their own queryset and still get whole rows.
        self.queryset = cast("LeanAdmin", self.model_admin).for_list(self.queryset)
        super().get_results(request)


class LeanAdmin(admin.ModelAdmin):
    """The base of every list here."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 200
    many = "rows"  # what the sentence after an action calls them
    ids: ClassVar[dict[str, str]] = {}  # what the search box takes: by its prefix, the column of a public id

    def for_list(self, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Leave out the columns a list does not show."""
        return rows

    def named(self, row: Any) -> str:
        """Return the name of a row on the page that asks before an action."""
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
        """Return the result of a search of a list with ``ids``."""
        return rows_by_id(rows, text, self.ids)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LeanChangeList

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Exactly what the list's own filters ask: an address that asks how a hash or a secret begins, of the rows
        or across what they refer to, could spell it out.
        """
        return lookup in {
            f"{each}__exact" if isinstance(each, str) else getattr(each, "parameter_name", None)
            for each in self.list_filter
        }

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Without Django's hard delete: it would load and drop everything that hangs on a row."""
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
        """Saves through the domain. What it refuses appears in the form, in a second round."""
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
        """Record the act in the admin's log and the audit log. By public id: a copy of a text would outlive it."""
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
        """Record one event for any number of rows: the domain records each by itself where it matters."""
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
    """The names of fields in Django's message about a change, as words."""
    parts = [part.get("changed", {}) for part in message]
    return [_word(name) for part in parts for name in part.get("fields", [])][: audit.MOST_WORDS]


def _word(text: str) -> str:
    """ "staff_status" of "Staff status"."""
    return slugify(text).replace("-", "_")[:60]


def refused(form: type[forms.ModelForm], refusal: DomainError) -> type[forms.ModelForm]:
    """The form with the domain's refusal as its errors, at the fields it names."""

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
    """Records that the system keeps of itself: to look at, never to type into. Actions may need 'change'."""

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
    """The rows with this public id; ``fields`` says in which column a prefix lies. Else nothing."""
    if not text:
        return rows
    field = fields.get(text.split("_")[0]) if PATTERN.fullmatch(text) else None
    return rows.filter(**{field: text}) if field else rows.none()
