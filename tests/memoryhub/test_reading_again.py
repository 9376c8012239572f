"""A read is repeated when its connection was lost; a stream begins without a connection."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, override_settings
from django.urls import path

pytestmark = pytest.mark.django_db(transaction=True)
seen: list[str] = []


def cut(request: HttpRequest) -> HttpResponse:
    """Lose the connection on the first request."""
    seen.append(request.method or "")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())" if len(seen) == 1 else "SELECT 1")
    return HttpResponse("told")


def fails(request: HttpRequest) -> HttpResponse:
    seen.append(request.method or "")
    raise RuntimeError("nobody foresaw it")


def stream(request: HttpRequest) -> StreamingHttpResponse:
    connection.ensure_connection()

    async def pieces() -> AsyncIterator[str]:
        yield "a"

    return StreamingHttpResponse(pieces())


urlpatterns = [path(view.__name__, view) for view in (cut, fails, stream)]


@pytest.fixture
def client() -> Any:
    seen.clear()
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=["memoryhub.http.middleware.ReadingMiddleware"]):
        yield Client(raise_request_exception=False)
    connection.close()


def test_who_only_reads_does_not_notice_that_the_connection_was_cut(client: Client) -> None:
    for method, tries, status in (("GET", 2, 200), ("HEAD", 2, 200), ("POST", 1, 500)):
        seen.clear()
        assert client.generic(method, "/cut").status_code == status
        assert seen == [method] * tries


def test_an_error_of_the_view_is_not_tried_again(client: Client) -> None:
    assert client.get("/fails").status_code == 500
    assert seen == ["GET"]


def test_a_stream_holds_no_connection(client: Client) -> None:
    assert client.get("/stream").status_code == 200
    assert connection.connection is None
