"""What it costs a page that it can be said in seven languages: pytest tests/bench/bench_languages.py -s

A chat of forty messages beside a list of thirty chats, rendered by turns: with translation switched off (Django's
``USE_I18N``), on and in English, and on and in German. CPU of
this process, the lowest tenth of ``TIMES``, each as often first as any other; what is printed is the ratio to off. It
asserts no time, but that all of them say what they should.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import translation
from django.utils.translation import trans_real

from memoryhub.management.commands.prepare import compile_translations
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message

TIMES = 100
WARM = 10


@contextmanager
def switched(on: bool) -> Iterator[None]:
    """Translation on or off, as if the process had begun so."""
    before = settings.USE_I18N
    settings.USE_I18N = on
    translation._trans.__dict__.clear()
    try:
        yield
    finally:
        settings.USE_I18N = before
        translation._trans.__dict__.clear()


@pytest.mark.django_db
def test_what_languages_cost_a_page(cast: Cast, client: Client) -> None:
    compile_translations()
    trans_real._translations.pop("de", None)
    chat = make_chat(cast.owner, cast.workspace, title="A chat")
    for number in range(30):
        make_chat(cast.owner, cast.workspace, title=f"Chat {number}")
        make_memory(f"Fact number {number} is known", cast.owner, cast.workspace)
    for number in range(20):
        make_message(chat, f"Question {number}", author=cast.owner)
        make_message(chat, f"Answer {number}", role="assistant")
    client.force_login(cast.owner)
    took: dict[str, list[float]] = {}

    def ask(name: str, said: str, *, on: bool, **headers: str) -> None:
        with switched(on=on):
            gc.collect()
            began = time.process_time()
            page = client.get(reverse("chat:chat", args=[chat.public_id]), headers=headers)
            took.setdefault(name, []).append(time.process_time() - began)
        assert said in page.content.decode()

    german: Any = {"Accept-Language": "de"}
    ways: list[Callable[[], None]] = [
        lambda: ask("off", "New chat", on=False),
        lambda: ask("on, English", "New chat", on=True),
        lambda: ask("on, German", "Neuer Chat", on=True, **german),
    ]
    for number in range(WARM + TIMES):
        if number == WARM:
            took.clear()
        for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
            way()
    lowest = {name: statistics.quantiles(times, n=10)[0] for name, times in took.items()}
    for name, least in lowest.items():
        print(f"{name:26} {least * 1000:6.1f} ms of CPU, {least / lowest['off']:.3f} of off")
