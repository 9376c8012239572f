"""MemoryHub as an app of a device: its manifest, its service worker, and the page for when nothing answers."""

from __future__ import annotations

from pathlib import Path

from django.contrib.auth.decorators import login_not_required
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

PAGE_COLOUR = "#fbfaf8"  # of tokens.css, in light


@login_not_required
@require_safe
def manifest(request: HttpRequest) -> JsonResponse:
    icons = [
        {
            "src": static(f"icon-{size}.png"),
            "sizes": f"{size}x{size}",
            "type": "image/png",
            "purpose": purpose,
        }
        for size in (192, 512)
        for purpose in ("any", "maskable")
    ]
    return JsonResponse(
        {
            "name": "MemoryHub",
            "description": _("A chat workspace that remembers."),
            "id": "/",
            "start_url": "/",
            "display": "standalone",
            "background_color": PAGE_COLOUR,
            "theme_color": PAGE_COLOUR,
            "icons": icons,
        },
        content_type="application/manifest+json",
    )


@login_not_required
@require_safe
def service_worker(request: HttpRequest) -> HttpResponse:
    """From the root, for a worker rules only the addresses below its own."""
    path = finders.find("js/service-worker.js")
    assert isinstance(path, str), "it is among the static files"
    return HttpResponse(Path(path).read_bytes(), content_type="text/javascript")


@login_not_required
@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    """The one page that browsers keep: the same for everybody."""
    return render(request, "offline.html")
