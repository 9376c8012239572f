"""Admin of shared model connections, embedding models and daily usage.

People's own connections are not listed.
"""

from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.views import redirect_to_login
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from memoryhub.llm.errors import EmbedderError
from workspaces.accounts.reauthentication import reauthenticated_recently
from workspaces.actions import model_connections
from workspaces.admin.base import ChangedBySuperusers, Messages, ReadOnlyAdmin, action
from workspaces.connection_tests import try_connection
from workspaces.index import reembedding
from workspaces.models import EmbeddingModel, ModelUse, User
from workspaces.models.language_models import Connection
from workspaces.spending.usage_records import amount

FIELDS = (
    "name",
    "base_url",
    "model",
    "has_tools",
    "can_extract",
    "sees",
    "context_tokens",
    "is_local",
    "is_default",
    *model_connections.PRICES,
)


class ConnectionAdminForm(forms.ModelForm):
    api_key = forms.CharField(
        label="Key",
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Kept encrypted and never shown again. Left empty, the stored one stays.",
    )
    forget_key = forms.BooleanField(
        label="Without a key", required=False, help_text="Takes the stored one away."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is None:
            self.fields["api_key"].help_text = "Kept encrypted and never shown again."

    class Meta:
        model = Connection
        fields = FIELDS
        help_texts = {
            "base_url": "Of any endpoint compatible with the OpenAI API, up to and including /v1. Redirects "
            "are not followed.",
            "model": "Model ID",
        }

    def values(self, *, change: bool) -> dict[str, Any]:
        """Return the values to save.

        For a change they are the changed fields only. The key is among them if one was entered or removed.
        """
        names = [name for name in FIELDS if not change or name in self.changed_data]
        values = {name: self.cleaned_data[name] for name in names}
        key = self.cleaned_data["api_key"]
        if key or self.cleaned_data["forget_key"] or not change:
            values["api_key"] = key
        return values

    def _post_clean(self) -> None:
        """Do nothing, because the service validates and sets the values."""


@admin.register(Connection)
class ConnectionAdmin(ChangedBySuperusers):
    form = ConnectionAdminForm
    list_display = (
        "name",
        "model",
        "host",
        "is_default",
        "is_local",
        "has_tools",
        "can_extract",
        "used_by",
        "with_key",
    )
    list_filter = ("is_default", "is_local")
    ordering = ("name", "id")
    search_fields = ("name__icontains", "model__icontains", "=public_id")
    search_help_text = "A part of the name or of the model's, or the id (conn_)."
    add_fieldsets: Any = (  # a new connection has no key to remove and no dates
        (None, {"fields": ("name", "base_url", "model", "api_key")}),
        (
            "What it can do",
            {"fields": ("has_tools", "can_extract", "sees", "context_tokens", "is_local", "is_default")},
        ),
        (f"What it costs, in {settings.CURRENCY}", {"fields": model_connections.PRICES}),
    )
    fieldsets = (
        (None, {"fields": ("name", "base_url", "model", "api_key", "forget_key")}),
        *add_fieldsets[1:],
        ("About it", {"fields": ("public_id", "with_key", "created_at", "updated_at")}),
    )
    readonly_fields = ("public_id", "with_key", "created_at", "updated_at")
    change_form_template = "admin/workspaces/connection/change_form.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        numbers = {f"number_of_{each}": _count_of(each) for each in ("workspaces", "chats")}
        rows: QuerySet[Any] = super().get_queryset(request).annotate(**numbers)
        return rows.filter(owner=None, deleted_at=None, is_built_in=False)

    def get_fieldsets(self, request: HttpRequest, obj: Connection | None = None) -> Any:
        """Hide the key from staff who may only view, because showing it would decrypt it."""
        if obj and not self.has_change_permission(request, obj):
            first, *rest = self.fieldsets
            names = [name for name in first[1]["fields"] if name not in ("api_key", "forget_key")]
            return [(None, {"fields": names}), *rest]
        return self.fieldsets if obj else self.add_fieldsets

    @admin.display(description="used by")
    def used_by(self, connection: Any) -> str:
        return f"{connection.number_of_workspaces} workspaces, {connection.number_of_chats} chats"

    @admin.display(description="key", boolean=True)
    def with_key(self, connection: Connection) -> bool:
        return connection.has_key

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **more: Any
    ) -> Any:
        """Require re-authentication before a shared connection is changed.

        The values entered before it are dropped, because one may be a key.
        """
        saves = object_id and request.method == "POST" and self.has_change_permission(request)
        if saves and not reauthenticated_recently(request):
            self.message_user(request, "Nothing was saved yet: change it again.", messages.WARNING)
            return redirect_to_login(request.get_full_path(), reverse("account_reauthenticate"))
        return super().changeform_view(request, object_id, *args, **more)

    def save_model(self, request: HttpRequest, obj: Connection, form: Any, change: bool) -> None:
        by, now, values = cast(User, request.user), timezone.now(), form.values(change=change)
        if change:
            saved = model_connections.update_connection(obj, by=by, now=now, **values)
        else:
            saved = model_connections.create_connection(by=by, now=now, shared=True, **values)
        obj.pk, obj.public_id = saved.pk, saved.public_id
        obj.refresh_from_db()

    def delete_model(self, request: HttpRequest, obj: Connection) -> None:
        used = model_connections.delete_connection(obj, by=cast(User, request.user), now=timezone.now())
        if used.sentence():
            self.message_user(request, used.sentence(), messages.WARNING)

    def response_add(self, request: HttpRequest, obj: Connection, *args: Any, **kwargs: Any) -> HttpResponse:
        if "_test" in request.POST:
            return self._tested(request, obj)
        return super().response_add(request, obj, *args, **kwargs)

    def response_change(self, request: HttpRequest, obj: Connection) -> HttpResponse:
        if "_test" in request.POST:
            return self._tested(request, obj)
        return super().response_change(request, obj)

    def _tested(self, request: HttpRequest, obj: Connection) -> HttpResponse:
        """Test a saved connection, and show the form again with the result."""
        report = try_connection(obj, by=cast(User, request.user), now=timezone.now())
        levels = {"works": messages.SUCCESS, "fails": messages.ERROR, "untried": messages.INFO}
        for line in report.lines:
            self.message_user(request, line.text, levels[line.outcome])
        for hint in report.hints:
            self.message_user(request, hint, messages.WARNING)
        if report.first_piece is not None:
            took = f"The first words came after {report.first_piece:.1f} s; the tests took {report.seconds:.1f} s."
            self.message_user(request, took, messages.INFO)
        return redirect("admin:workspaces_connection_change", obj.pk)


def _count_of(users: str) -> Coalesce:
    """Return a subquery that counts the ``users`` of a connection, "workspaces" or "chats".

    A join would count each chat once per workspace.
    """
    rows = Connection.objects.filter(pk=OuterRef("pk")).order_by().values("pk")
    return Coalesce(Subquery(rows.annotate(number=Count(users)).values("number")), 0)


@admin.register(EmbeddingModel)
class EmbeddingModelAdmin(ReadOnlyAdmin):
    ordering = ()
    list_display = ("label", "state", "dimension", "progress", "started_at", "activated_at", "retired_at")
    actions = ("start", "stop")
    fields = (
        "label",
        "name",
        "base_url",
        "dimension",
        "state",
        "progress",
        "error",
        "started_at",
        "progressed_at",
        "activated_at",
        "retired_at",
        "cleaned_at",
        "stopped_at",
    )

    @admin.display(description="progress")
    def progress(self, model: EmbeddingModel) -> str:
        return model.progress or "-"

    @action(
        "Build the configured model's vectors, or go on",
        "change",
        asks="Every memory gets a vector of the configured model in the background. "
        "Recall goes over when all have one.",
    )
    def start(self, request: HttpRequest, rows: QuerySet[Any]) -> Messages:
        try:
            model = reembedding.start()
        except EmbedderError as error:
            yield f"The configured embedding model cannot be asked: {error}", messages.ERROR
            return
        if model is None:
            yield "The configured model is the one that recall compares: nothing to build.", messages.WARNING
        else:
            yield f"{model.label} is being built in the background.", messages.SUCCESS

    @action(
        "Stop building",
        "change",
        asks="Recall stays with the model it compares. What is built so far is kept, and can be gone on with.",
    )
    def stop(self, request: HttpRequest, rows: QuerySet[Any]) -> Messages:
        model = reembedding.stop()
        if model is None:
            yield "Nothing is being built.", messages.WARNING
        else:
            yield f"{model.label} is stopped. Recall stays with the model it compares.", messages.SUCCESS


@admin.register(ModelUse)
class ModelUseAdmin(ReadOnlyAdmin):
    """Admin of model usage by day (UTC): numbers, no texts."""

    list_display = (
        "day",
        "workspace",
        "user",
        "purpose",
        "model",
        "calls",
        "estimated",
        "tokens_in",
        "tokens_out",
        "in_money",
    )
    list_select_related = ("workspace", "user")
    list_filter = ("purpose",)
    date_hierarchy = "day"
    links = ("workspace", "user", "model")
    ids = {"ws": "workspace__public_id", "usr": "user__public_id"}
    ordering = ("-day", "-id")
    actions = None
    fields = (
        "day",
        "workspace",
        "user",
        "purpose",
        "model",
        "calls",
        "estimated",
        "unpriced",
        "tokens_in",
        "cached",
        "tokens_out",
        "reasoning",
        "memory",
        "documents",
        "tools",
        "in_money",
    )
    readonly_fields = ("in_money",)

    @admin.display(description="cost")
    def in_money(self, use: ModelUse) -> str:
        """Return the cost of the priced calls, or "-" if no call has a price."""
        return amount(use.cost) if use.calls > use.unpriced else "-"
