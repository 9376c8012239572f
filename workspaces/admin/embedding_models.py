"""Admin of embedding models: the active one, the progress of the next, and buttons to stop and continue it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from memoryhub.llm.errors import EmbedderError
from workspaces.admin_kit.base import ReadOnlyAdmin, action, offer_undo
from workspaces.index import reembedding
from workspaces.models import EmbeddingModel

Sentences = Iterator[tuple[str, int]]


@admin.register(EmbeddingModel)
class EmbeddingModelAdmin(ReadOnlyAdmin):
    many = "embedding models"
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
    def start(self, request: HttpRequest, rows: QuerySet[Any]) -> Sentences:
        try:
            model = reembedding.start()
        except EmbedderError as error:
            yield f"The configured embedding model cannot be asked: {error}", messages.ERROR
            return
        if model is None:
            yield "The configured model is the one that recall compares: nothing to build.", messages.WARNING
        else:
            offer_undo(self, request, "stop", [model.pk])
            yield f"{model.label} is being built in the background.", messages.SUCCESS

    @action(
        "Stop building",
        "change",
        asks="Recall stays with the model it compares. What is built so far is kept, and can be gone on with.",
    )
    def stop(self, request: HttpRequest, rows: QuerySet[Any]) -> Sentences:
        model = reembedding.stop()
        if model is None:
            yield "Nothing is being built.", messages.WARNING
        else:
            offer_undo(self, request, "start", [model.pk])
            yield f"{model.label} is stopped. Recall stays with the model it compares.", messages.SUCCESS
