"""Which requests may be answered from a replica, and what those that may not leave behind for the next ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, resolve

from memoryhub.database.locks import release_connection
from memoryhub.database.replicas.pinned import pin_to_primary
from memoryhub.database.replicas.reading import answering
from memoryhub.database.replicas.servers import server

READING = frozenset({"GET", "HEAD"})


class ReadingMiddleware:
    """Answer a request that only reads once more when its connection to the database was cut, or by a replica.

    A server that is restarted costs readers some time and no error. With replicas one answers what a primary that is
    away cannot. A stream gives back its connection before it begins: it works in a thread of its own.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if settings.REPLICAS and request.method not in READING and reads_only(request):
            _ = request.body  # kept, to be read twice
        try:
            response = self._answered(request)
            if response.status_code >= 500 and (
                is_worth_another(request) or (request.method in READING and _was_cut())
            ):
                connection.close()
                response = self._answered(request)
        except BaseException:  # not even a page could be made of it, so nobody will close the response
            release_connection()
            raise
        if response.streaming:
            release_connection()
        return response

    def _answered(self, request: HttpRequest) -> HttpResponseBase:
        with answered_from_replicas(request):
            return self.get_response(request)


def _was_cut() -> bool:
    return connection.connection is not None and bool(connection.connection.closed)


def reads_only(request: HttpRequest) -> bool:
    """By its method, or by its view, which says so: a recall is sent by POST."""
    if request.method in READING:
        return True
    try:
        view = resolve(request.path_info).func
    except Resolver404:
        return False
    return bool(getattr(getattr(view, "cls", None), "only_reads", False))


@contextmanager
def answered_from_replicas(request: HttpRequest) -> Iterator[None]:
    """Around the answering of a request."""
    if not settings.REPLICAS:
        yield
    elif reads_only(request):
        with answering():
            yield
    else:
        yield
        _note(request)


def _note(request: HttpRequest) -> None:
    """Whoever asked for a change sees it from now on."""
    try:
        person = getattr(getattr(request, "user", None), "pk", None)
    except (DatabaseError, InterfaceError):  # nobody has asked who it is, and now nobody can
        return
    if person is not None:
        pin_to_primary(person)


def is_worth_another(request: HttpRequest) -> bool:
    """Whether a replica would answer what failed: the primary is away."""
    return bool(settings.REPLICAS) and reads_only(request) and server().check()
