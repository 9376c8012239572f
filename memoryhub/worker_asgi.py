"""The ASGI application of a host that runs only a worker: `/healthz`, `/readyz` and `/metrics`."""

import os
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
django.setup(set_prefix=False)

from asgiref.sync import sync_to_async  # noqa: E402  after Django is set up
from django.core.handlers.asgi import ASGIHandler  # noqa: E402
from django.http import HttpResponseNotFound  # noqa: E402

from memoryhub.http.body_limit import BodyLimit  # noqa: E402
from memoryhub.http.middleware import ProbesMiddleware  # noqa: E402


class Probes(ASGIHandler):
    """A Django handler that loads only the probes middleware, without sessions and pages."""

    def load_middleware(self, is_async: bool = False) -> None:
        probes = ProbesMiddleware(
            lambda request: HttpResponseNotFound("There is nothing here.\n", content_type="text/plain")
        )
        self._middleware_chain = sync_to_async(probes)


probes: Any = Probes()
application = BodyLimit(probes, most=0)
