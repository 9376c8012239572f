"""What background jobs share: a failed one says what failed and where, never what it was working on."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class JobFailed(Exception):
    """Stands in the queue's tables and in the log in place of the error itself."""


def job(function: Callable[P, T]) -> Callable[P, T]:
    """The queue keeps the text of a job's error, and the database's errors quote rows: stored text, out of reach of
    "forget for good". So only the error's kind and the lines of code it came through are told.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            way = "".join(traceback.format_tb(error.__traceback__))
            raise JobFailed(f"{type(error).__name__} in {function.__name__}\n{way}") from None

    return run
