"""Pages are compressed on their way: a page of a chat is a tenth of its size then."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class CompressedPagesMiddleware(GZipMiddleware):
    """Django's gzip, for pages that somebody reads and for nothing else.

    What is compressed with a secret beside text of somebody else's choosing gives it away by its length (BREACH). So
    Django adds a random length to each and masks the CSRF token anew in every page; and what answers a POST, such as
    the page that shows a new key once, is left as it is. So are the API, whose ETags compression would weaken, files,
    which mostly are compressed already, and streams, which must not wait for more.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = response.get("Content-Type", "").startswith("text/html")
        if response.streaming or request.method != "GET" or not is_page:
            return response
        return super().process_response(request, response)
