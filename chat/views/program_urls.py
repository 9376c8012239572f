"""URLs of ``/mcp`` and of the page for connecting programs."""

from __future__ import annotations

from django.urls import path

from chat.programs.mcp_server import Mcp
from chat.views.connect import connect

urlpatterns = [
    path("mcp", Mcp.as_view(), name="mcp"),
    path("mcp/", Mcp.as_view()),  # many servers use the slash, so users type it
    path("connect/", connect, name="connect"),
]
