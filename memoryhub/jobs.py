"""Background jobs: recurring schedules, traces, and a wrapper that keeps people's texts out of stored errors."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from opentelemetry.trace import SpanKind

from memoryhub.monitoring import tracing

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")


def run_every(minutes: int, func: str, *, name: str, app: AppConfig) -> None:
    """Schedule a recurring job. ``func`` is a dotted path. The schedule is saved after each migration of ``app``."""

    def schedule(sender: Any, **kwargs: Any) -> None:
        from django_q.models import Schedule

        often = {"schedule_type": Schedule.MINUTES, "minutes": minutes, "repeats": -1}
        Schedule.objects.update_or_create(name=name, defaults={"func": func, **often})

    post_migrate.connect(schedule, sender=app, weak=False, dispatch_uid=name)


def follow_traces() -> None:
    """Make each job continue the trace of the code that queued it."""
    from django_q.signals import pre_enqueue, pre_execute

    def send_along(sender: Any, task: dict[str, Any], **kwargs: Any) -> None:
        if parent := tracing.current_traceparent():
            task[tracing.PARENT] = parent

    def go_on(sender: Any, task: dict[str, Any], **kwargs: Any) -> None:
        tracing.continue_trace(task.get(tracing.PARENT, ""))

    pre_enqueue.connect(send_along, weak=False, dispatch_uid="traces")
    pre_execute.connect(go_on, weak=False, dispatch_uid="traces")


class JobFailed(Exception):
    """Raised in place of a job's error, so that the queue's tables and the log do not contain people's texts."""


def job(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a task, so that the queue stores an error's type and traceback but not its message, which may quote rows."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        began = time.perf_counter()
        try:
            with tracing.span("memoryhub.job", {"memoryhub.job": function.__name__}, kind=SpanKind.CONSUMER):
                return function(*args, **kwargs)
        except Exception as error:
            way = "".join(traceback.format_tb(error.__traceback__))
            raise JobFailed(f"{type(error).__name__} in {function.__name__}\n{way}") from None
        finally:
            logger.debug("%s took %.1f ms", function.__name__, (time.perf_counter() - began) * 1000)

    return run
