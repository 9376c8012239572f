"""URLs of ``/v1/``."""

from __future__ import annotations

from django.urls import path, re_path

from chat.programs.openai_api import views

app_name = "openai_api"
urlpatterns = [
    path("models", views.ModelList.as_view(), name="models"),
    path("models/<path:model>", views.ModelDetail.as_view(), name="model"),
    path("chat/completions", views.ChatCompletions.as_view(), name="completions"),
    path("responses", views.Responses.as_view(), name="responses"),
    path("messages", views.Messages.as_view(), name="messages"),
    path("messages/count_tokens", views.CountTokens.as_view(), name="count_tokens"),
    path("embeddings", views.Embeddings.as_view(), name="embeddings"),
    re_path(r"", views.NoSuchRoute.as_view(), name="no_such_route"),
]
