"""Connecting a model by its address: what a server offers, whether the model answers, and where it answers then."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from memoryhub.errors import Forbidden, Invalid, NotFound
from memoryhub.llm.addresses import CONTROL, AddressRange
from memoryhub.llm.clients import Endpoint
from memoryhub.llm.probe import list_models
from workspaces.actions.workspaces import update_workspace
from workspaces.connections.actions import (
    create_connection,
    draft_connection,
    may_manage,
    update_connection,
)
from workspaces.connections.choice import Report, reach_of, report_on, why_not_here
from workspaces.models import Role, User, Workspace
from workspaces.models.connections import MODEL_LENGTH, NAME_LENGTH, Connection
from workspaces.quotas import spend

SECONDS = 5.0  # that a server has to list its models
MOST_OFFERED = 500  # of them that are shown


@dataclass(frozen=True)
class Connected:
    connection: Connection
    report: Report
    workspace: Workspace | None  # where it answers from now on


def list_offered(*, by: User, now: datetime, **values: Any) -> list[str]:
    """The models of a server, by name. Forbidden; Invalid where the address is wrong, or nobody there lists any;
    TooManyRequests.
    """
    draft = _draft(by=by, now=now, **values | {"name": "-", "model": "-"})
    spend("model tests", by, now=now)
    endpoint = Endpoint(draft.base_url, draft.api_key, "", reach_of(draft))
    names = usable(list_models(endpoint, seconds=SECONDS) or [])
    if not names:
        unlisted = _(
            "No list of models came from there: check the address and the key, or type the model's name."
        )
        raise Invalid(fields={"model": unlisted})
    return sorted(names)[:MOST_OFFERED]


def try_out(*, by: User, now: datetime, **values: Any) -> Report:
    """Whether it would answer, without keeping anything. Half a minute at the most. As ``list_offered``."""
    draft = _draft(by=by, now=now, **values)
    spend("model tests", by, now=now)
    return replace(report_on(draft), hints=[])  # what it can do is kept as it was tried


def connect(*, by: User, now: datetime, place: Workspace | None, **values: Any) -> Connected | Report:
    """Try it, and keep it if it answers, to answer in ``place``; else what did not work. As ``try_out``."""
    report = try_out(by=by, now=now, **values)
    if not report.answers:
        return report
    kept = keep(by=by, now=now, **values | report.abilities)
    return Connected(kept, report, answers_in(place, kept, by=by))


def keep(*, by: User, now: datetime, **values: Any) -> Connection:
    """Without trying it, as while its server is away."""
    return create_connection(by=by, now=now, **_whole(values))


def answers_in(place: Workspace | None, connection: Connection, *, by: User) -> Workspace | None:
    """Have it answer there, where its owner asks, nothing is chosen that this would take the place of, and it may."""
    if place is None or place.connection_id is not None or not Role(place.role).allows(Role.OWNER):
        return None
    if why_not_here(place, connection.is_local, connection.name):
        return None
    if connection.is_default:
        return place
    return update_workspace(place, by=by, connection_id=connection.public_id)


def usable(names: Iterable[str]) -> list[str]:
    """Return those of a server's names that can be a model's name here."""
    return [name for name in names if 0 < len(name) <= MODEL_LENGTH and not CONTROL.search(name)]


def _draft(*, by: User, now: datetime, **values: Any) -> Connection:
    return draft_connection(by=by, now=now, **_whole(values))


def _whole(values: dict[str, Any]) -> dict[str, Any]:
    """With what the form leaves out: the name is the model's, and one on this machine is local."""
    is_local = False
    with suppress(ValueError):  # no address: the form says so
        is_local = Endpoint(values["base_url"], "", "").is_on_this_machine
    name = values.get("name") or values["model"][:NAME_LENGTH]
    return {**values, "name": name, "is_local": is_local and values["shared"]}


# Model servers that run on this machine: looked for where their makers put them, and connected in one click.
#
# No page decides which addresses are tried: the loopback address and the three usual ports are fixed. Only people who
# may connect to addresses of this network looks, and each look is an act of theirs, not of a page that is opened.

SERVERS = {"ollama": ("Ollama", 11434), "lm-studio": ("LM Studio", 1234), "llama-cpp": ("llama.cpp", 8080)}
LOCAL_SECONDS = 1.0  # that each has to answer
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


def connect_local(
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
    names = list_models(Endpoint(_address(server), "", "", AddressRange.INTERNAL), seconds=LOCAL_SECONDS)
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
