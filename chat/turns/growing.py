"""An answer as HTML while it is written, so that a page shows it as it will stand when it is whole."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import suppress

from django.utils.html import format_html
from django.utils.safestring import SafeString

from chat.rendering.markdown import Budget, TooHeavy, render_markdown
from chat.rendering.rendered import MESSAGE_STEPS
from chat.turns.stream import StreamEvent

logger = logging.getLogger(__name__)
EVERY = 0.1  # seconds between two renderings, at least
REST = (
    20  # and this many times what the last one took: a long answer costs no more than a twentieth of a core
)


def html_so_far(text: str) -> SafeString:
    """What the whole answer would be if it ended here; as it was written where that is too heavy. Never fails."""
    try:
        return render_markdown(text, Budget(MESSAGE_STEPS))
    except TooHeavy:
        pass
    except Exception:
        logger.exception("A text could not be rendered while it grew; it is shown as it was written")
    return format_html('<pre class="prose__plain">{}</pre>', text)


async def with_html(stream: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[StreamEvent, None]:
    """``follow`` from the beginning, with ``html`` {keep, html} in the place of ``token``.

    ``keep``: how much of the HTML so far still holds, in UTF-16 units as a browser counts; ``html`` is what follows.
    """
    text, sent, reached, due, is_new = "", "", 0, 0.0, False
    waiting: asyncio.Future[StreamEvent | None] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(_next(stream))
            await asyncio.wait({waiting}, timeout=max(0.0, due - time.monotonic()) if is_new else None)
            event = None
            if waiting.done():
                event, waiting = waiting.result(), None
                if event is None:
                    return
                if event.kind == "token":
                    text, reached, is_new = text + event.data["text"], event.id, True
                    event = None
                elif event.kind == "restart":
                    text, sent, is_new = "", "", False
            if is_new and (event is not None or time.monotonic() >= due):
                began = time.monotonic()
                html = await asyncio.to_thread(html_so_far, text)
                due = time.monotonic() + max(EVERY, REST * (time.monotonic() - began))
                yield _grown(sent, html, reached)
                sent, is_new = html, False
            if event is not None:
                yield event
    finally:
        if waiting is not None:
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
        await stream.aclose()


async def _next(stream: AsyncGenerator[StreamEvent, None]) -> StreamEvent | None:
    return await anext(stream, None)


def _grown(before: str, html: str, reached: int) -> StreamEvent:
    differing = (at for at, (a, b) in enumerate(zip(before, html, strict=False)) if a != b)
    keep = next(differing, min(len(before), len(html)))
    units = len(html[:keep].encode("utf-16-le")) // 2
    return StreamEvent("html", {"keep": units, "html": html[keep:]}, reached)
