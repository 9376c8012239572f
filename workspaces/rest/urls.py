"""``/api/schema/`` and the page that shows it."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.views import SpectacularSwaggerView

from workspaces.rest.schema_view import SchemaView

urlpatterns = [
    path("schema/", SchemaView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(template_name="workspaces/api_page.html"), name="api_docs"),
]
