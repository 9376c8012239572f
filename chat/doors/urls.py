"""``/mcp``, and the page on which programs are connected."""

from __future__ import annotations

from django.urls import path

from chat.doors.connect_views import connect
from chat.doors.mcp.views import Mcp

urlpatterns = [
    path("mcp", Mcp.as_view(), name="mcp"),
    path("mcp/", Mcp.as_view()),  # as many servers have it, so people type it
    path("connect/", connect, name="connect"),
]
