"""URLs of the OpenAPI schema, ``/api/schema/``, and of the page that shows it."""

from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from django.utils import translation
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView
from rest_framework.request import Request


class SchemaView(SpectacularAPIView):
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        lang = request.GET.get("lang")
        language = lang if lang in dict(settings.LANGUAGES) else translation.get_language()
        renderer = request.accepted_renderer
        return HttpResponse(
            written(language, is_json=renderer.format == "json"),
            content_type=f"{request.accepted_media_type}; charset=utf-8",
            headers={"Content-Disposition": f'inline; filename="MemoryHub.{renderer.format}"'},
        )


@cache
def written(language: str, *, is_json: bool) -> bytes:
    """Return the schema as JSON or YAML.

    Cached per process, because generating it takes up to two seconds of CPU time.
    """
    with translation.override(language):
        schema = SchemaGenerator().get_schema(request=None, public=True)
        renderer = OpenApiJsonRenderer() if is_json else OpenApiYamlRenderer()
        return bytes(renderer.render(schema, renderer_context={}))


urlpatterns = [
    path("schema/", SchemaView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(template_name="workspaces/api_page.html"), name="api_docs"),
]
