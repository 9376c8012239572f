"""Which requests may be answered from a replica, and what those that may not leave behind for the next ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest
from django.urls import Resolver404, resolve

from memoryhub.database.replicas.reading import answering
from memoryhub.database.replicas.servers import server
from memoryhub.database.replicas.written import note_written

READING = frozenset({"GET", "HEAD"})


class Body:
    """The body of a request, which Django closes once it has read it: it may be answered twice."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None:
        """Left to whoever made the file."""


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
        note_written(person)


def is_worth_another(request: HttpRequest) -> bool:
    """Whether a replica would answer what failed: the primary is away."""
    return bool(settings.REPLICAS) and reads_only(request) and server().check()
