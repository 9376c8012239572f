"""Static files (hashed, compressed, with inlined imports), and the manifest, service worker and offline page."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.staticfiles import finders
from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage

from memoryhub.http.body_limit import Application, Receive, Send

_SHEET = re.compile(r'^@import "([\w.-]+\.css)";$', re.M)
_SHEET_COMMENT = re.compile(r"/\*.*?\*/\n*", re.S)
_COMMENT = re.compile(r"^[ \t]*// .*\n", re.M)
_SCRIPT = re.compile(r'^import "\./([\w.-]+\.js)";$', re.M)


class StaticFiles:
    """An ASGI middleware that serves static files, of which a page needs ten, without Django's threads."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.files = WhiteNoiseMiddleware()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        file = self.files.find_file(path) if self.files.autorefresh else self.files.files.get(path)
        if file is None:
            await self.application(scope, receive, send)
            return
        environ = {
            f"HTTP_{name.decode('latin-1').upper().replace('-', '_')}": value.decode("latin-1")
            for name, value in scope["headers"]
        }
        answer = file.get_response(scope["method"], environ)
        body = b""
        if answer.file is not None:
            with answer.file:
                body = answer.file.read()
        headers = [(name.lower().encode(), value.encode()) for name, value in answer.headers]
        headers.append((b"x-content-type-options", b"nosniff"))
        await send({"type": "http.response.start", "status": int(answer.status), "headers": headers})
        await send({"type": "http.response.body", "body": body})


class OneFileStorage(CompressedManifestStaticFilesStorage):
    """A storage that inlines imports of stylesheets and scripts: one request instead of twelve.

    Each imported script becomes a block, so that its names stay local as in a module; no module exports anything. In
    development, without collectstatic, the browser follows the imports.
    """

    def post_process(
        self, paths: dict[str, tuple[Storage, str]], dry_run: bool = False, **options: Any
    ) -> Iterator[Any]:
        for name, (source, path) in list(paths.items()) if not dry_run else ():
            folder = PurePosixPath(name).parent

            def read(imported: str, folder: PurePosixPath = folder) -> str:
                return _read(*paths[str(folder / imported)])

            if name.endswith((".css", ".js")):
                text = _read(source, path)
                whole = with_imports(text, read)
                if whole != text:
                    self.delete(name)
                    self._save(name, ContentFile(whole.encode()))
                    paths[name] = (self, name)
        yield from super().post_process(paths, dry_run, **options)


def with_imports(text: str, read: Callable[[str], str]) -> str:
    """Return a stylesheet or script with each import line replaced by the imported file, without its comments.

    ``read`` returns an imported file's text. An imported script becomes a block.
    """
    text = _SHEET.sub(lambda match: _SHEET_COMMENT.sub("", read(match[1])), text)
    return _SCRIPT.sub(lambda match: f"{{\n{_COMMENT.sub('', read(match[1]))}\n}}", text)


def _read(storage: Storage, path: str) -> str:
    with storage.open(path) as file:
        return str(file.read().decode())


PAGE_COLOUR = "#fbfaf8"  # from the light theme in tokens.css


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
    """Serve the service worker from the root path, because its scope is limited to paths below its own."""
    path = finders.find("js/service-worker.js")
    assert isinstance(path, str), "it is among the static files"
    return HttpResponse(Path(path).read_bytes(), content_type="text/javascript")


@login_not_required
@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    """Render the page that browsers cache and show without a connection. It is the same for every user."""
    return render(request, "offline.html")
