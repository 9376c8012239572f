"""An answer on its way from a model to a program: read in the loop of turns, handed on to whoever asked.

What was said is kept when the program hangs up in the middle, and the model is then asked for no more.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from chat.answers.threads import in_thread
from chat.turns import runner
from memoryhub.llm.output_parsing import without_thoughts

Chunk = dict[str, Any]


@dataclass
class ReadSoFar:
    """What the model said so far. ``is_over``: it is done, and asked for no tool of the program's."""

    finish_reason: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.finish_reason not in {"tool_calls", "function_call"}

    def read(self, choices: Any, *, part: str) -> None:
        """The first choice of a chunk (``part`` is delta) or of a whole answer (message)."""
        choice = choices[0] if choices else None
        if not isinstance(choice, dict) or choice.get("index") not in (0, None):
            return
        said = choice.get(part)
        if isinstance(said, dict) and isinstance(said.get("content"), str):
            self.pieces.append(said["content"])
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]

    @property
    def said(self) -> str:
        """Without what the model thought before it."""
        return without_thoughts("".join(self.pieces))


class Pump:
    """``done`` is told what was read, in a thread, however it ended; ``failed`` holds the error, if one ended it."""

    def __init__(self, chunks: AsyncGenerator[Chunk, None], done: Callable[[ReadSoFar], None]) -> None:
        self.failed: Exception | None = None
        self._read, self._done = ReadSoFar(), done
        self._waiting: list[Chunk] = []
        self._is_over = False
        self._changed = threading.Condition()
        self._reader: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._running = runner.submit(self._run(chunks))

    async def _run(self, chunks: AsyncGenerator[Chunk, None]) -> None:
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    self._read.read(chunk["choices"], part="delta")
                    self._put(chunk)
        except Exception as error:
            self.failed = error
        finally:
            try:
                if self._read.pieces or self.failed is None:
                    await in_thread(self._done, self._read)
            finally:
                self._put(None)

    def _put(self, chunk: Chunk | None) -> None:
        with self._changed:
            if chunk is None:
                self._is_over = True
            else:
                self._waiting.append(chunk)
            self._changed.notify_all()
            if self._reader is not None:
                loop, event = self._reader
                if not loop.is_closed():
                    loop.call_soon_threadsafe(event.set)

    def wait_for_first(self) -> None:
        """Until there is something to pass on. Raises what went wrong before that."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_over)
            if self.failed is not None and not self._waiting:
                raise self.failed

    async def take(self, seconds: float) -> list[Chunk] | None:
        """What has come, after ``seconds`` perhaps nothing; None at the end."""
        event = asyncio.Event()
        with self._changed:
            self._reader = (asyncio.get_running_loop(), event)
            ready = bool(self._waiting or self._is_over)
        if not ready:
            try:
                await asyncio.wait_for(event.wait(), seconds)
            except TimeoutError:
                return []
        with self._changed:
            taken, self._waiting = self._waiting, []
            return taken if taken or not self._is_over else None

    def stop(self) -> None:
        """Nobody wants the rest."""
        self._running.cancel()
