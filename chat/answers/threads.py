"""Threads for blocking work of an answer: the database, the embedder, tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import connections

from memoryhub.monitoring import tracing

P = ParamSpec("P")
T = TypeVar("T")
_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="turn")
_tool_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="tool")  # a slow tool holds up no turn


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking code (the database, the embedder) in a thread that gives its connection back afterwards."""
    return await _run_in(_threads, function, *args, **kwargs)


async def in_tool_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same among threads of their own, for what may take long."""
    return await _run_in(_tool_threads, function, *args, **kwargs)


async def _run_in(
    threads: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    def call() -> T:
        try:
            return function(*args, **kwargs)
        finally:
            connections.close_all()

    return await asyncio.get_running_loop().run_in_executor(threads, tracing.carried(call))
