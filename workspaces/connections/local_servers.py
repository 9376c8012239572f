"""Model servers that run on this machine: looked for where their makers put them, and connected in one click.

No page decides which addresses are tried: the loopback address and the three usual ports are fixed. Only people who may
connect to addresses of this network looks, and each look is an act of theirs, not of a page that is opened.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from memoryhub.errors import Forbidden, Invalid, NotFound
from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.clients import Endpoint
from memoryhub.llm.probe import list_models
from workspaces.connections.actions import (
    create_connection,
    draft_connection,
    may_manage,
    update_connection,
)
from workspaces.connections.connecting import Connected, answers_in, usable
from workspaces.connections.trial import Report, report_on
from workspaces.models import User, Workspace
from workspaces.models.connection import NAME_LENGTH, Connection
from workspaces.throttles import spend

SERVERS = {"ollama": ("Ollama", 11434), "lm-studio": ("LM Studio", 1234), "llama-cpp": ("llama.cpp", 8080)}
SECONDS = 1.0  # that each has to answer
MOST_MODELS = 50
# Tokens, as these servers begin with: more is cut off silently where they were not told otherwise.
CONTEXT = 4096


@dataclass(frozen=True)
class Running:
    """A server that answered, and its models by their own names; none if it has none yet."""

    key: str  # of SERVERS
    name: str
    models: list[str]


def may_find(user: User) -> bool:
    """Administrators for everybody; people for themselves, where the operator lets them into this network."""
    return may_manage(user) or (settings.PEOPLE_MAY_CONNECT and settings.PEOPLE_MAY_CONNECT_INTERNAL)


def find(*, by: User, now: datetime) -> list[Running]:
    """Ask the usual ports, side by side; a second at the most. Forbidden, TooManyRequests."""
    _require_leave(by)
    spend("model tests", by, now=now)
    return running()


def running() -> list[Running]:
    """The same for a caller who has been let and has counted it."""
    with ThreadPoolExecutor(len(SERVERS)) as asking:
        found = list(asking.map(_models_at, SERVERS))
    return [
        Running(key, SERVERS[key][0], models)
        for key, models in zip(SERVERS, found, strict=True)
        if models is not None
    ]


def connect(
    server: str, model: str, *, by: User, now: datetime, place: Workspace | None = None
) -> Connected | Report:
    """Try a model that one of them offers, and connect it if it answers, to answer in ``place``, where this person owns
    it and nothing else is chosen; else what did not work. Half a minute at the most. For everybody if an administrator
    does it.

    Forbidden, NotFound for another server, Invalid for a model that it does not offer, TooManyRequests.
    """
    _require_leave(by)
    if server not in SERVERS:
        raise NotFound(_("This is none of the servers that are looked for."))
    spend("model tests", by, now=now)  # before anything is sent or kept
    if model not in (_models_at(server) or []):
        raise Invalid(
            fields={"model": _("%s does not offer this model now. Look again.") % SERVERS[server][0]}
        )
    values = _values(server, model, by)
    there = Connection.objects.live().filter(base_url=values["base_url"], model=model)
    known = there.filter(owner=None if values["shared"] else by).first()
    report = report_on(known or draft_connection(by=by, now=now, **values))
    if not report.answers:
        return report
    if known is not None:
        kept = update_connection(known, by=by, now=now, **report.abilities)
    else:
        kept = create_connection(by=by, now=now, **values | report.abilities)
    return Connected(kept, report, answers_in(place, kept, by=by))


def _require_leave(user: User) -> None:
    if not may_find(user):
        raise Forbidden(_("Only administrators connect models of this machine."))


def _address(server: str) -> str:
    return f"http://127.0.0.1:{SERVERS[server][1]}/v1"


def _models_at(server: str) -> list[str] | None:
    """By the rule for endpoints that are marked local: at an internal address, without redirects, past any proxy.
    None where no such server answers, and where no name that it gives can be one.
    """
    names = list_models(Endpoint(_address(server), "", "", AddressRange.INTERNAL), seconds=SECONDS)
    return names and (usable(names)[:MOST_MODELS] or None)


def _values(server: str, model: str, by: User) -> dict[str, Any]:
    shared = may_manage(by)
    return {
        "shared": shared,
        "name": f"{model[: NAME_LENGTH - 20]} ({SERVERS[server][0]})",
        "base_url": _address(server),
        "model": model,
        "is_local": shared,
        "has_tools": False,
        "can_extract": False,
        "context_tokens": CONTEXT,
    }
