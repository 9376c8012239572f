"""``/api/schema/`` and the page that shows it."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.views import SpectacularSwaggerSplitView

from workspaces.rest.schema_view import SchemaView

urlpatterns = [
    path("schema/", SchemaView.as_view(), name="schema"),
    # Its script comes as a file of its own, so that the policy need not allow inline ones.
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="api_docs"),
]
