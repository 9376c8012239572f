"""Answers to requests of ``/v1``: user, model and recalled memories, and the response, complete or streamed."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from django.conf import settings
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.live_answers import in_thread
from chat.programs.openai_api.memory import Noted, Remembered, prefetch_recall, reason, record_turn, remember
from chat.programs.openai_api.request import Asked, Body, ModelMissing, error_of, parts_of_body
from chat.turns import client_turns, turn
from memoryhub.database.queries import release_connection
from memoryhub.errors import DomainError, Forbidden, Invalid, NotFound
from memoryhub.llm.errors import ModelError
from memoryhub.llm.metering import Meter, Usage, metered
from memoryhub.llm.output_parsing import without_thoughts
from workspaces.access import get_workspace
from workspaces.accounts.keys import is_still_valid
from workspaces.data_policy import Caller, DataPolicy
from workspaces.model_choice import Chosen, all_for
from workspaces.models import Agent, ApiKey, Purpose, User, Workspace
from workspaces.quotas import spend
from workspaces.spending.budgets import require_budget
from workspaces.spending.usage_records import Account, rate_of, record
from workspaces.views.event_streams import StreamSlot

RECHECK_SECONDS = 2.0  # interval of the check for a revoked key or a removed member
NOTED_WITHIN = 60.0  # seconds to wait for the turn to be recorded; usually much less
BEAT_SECONDS = 15.0  # silence after which a heartbeat keeps proxies from closing the stream


@dataclass
class Answering:
    """The state of one request, from its preparation to the end of the answer."""

    asked: Asked
    caller: Caller
    chosen: Chosen
    remembered: Remembered
    body: Body
    noted: Noted = field(default_factory=Noted)  # the recorded turn, set by ``record_turn``
    _is_noted: threading.Event = field(default_factory=threading.Event)
    meter: Meter = field(default_factory=Meter)

    @property
    def account(self) -> Account:
        """Return the account that is billed for the model."""
        place, person = self.caller.workspace, self.caller.person
        return Account(place.pk, person.pk, Purpose.PROGRAM, rate_of(self.chosen))

    @property
    def headers(self) -> dict[str, str]:
        return {"X-MemoryHub-Used": ", ".join(self.remembered.used)}

    @property
    def note(self) -> Body:
        """Return the response's object ``memoryhub``: ids of the memories used and saved, or why there are none."""
        note: Body = {"used": list(self.remembered.used), "saved": list(self.noted.saved)}
        if unused := self.remembered.unused:
            note["not_used"] = reason(unused)
        if unsaved := self.noted.unsaved:
            note["not_saved"] = reason(unsaved)
        return {**note, "degraded": self.remembered.degraded} if self.remembered.degraded else note

    def record_turn(self) -> None:
        try:
            self.noted = record_turn(self.asked, self.caller, self.chosen, self.remembered)
        finally:
            self._is_noted.set()

    def keep(self, read: ReadSoFar) -> None:
        """Store the model's output with the recorded turn, queue extraction if allowed, and record the usage."""
        self._is_noted.wait(NOTED_WITHIN)  # the model may finish before the turn is recorded
        now = timezone.now()
        if self.noted.turn is not None:
            client_turns.end(self.noted.turn.pk, read.said, is_over=read.is_over, now=now)
        self.meter.add(Usage(), parts_of_body(self.body))
        record(self.account, self.meter, now=now)


def prepare(api_request: Asked, key: ApiKey, *, now: datetime) -> Answering:
    """Prepare a request: find the workspace and model, and recall memories.

    Raises NotFound for an unknown model or another workspace than the key's, Invalid for an unknown assistant,
    TooManyRequests, BudgetReached, and a ModelError if the model may not be used here.
    """
    prefetch_recall(api_request, key.user, now=now)
    workspace = get_workspace(key.user, key.workspace.public_id)
    if api_request.workspace not in {"", workspace.public_id, workspace.name}:
        raise NotFound(_("This workspace does not exist, or this key is not for it."))
    chosen = find_model(api_request.model, workspace, key.user)
    model = chosen.ask()
    policy = DataPolicy.to_model(workspace, is_local=model.capabilities.local, personal=True)
    agent = _agent(workspace, api_request.assistant) if api_request.assistant else None
    caller = Caller(key.user, workspace, workspace.role, policy, now, agent, key)
    require_budget(workspace.pk, key.user_id, lambda: rate_of(chosen), now=now)
    spend("turns", key.user, now=now)
    remembered = remember(api_request, caller, chosen)
    body = {**api_request.body, "messages": remembered.messages}
    if chosen.connection is None and settings.EMBEDDED_MODEL and "max_completion_tokens" not in body:
        # Without a limit, the model could write until its context is full.
        body.setdefault("max_tokens", settings.LLM_MAX_TOKENS)
    return Answering(api_request, caller, chosen, remembered, body)


def _agent(workspace: Workspace, wanted: str) -> Agent:
    """Return an assistant by its id or name. Raises Invalid if there is none."""
    agents = Agent.objects.in_use().filter(workspace=workspace)
    agent = agents.filter(public_id=wanted).first() or agents.filter(name__iexact=wanted).first()
    if agent is None:
        raise Invalid(fields={"memoryhub_assistant": _("is not an assistant of this workspace")})
    return agent


def whole(answering: Answering, shape: Callable[[Body], Shape], *, slot: StreamSlot) -> Body:
    """Return the response body with the complete answer. Blocks and occupies the stream slot until then."""
    answering.record_turn()
    release_connection()
    try:
        with metered(answering.meter):
            reply = answering.chosen.model.raw.whole({**answering.body, "stream": False})
    finally:
        slot.leave()
    read = ReadSoFar()
    read.read(reply["choices"], part="message")
    if read.is_over:
        turn.submit(_kept(answering, read))  # the client does not have to wait for this
    else:
        answering.keep(read)  # before the client sends the result of its tool
    if (key := answering.caller.key) is not None and not is_still_valid(key, now=timezone.now()):
        raise Forbidden(_("This API key may not be used any more."))
    return shape(answering.note).whole(reply)


async def _kept(answering: Answering, read: ReadSoFar) -> None:
    await in_thread(answering.keep, read)


class Shape(Protocol):
    """The format of an answer: the body of a complete one, and the lines of a stream for chunks, its end and errors."""

    def whole(self, reply: Body) -> Body: ...
    def chunks(self, chunks: Iterable[Chunk]) -> str: ...
    def over(self) -> str: ...
    def failed(self, error: Exception) -> str: ...


class AsChunks:
    """The format of chat completions: the model's own, of which the first chunk also names memories used and saved."""

    def __init__(self, note: Body) -> None:
        self._note = {"memoryhub": note}

    def whole(self, reply: Body) -> Body:
        return {**reply, **self._note}

    def chunks(self, chunks: Iterable[Chunk]) -> str:
        lines = []
        for chunk in chunks:
            lines.append(f"data: {json.dumps({**chunk, **self._note})}\n\n")
            self._note = {}
        return "".join(lines)

    def over(self) -> str:
        return "data: [DONE]\n\n"

    def failed(self, error: Exception) -> str:
        return f"data: {json.dumps(error_of(error)[1])}\n\n"


class AnswerStream(StreamingHttpResponse):
    """Response that streams an answer as server-sent events.

    Until it is closed, it occupies the stream slot and keeps the model running. The turn is recorded while the model is
    already running, before any part of the answer is sent.
    """

    def __init__(self, answering: Answering, shape: Callable[[Body], Shape], *, slot: StreamSlot) -> None:
        raw = answering.chosen.model.raw
        with metered(answering.meter):  # the pump also reports its usage to this meter
            self._pump = Pump(raw.stream({**answering.body, "stream": True}), answering.keep)
        self._slot = slot
        try:
            answering.record_turn()
            release_connection()
            self._pump.wait_for_first()
        except BaseException:
            self._pump.stop()
            slot.leave()
            raise
        assert answering.caller.key is not None
        events = _events(self._pump, shape(answering.note), answering.caller.key)
        super().__init__(events, content_type="text/event-stream")
        for name, value in answering.headers.items():
            self[name] = value
        self["Cache-Control"] = "no-store, no-transform"
        self["X-Accel-Buffering"] = "no"

    def close(self) -> None:
        self._pump.stop()
        self._slot.leave()
        super().close()


async def _events(pump: Pump, shape: Shape, key: ApiKey) -> AsyncGenerator[str, None]:
    looked = sent = time.monotonic()
    try:
        while (chunks := await pump.take(RECHECK_SECONDS)) is not None:
            now = time.monotonic()
            if now - looked >= RECHECK_SECONDS:
                if not await in_thread(is_still_valid, key, now=timezone.now()):
                    raise Forbidden(_("This API key may not be used any more."))
                looked = now
            if chunks or now - sent >= BEAT_SECONDS:
                yield shape.chunks(chunks) or ": still here\n\n"
                sent = now
        if pump.failed is not None:
            raise pump.failed
        yield shape.over()
    except (DomainError, ModelError) as error:
        yield shape.failed(error)
    finally:
        pump.stop()


# The answer is read from the model in the event loop of turns and passed on to the request. If the client disconnects,
# the model is stopped and the text so far is saved.

Chunk = dict[str, Any]


@dataclass
class ReadSoFar:
    """The model's output so far."""

    finish_reason: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether, after the last chunk, the turn has ended: the model does not call one of the client's tools."""
        return self.finish_reason not in {"tool_calls", "function_call"}

    def read(self, choices: Any, *, part: str) -> None:
        """Add the first choice of a chunk (``part`` is "delta") or of a complete answer ("message")."""
        choice = choices[0] if choices else None
        if not isinstance(choice, dict) or choice.get("index") not in (0, None):
            return
        message = choice.get(part)
        if isinstance(message, dict) and isinstance(message.get("content"), str):
            self.pieces.append(message["content"])
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]

    @property
    def said(self) -> str:
        """Return the text without the reasoning before it."""
        return without_thoughts("".join(self.pieces))


class Pump:
    """Buffer between a model, which is read in the event loop of turns, and the response that takes its chunks.

    At the end, ``done`` is called in a thread with the whole output, unless the model failed before any output.
    ``failed`` holds the error, if any.
    """

    def __init__(self, chunks: AsyncGenerator[Chunk, None], done: Callable[[ReadSoFar], None]) -> None:
        self.failed: Exception | None = None
        self._read, self._done = ReadSoFar(), done
        self._waiting: list[Chunk] = []
        self._is_over = False
        self._changed = threading.Condition()
        self._reader: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._running = turn.submit(self._run(chunks))

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
        """Block until the first chunk or the end. Raises the error if there was one before the first chunk."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_over)
            if self.failed is not None and not self._waiting:
                raise self.failed

    async def take(self, seconds: float) -> list[Chunk] | None:
        """Return the new chunks, an empty list if there are none within ``seconds``, or None at the end."""
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
            chunks, self._waiting = self._waiting, []
            return chunks if chunks or not self._is_over else None

    def stop(self) -> None:
        """Stop reading, because the client has disconnected."""
        self._running.cancel()


BUILT_IN = "built-in"  # used until the model's server has started and reported its name
DEFAULT = "default"  # listed with the models; answers with the first of them
WHATEVER = frozenset({"", DEFAULT, "memoryhub"})


def served(workspace: Workspace, person: User) -> dict[str, Chosen]:
    """Return the models that this user may use here, the default one first, by the name that clients use.

    That is the model's name or, if another model has it, the connection's name or else the connection's id.
    """
    models: dict[str, Chosen] = {}
    for chosen in all_for(workspace, person):
        own = [chosen.connection.name, chosen.connection.public_id] if chosen.connection else []
        name = next((each for each in [chosen.model.name or BUILT_IN, *own] if each not in models), "")
        if name and chosen.trouble is None:
            models[name] = chosen
    return models


def find_model(wanted: str, workspace: Workspace, person: User) -> Chosen:
    """Return a model by name, workspace and name (``Launch/large-2``), or connection. Raises ModelMissing."""
    models = served(workspace, person)
    bare = wanted.removeprefix(f"{workspace.name}/")
    for name in (wanted, bare):
        if name in models:
            return models[name]
        for chosen in models.values():
            if chosen.connection and name in {chosen.connection.name, chosen.connection.public_id}:
                return chosen
    if bare in WHATEVER and models:
        return next(iter(models.values()))
    names = ", ".join(models) or "-"
    raise ModelMissing(
        _("There is no model of this name here, or you may not use it. There are: %s.") % names
    )
