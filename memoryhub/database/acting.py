"""For whom the database is asked: a person, or the system. Said where it becomes known, read at every statement.

It means something with ``MEMORYHUB_ROW_SECURITY`` alone (docs/decisions/0026): then ``memoryhub.database.guarded``
tells it to Postgres, whose policies let a person's statements see that person's rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import connection

P = ParamSpec("P")
T = TypeVar("T")
SYSTEM = 0  # no person has this key


class NobodyActs(RuntimeError):
    """A statement of a web process that nobody said for whom it is: a door forgot to. Nothing was asked."""


_acting: ContextVar[int | None] = ContextVar("acting", default=None)


def who() -> int:
    """The key of the person for whom the database is asked now, or SYSTEM. Raises NobodyActs.

    Commands and workers are the system's until they say whose work it is.
    """
    person = _acting.get()
    if person is not None:
        return person
    if settings.PROCESS_ROLE == "web":
        raise NobodyActs("Nobody said for whom the database is asked.")
    return SYSTEM


@contextmanager
def acting_as(person: int | None) -> Iterator[None]:
    """Within it the database is asked for this person. None: for whomever it was asked before."""
    before = _acting.get()
    if person is not None:
        _acting.set(person)
    try:
        yield
    finally:
        _acting.set(before)  # not by its token: a stream may be closed in another context


def as_system() -> AbstractContextManager[None]:
    """Within it every row is in reach: only for what looks at a right by itself, or is nobody's in particular."""
    return acting_as(SYSTEM)


def become(person: int) -> None:
    """From here on, until the ``acting_as`` around it ends: where a key or a token says who is asking."""
    _acting.set(person)


def tell() -> None:
    """Before a COPY, which the backend does not see: for whom it is. Outside of a transaction it is the system's."""
    if settings.ROW_SECURITY and connection.in_atomic_block:
        connection.set_person()  # type: ignore[attr-defined]  # memoryhub.database.guarded has it


def by_system(function: Callable[P, T]) -> Callable[P, T]:
    """Of a function that does all it does as the system."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with acting_as(SYSTEM):
            return function(*args, **kwargs)

    return run


def carried(function: Callable[P, T]) -> Callable[P, T]:
    """For another thread, which knows nothing of this one: there the database is asked for whom it is here."""
    person = _acting.get()

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with acting_as(person):
            return function(*args, **kwargs)

    return run


def streamed(pieces: AsyncIterator[T]) -> AsyncIterator[T]:
    """What is sent when its request is over: it goes on asking for whom that one asked, from when this is called."""
    person = _acting.get()

    async def each() -> AsyncIterator[T]:
        while True:
            with acting_as(person):
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    return
            yield piece

    return each()
