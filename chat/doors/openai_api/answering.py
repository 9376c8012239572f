"""One request to ``/v1``: who asks which model where, what is remembered, and the answer, whole or streamed."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from django.conf import settings
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.answers.threads import in_thread
from chat.doors.openai_api.errors import error_of
from chat.doors.openai_api.pump import Chunk, Pump, ReadSoFar
from chat.doors.openai_api.reading import Asked, Body
from chat.doors.openai_api.recalled_for_program import Remembered, expect_recall, remember
from chat.doors.openai_api.served import find_model
from chat.turns import passing, runner
from memoryhub.errors import DomainError, Forbidden, Invalid, NotFound
from memoryhub.llm.errors import ModelError
from workspaces.access import get_workspace, role_in
from workspaces.accounts.keys import still_opens
from workspaces.caller import Caller
from workspaces.connections.choice import Chosen
from workspaces.event_streams import Place
from workspaces.leaving_machine import Reach
from workspaces.models import Agent, ApiKey, Workspace
from workspaces.throttles import spend

RECHECK_SECONDS = 2.0  # in which a revoked key, or a member who was removed, is noticed
BEAT_SECONDS = 15.0  # of silence: keeps proxies from closing a stream whose model thinks


@dataclass(frozen=True)
class Answering:
    """All that a request is answered with."""

    caller: Caller
    chosen: Chosen
    remembered: Remembered
    body: Body

    @property
    def headers(self) -> dict[str, str]:
        return {"X-MemoryHub-Used": ", ".join(self.remembered.used)}

    def keep(self, read: ReadSoFar) -> None:
        """What was said is mined later, if it may be."""
        if self.remembered.turn is not None:
            passing.end(self.remembered.turn.pk, read.said, is_over=read.is_over, now=timezone.now())


def prepare(asked: Asked, key: ApiKey, *, now: datetime) -> Answering:
    """Raises NotFound, Forbidden, TooManyRequests, and a ModelError where the model may not be asked here."""
    expect_recall(asked, key.user, now=now)
    workspace = get_workspace(key.user, key.workspace.public_id)
    if asked.workspace not in {"", workspace.public_id, workspace.name}:
        raise NotFound(_("This workspace does not exist, or this key is not for it."))
    chosen = find_model(asked.model, workspace, key.user)
    model = chosen.ask()
    reach = Reach.to_model(workspace, is_local=model.capabilities.local, personal=True)
    agent = _agent(workspace, asked.assistant) if asked.assistant else None
    caller = Caller(key.user, workspace, workspace.role, reach, now, agent, key)
    spend("turns", key.user, now=now)
    remembered = remember(asked, caller, chosen)
    body = {**asked.body, "messages": remembered.messages}
    if chosen.connection is None and settings.EMBEDDED_MODEL and "max_completion_tokens" not in body:
        body.setdefault("max_tokens", settings.LLM_MAX_TOKENS)  # it would go on until its context is full
    return Answering(caller, chosen, remembered, body)


def _agent(workspace: Workspace, wanted: str) -> Agent:
    """By its id or its name."""
    agents = Agent.objects.in_use().filter(workspace=workspace)
    found = agents.filter(public_id=wanted).first() or agents.filter(name__iexact=wanted).first()
    if found is None:
        raise Invalid(fields={"memoryhub_assistant": _("is not an assistant of this workspace")})
    return found


def whole(answering: Answering) -> Body:
    """The model's answer, with what was used and saved beside it. Blocks."""
    reply = answering.chosen.model.raw.whole({**answering.body, "stream": False})
    read = ReadSoFar()
    read.read(reply["choices"], part="message")
    if read.is_over:
        runner.submit(in_thread(answering.keep, read))  # who asked need not wait for it
    else:
        answering.keep(read)  # before the program comes back with what its tool said
    return {**reply, "memoryhub": answering.remembered.note}


class Shape(Protocol):
    """How a stream is written: each gives the lines of what has come, of the end, or of what went wrong."""

    def chunks(self, chunks: Iterable[Chunk]) -> str: ...
    def over(self) -> str: ...
    def failed(self, error: Exception) -> str: ...


class AsChunks:
    """The model's own chunks; the first says what was used and saved."""

    def __init__(self, note: Body) -> None:
        self._note = {"memoryhub": note}

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
    """Server-sent events of an answer. Holds its ``place`` and keeps its model at work until it is closed."""

    def __init__(self, answering: Answering, shape: Shape, *, place: Place) -> None:
        raw = answering.chosen.model.raw
        self._pump, self._place = Pump(raw.stream({**answering.body, "stream": True}), answering.keep), place
        try:
            self._pump.wait_for_first()
        except BaseException:
            place.leave()
            raise
        super().__init__(_events(self._pump, shape, answering.caller), content_type="text/event-stream")
        for name, value in answering.headers.items():
            self[name] = value
        self["Cache-Control"] = "no-store, no-transform"
        self["X-Accel-Buffering"] = "no"

    def close(self) -> None:
        self._pump.stop()
        self._place.leave()
        super().close()


async def _events(pump: Pump, shape: Shape, caller: Caller) -> AsyncGenerator[str, None]:
    looked = sent = time.monotonic()
    try:
        while (chunks := await pump.take(RECHECK_SECONDS)) is not None:
            now = time.monotonic()
            if now - looked >= RECHECK_SECONDS:
                if not await in_thread(_may_go_on, caller):
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


def _may_go_on(caller: Caller) -> bool:
    assert caller.key is not None
    is_member = role_in(caller.person, caller.workspace) is not None
    return is_member and still_opens(caller.key, now=timezone.now())
