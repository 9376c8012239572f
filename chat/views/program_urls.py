"""``/mcp``, and the page on which programs are connected."""

from __future__ import annotations

from django.urls import path

from chat.programs.mcp.views import Mcp
from chat.views.connect import connect

urlpatterns = [
    path("mcp", Mcp.as_view(), name="mcp"),
    path("mcp/", Mcp.as_view()),  # as many servers have it, so people type it
    path("connect/", connect, name="connect"),
]
