"""The entry point of a host without a web server: `/healthz`, `/readyz` and `/metrics`, beside its worker."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402  after Django is set up
from django.http import HttpResponseNotFound  # noqa: E402

from memoryhub.http.body_limit import BodyLimit  # noqa: E402
from memoryhub.http.handler import OneThreadHandler  # noqa: E402
from memoryhub.http.middleware import ProbesMiddleware  # noqa: E402


class Probes(OneThreadHandler):
    """Neither sessions nor pages are loaded for it."""

    def load_middleware(self, is_async: bool = False) -> None:
        self._middleware_chain = ProbesMiddleware(
            lambda request: HttpResponseNotFound("There is nothing here.\n", content_type="text/plain")
        )


application = BodyLimit(Probes(), most=0, patience=settings.BODY_SECONDS)
