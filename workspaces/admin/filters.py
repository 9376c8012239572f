"""Filters of the admin that need no query to display: fixed choices, or a search box instead of thousands of
choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AutocompleteSelect
from django.db import models
from django.http import HttpRequest
from django.utils.functional import Promise


class ChoiceFilter(admin.SimpleListFilter):
    """A filter with fixed choices (``offered``) and a default. No query.

    ``title`` and ``column`` default to the parameter's name. ``rules`` holds conditions other than equality with the
    column.
    """

    parameter_name: str
    column: str = ""
    default: str = ""
    offered: Sequence[tuple[str, str | Promise]]
    rules: ClassVar[Mapping[str, models.Q]] = {}

    def __init_subclass__(cls) -> None:
        cls.title = cls.__dict__.get("title", cls.parameter_name)

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, Any]]:
        return self.offered

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        chosen = self.chosen()
        if chosen in self.rules:
            return queryset.filter(self.rules[chosen])
        return queryset.filter(**{self.column or self.parameter_name: chosen}) if chosen else queryset

    def chosen(self) -> str:
        value = self.value()
        return value if value in dict(self.lookup_choices) else self.default

    def choices(self, changelist: ChangeList) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        for value, title in self.lookup_choices:
            # None removes the parameter from the URL, because the default needs none.
            parameters: dict[str, Any] = {self.parameter_name: None if value == self.default else value}
            yield {
                "selected": self.chosen() == value,
                "query_string": changelist.get_query_string(parameters),
                "display": title,
            }


class NamedAutocomplete(AutocompleteSelect):
    """A search box with a placeholder and a name for screen readers."""

    def build_attrs(self, base_attrs: dict[str, Any], extra_attrs: dict[str, Any] | None = None) -> Any:
        attrs = super().build_attrs(base_attrs, extra_attrs)
        return attrs | {"data-placeholder": base_attrs.get("data-placeholder", "")}


class AutocompleteFilter(admin.ListFilter):
    """A search box that filters by the foreign key ``parameter_name``, which may have thousands of rows."""

    template = "admin/filter_autocomplete.html"
    parameter_name: str

    def __init_subclass__(cls) -> None:
        cls.title = cls.parameter_name

    def __init__(
        self,
        request: HttpRequest,
        params: dict[str, Any],
        model: type[models.Model],
        model_admin: admin.ModelAdmin,
    ) -> None:
        super().__init__(request, params, model, model_admin)
        self.model, self.site = model, model_admin.admin_site
        given = params.pop(self.parameter_name, [""])
        self.value = str(given[-1] if isinstance(given, list) else given)
        if self.value and not (self.value.isascii() and self.value.isdigit() and len(self.value) < 18):
            raise IncorrectLookupParameters(f"{self.parameter_name} must be a number")
        other = self.site.get_model_admin(self._field(model).related_model)
        self.may_search = other.has_view_permission(request)
        self.may_choose = other.get_queryset(request)  # the chosen row's name may be private

    @classmethod
    def _field(cls, model: type[models.Model]) -> Any:
        return model._meta.get_field(cls.parameter_name)

    @classmethod
    def widget_of(cls, model: type[models.Model], site: admin.AdminSite) -> AutocompleteSelect:
        field = cls._field(model)
        rows = field.related_model._default_manager.all()
        attrs = {"aria-label": str(cls.title), "data-width": "100%", "data-placeholder": f"Any {cls.title}"}
        widget = NamedAutocomplete(field, site, attrs=attrs)
        forms.ModelChoiceField(rows, required=False, widget=widget)  # gives the widget its choices
        return widget

    def has_output(self) -> bool:
        return self.may_search or bool(self.value)

    def expected_parameters(self) -> list[str | None]:
        return [self.parameter_name]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        field = self._field(self.model)
        return queryset.filter(**{field.attname: int(self.value)}) if self.value else queryset

    def choices(self, changelist: ChangeList) -> Iterator[dict[str, Any]]:
        select = forms.ModelChoiceField(
            self.may_choose,
            required=False,
            widget=self.widget_of(self.model, self.site),
        )
        kept = changelist.get_filters_params() | {
            name: [value] for name, value in changelist.params.items() if name in {"q", "o"}
        }
        kept.pop(self.parameter_name, None)
        yield {
            "selected": not self.value,
            "query_string": changelist.get_query_string({}, [self.parameter_name]),
            "select": select.widget.render(
                self.parameter_name, self.value, {"id": f"by-{self.parameter_name}"}
            ),
            "kept": [(name, value) for name, values in kept.items() for value in values],
        }


class WorkspaceFilter(AutocompleteFilter):
    parameter_name = "workspace"
