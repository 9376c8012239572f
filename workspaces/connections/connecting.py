"""Connecting a model by its address: what a server offers, whether the model answers, and where it answers then."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from memoryhub.errors import Invalid
from memoryhub.llm.clients import Endpoint
from memoryhub.llm.probe import list_models
from workspaces.actions.workspaces import update_workspace
from workspaces.connections.actions import create_connection, draft_connection
from workspaces.connections.choice import reach_of, why_not_here
from workspaces.connections.trial import Report, report_on
from workspaces.models import Role, User, Workspace
from workspaces.models.connection import MODEL_LENGTH, NAME_LENGTH, Connection
from workspaces.throttles import spend
from workspaces.typed_address import CONTROL

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
