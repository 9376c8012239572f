"""Publish and subscribe across processes, over Postgres LISTEN/NOTIFY.

``publish`` is part of the running transaction: events are sent on commit and dropped on rollback. Each process has one
listening connection in its own thread, which the first subscriber starts. Events are lost while this connection is
lost. After a reconnect every subscriber therefore receives a ``resync`` event and must reload its data.
"""

import asyncio
import json
import logging
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from memoryhub.environment import libpq_settings

logger = logging.getLogger(__name__)
NOTIFY_CHANNEL = "memoryhub"
RESYNC = "resync"
QUEUE_LIMIT = 1000
LOOK_UP_EVERY = 1.0  # seconds between the listening thread's checks whether to stop


@dataclass(frozen=True)
class Event:
    channel: str
    name: str
    data: dict[str, Any] = field(default_factory=dict)


def publish(channel: str, name: str, data: dict[str, Any] | None = None) -> None:
    """Send an event when the transaction commits. ``data``: ids and numbers, at most 7,900 bytes. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [NOTIFY_CHANNEL, payload(channel, name, data)])


def payload(channel: str, name: str, data: dict[str, Any] | None = None) -> str:
    """Return the payload of a notification, for SQL statements that send it themselves."""
    return json.dumps([channel, name, data or {}], separators=(",", ":"))


class Subscription:
    """A queue of events, bound to the event loop in which it was created."""

    def __init__(self, channels: tuple[str, ...]) -> None:
        self.channels = channels
        self.loop = asyncio.get_running_loop()
        self.queue: asyncio.Queue[Event] = asyncio.Queue(maxsize=QUEUE_LIMIT)

    def offer(self, event: Event) -> None:
        """Add an event to the queue. Called from the listener's thread."""
        try:
            self.loop.call_soon_threadsafe(self._put, event)
        except RuntimeError:
            logger.debug("A subscriber's loop is gone.")

    def _put(self, event: Event) -> None:
        if self.queue.full():  # a subscriber that is this slow should reload its data instead
            while not self.queue.empty():
                self.queue.get_nowait()
            event = Event(event.channel, RESYNC)
        self.queue.put_nowait(event)

    async def get(self, seconds: float | None = None) -> Event | None:
        """Return the next event, or None after ``seconds``."""
        try:
            return await asyncio.wait_for(self.queue.get(), seconds)
        except TimeoutError:
            return None


class Listener:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.subscriptions: dict[str, set[Subscription]] = defaultdict(set)
        self.thread: threading.Thread | None = None
        self.ready = threading.Event()
        self.stopping = threading.Event()

    def add(self, subscription: Subscription) -> None:
        with self.lock:
            for channel in subscription.channels:
                self.subscriptions[channel].add(subscription)
            if self.thread is None or not self.thread.is_alive():
                self.ready.clear()
                self.thread = threading.Thread(target=self._run, name="events", daemon=True)
                self.thread.start()

    def remove(self, subscription: Subscription) -> None:
        with self.lock:
            for channel in subscription.channels:
                self.subscriptions[channel].discard(subscription)
                if not self.subscriptions[channel]:
                    del self.subscriptions[channel]

    def _dispatch(self, event: Event) -> None:
        with self.lock:
            receivers = list(self.subscriptions.get(event.channel, ()))
        for subscription in receivers:
            subscription.offer(event)

    def _resync(self) -> None:
        with self.lock:
            pairs = [(channel, sub) for channel, subs in self.subscriptions.items() for sub in subs]
        for channel, subscription in pairs:
            subscription.offer(Event(channel, RESYNC))

    def _run(self) -> None:
        pause, first = 0.1, True
        while not self.stopping.is_set():
            direct = libpq_settings(connection.settings_dict) | settings.LISTEN_AT  # not through a pooler
            try:
                with psycopg.connect(**direct, autocommit=True) as listening:
                    listening.execute(f"LISTEN {NOTIFY_CHANNEL}")
                    self.ready.set()
                    if not first:
                        self._resync()
                    pause, first = 0.1, False
                    while not self.stopping.is_set():
                        for note in listening.notifies(timeout=LOOK_UP_EVERY):
                            self._dispatch(Event(*json.loads(note.payload)))
            except psycopg.Error as error:
                logger.warning("The event connection was lost and is coming back: %s", type(error).__name__)
            self.ready.clear()
            self.stopping.wait(pause)
            pause = min(pause * 2, 5)

    def stop(self) -> None:
        """Stop the thread and close its connection, for tests. The next subscriber starts a new thread."""
        if self.thread is not None:
            self.stopping.set()
            self.thread.join()
            self.stopping.clear()


listener = Listener()


@asynccontextmanager
async def subscription(*channels: str) -> AsyncGenerator[Subscription, None]:
    """Subscribe to these channels. No event that is sent within the block is missed."""
    opened = Subscription(channels)
    listener.add(opened)
    if not listener.ready.is_set():
        await asyncio.to_thread(listener.ready.wait, 5)
    try:
        yield opened
    finally:
        listener.remove(opened)


async def subscribe(*channels: str, heartbeat: float | None = None) -> AsyncGenerator[Event | None, None]:
    """Yield the events of these channels, and None after each ``heartbeat`` seconds without an event."""
    async with subscription(*channels) as opened:
        while True:
            yield await opened.get(heartbeat)
