"""An answer as HTML while it grows: at any moment the page shows the rendering of the text so far."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from chat.rendering import stored_html
from chat.rendering.markdown import Budget, render_markdown
from chat.rendering.stored_html import html_or_source
from chat.turns import stream
from chat.turns.stream import StreamEvent, with_html

TEXT = "# Plan 😀\n\n- one\n- **two**\n\n| a | b |\n|--|-:|\n| 1 | 2 |\n\n```python\nprint(1)\n```\n\nDone."


async def said(*parts: str | StreamEvent, pause: float = 0) -> AsyncGenerator[StreamEvent, None]:
    reached = 0
    for part in parts:
        if isinstance(part, str):
            reached += len(part)
            yield StreamEvent("token", {"text": part}, reached)
        else:
            yield part
        await asyncio.sleep(pause)
    yield StreamEvent("done", {"status": "done"}, reached)


def applied(events: list[StreamEvent]) -> list[str]:
    """Apply the events as the page does: its strings are counted in UTF-16 units."""
    html, states = b"", []
    for event in events:
        if event.kind == "restart":
            html = b""
        elif event.kind == "html":
            html = html[: 2 * event.data["keep"]] + event.data["html"].encode("utf-16-le")
            states.append(html.decode("utf-16-le"))
    return states


async def collect(found: AsyncGenerator[StreamEvent, None]) -> list[StreamEvent]:
    return [event async for event in found]


async def test_each_state_is_the_text_so_far_and_the_last_is_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "EVERY", 0.0)
    monkeypatch.setattr(stream, "REST", 0)
    events = await collect(with_html(said(*TEXT, pause=0.001)))
    states = applied(events)
    assert len(states) > 20
    assert states[-1] == render_markdown(TEXT, Budget(10_000))
    assert set(states) <= {html_or_source(TEXT[:at]) for at in range(len(TEXT) + 1)}
    sent = sum(len(event.data["html"]) for event in events if event.kind == "html")
    assert sent < sum(map(len, states)) / 2, "only what differs is sent"
    assert [event.kind for event in events][-1] == "done"


async def test_what_comes_fast_is_rendered_once_and_nothing_is_left_out_at_a_tool_or_the_end() -> None:
    tool = StreamEvent("tool", {"id": "x"}, 3)
    events = await collect(with_html(said("One", tool, " two", " three")))
    assert [event.kind for event in events] == ["html", "tool", "html", "done"]
    assert applied(events) == ["<p>One</p>\n", "<p>One two three</p>\n"]


async def test_an_answer_that_begins_anew_forgets_what_was() -> None:
    events = await collect(with_html(said("Old", StreamEvent("restart", {}, 0), "New")))
    assert [event.kind for event in events] == ["html", "restart", "html", "done"]
    assert applied(events) == ["<p>Old</p>\n", "<p>New</p>\n"]


async def test_a_reader_who_leaves_ends_the_stream_below() -> None:
    ended: list[bool] = []

    async def forever() -> AsyncGenerator[StreamEvent, None]:
        try:
            yield StreamEvent("token", {"text": "Hello"}, 5)
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    found = with_html(forever())
    assert (await anext(found)).kind == "html"
    await found.aclose()
    assert ended == [True]


def test_too_heavy_or_broken_text_stands_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert html_or_source("*" * 200_000 + "<b>").endswith("&lt;b&gt;</pre>")

    def fails(*args: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(stored_html, "render_markdown", fails)
    assert html_or_source("<i>") == '<pre class="prose__plain">&lt;i&gt;</pre>'
