"""For whom a request asks the database, with ``MEMORYHUB_ROW_SECURITY``: the system until its person is known."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from memoryhub.database.acting import acting_as, as_system, streamed

Handler = Callable[[HttpRequest], HttpResponseBase]
# Staff see what their permissions say, whoever's it is; allauth's pages are about accounts and sessions; a link lets in
# who is no member.
OF_THE_SYSTEM = ("/admin/", "/accounts/", "/shared/", "/join/")


class DoorMiddleware:
    """Outermost: probes, sessions and signing in are the system's, and so is whoever comes without a session or key."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with as_system():
            return self.get_response(request)


class PersonMiddleware:
    """Whoever is signed in asks for themselves; a key says later whose it is (``workspaces.rest.keys``)."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        user = request.user
        own = user.is_authenticated and not request.path_info.startswith(OF_THE_SYSTEM)
        with acting_as(user.pk if own else None):
            response = self.get_response(request)
            if isinstance(response, StreamingHttpResponse) and response.is_async:
                response.streaming_content = streamed(response.streaming_content)  # type: ignore[arg-type]
            return response
