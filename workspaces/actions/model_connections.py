"""Actions on connections to models: create, change, delete and test.

Administrators manage shared connections; people manage their own if the settings allow it.
"""

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection as db
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.utils.translation import ngettext

from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from memoryhub.llm.addresses import CONTROL, AddressRange, is_internal, literal, wrong_shape
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.metering import MOST_PRICE
from memoryhub.llm.model_check import list_models
from memoryhub.localization import grouped
from workspaces.actions.workspaces import update_workspace
from workspaces.audit import Verb, Word, record
from workspaces.connection_tests import Report, report_on
from workspaces.model_choice import address_range_of, why_not_allowed
from workspaces.models import Role, User, Workspace
from workspaces.models.language_models import (
    LEAST_CONTEXT,
    MODEL_LENGTH,
    MOST_CONTEXT,
    NAME_LENGTH,
    URL_LENGTH,
    Connection,
)
from workspaces.quotas import spend

KEY_LENGTH = 1000
PRICES = ("price_in", "price_cached", "price_out")
MOST_OWN = 20  # of one person
KEY = re.compile(r"[!-~]*")  # characters that a header may have
NOT_YOURS = later("This connection does not exist, or you do not have access to it.")


@dataclass(frozen=True)
class Used:
    """Numbers of workspaces and chats that used a deleted connection."""

    workspaces: int = 0
    chats: int = 0

    def sentence(self) -> str:
        """Return a sentence about the consequences for these workspaces and chats; empty if there are none."""
        if not self.workspaces and not self.chats:
            return ""
        workspaces = ngettext("%d workspace", "%d workspaces", self.workspaces) % self.workspaces
        chats = ngettext("%d chat", "%d chats", self.chats) % self.chats
        text = _(
            "%(workspaces)s and %(chats)s used it: they continue with the next model that is set, and say so."
        )
        return text % {"workspaces": workspaces, "chats": chats}


def may_manage(user: User) -> bool:
    """Return whether this person may manage the shared connections.

    Only superusers may, because a connection's server receives everything that is sent through it, including private
    chats.
    """
    return user.is_active and user.is_staff and user.is_superuser


def may_connect(user: User) -> bool:
    """Return whether this person may connect models, shared ones or their own."""
    return settings.PEOPLE_MAY_CONNECT or may_manage(user)


def get_connection(user: User, public_id: str, *, to: str = "use") -> Connection:
    """Return the connection with this id.

    ``to``: what the person is going to do with it, which is ``use``, ``change`` or ``delete``. Raises NotFound if they
    may not use it, Forbidden if they may not change or delete it.
    """
    connection = Connection.objects.live().filter(public_id=public_id).first()
    if connection is None or (connection.owner_id is not None and connection.owner_id != user.pk):
        raise NotFound(NOT_YOURS)
    if to == "use":
        if not connection.is_shared and not settings.PEOPLE_MAY_CONNECT:
            raise NotFound(NOT_YOURS)
    elif connection.is_shared:
        _require_manager(user)
    elif to != "delete":
        _require_own_allowed()
    return connection


def draft_connection(*, by: User, now: datetime, shared: bool = False, **values: Any) -> Connection:
    """Return an unsaved connection with these ``values``, which are validated.

    ``shared``: for everyone; administrators only. Raises Forbidden if this person may not connect models, Invalid for a
    wrong value.
    """
    if shared:
        _require_manager(by)
    else:
        _require_own_allowed()
    connection = Connection(owner=None if shared else by, created_at=now, updated_at=now)
    _set(connection, values)
    return connection


def create_connection(*, by: User, now: datetime, **values: Any) -> Connection:
    """Validate the ``values`` and create a connection from them, without testing it.

    Raises Forbidden if the person may not connect models, Invalid for a wrong value, and Conflict if they have
    ``MOST_OWN`` connections.
    """
    connection = draft_connection(by=by, now=now, **values)
    with transaction.atomic():
        if not connection.is_shared:
            User.objects.select_for_update(of=("self",)).get(pk=by.pk)
            if Connection.objects.live().filter(owner=by).count() >= MOST_OWN:
                raise Conflict(
                    _("You have %d connections, which is as many as one person can have.") % MOST_OWN
                )
        _save(connection)
        _audit(Verb.CONNECTION_MADE, connection, by)
    return connection


def update_connection(connection: Connection, *, by: User, now: datetime, **changes: Any) -> Connection:
    """Change the given fields. Answers that begin afterwards use the new values, in every process.

    Without ``api_key`` the stored key stays, but only for the same server: raises Invalid if the new address is on
    another server, because the stored key is never sent to another server.
    """
    get_connection(by, connection.public_id, to="change")
    with transaction.atomic():
        held = Connection.objects.live().select_for_update(of=("self",)).filter(pk=connection.pk).first()
        if held is None:
            raise NotFound(NOT_YOURS)
        before, old_target, sees = urlsplit(held.base_url)[:2], (held.base_url, held.model), held.sees
        _set(held, changes)
        if (held.base_url, held.model) != old_target and held.sees == sees:
            held.sees = None  # unknown for another model until it is detected
        if held.has_key and "api_key" not in changes and urlsplit(held.base_url)[:2] != before:
            raise Invalid(
                fields={"api_key": _("Enter the key again: the stored one is not sent to another server.")}
            )
        held.updated_at = now
        _save(held)
        _audit(Verb.CONNECTION_CHANGED, held, by, fields=[*sorted(changes)])
    return held


def delete_connection(connection: Connection, *, by: User, now: datetime) -> Used:
    """Delete a connection with its key. Chats and workspaces that used it fall back to the next configured model."""
    get_connection(by, connection.public_id, to="delete")
    with transaction.atomic():
        held = Connection.objects.live().select_for_update(of=("self",)).filter(pk=connection.pk).first()
        if held is None:
            raise NotFound(NOT_YOURS)
        used = Used(held.workspaces.count(), held.chats.count())
        _audit(Verb.CONNECTION_DELETED, held, by)
        if used.workspaces or used.chats:
            held.base_url = held.sealed_key = ""
            held.is_default = False
            held.deleted_at = held.updated_at = now
            held.save()
        else:
            held.delete()
    return used


def _save(connection: Connection) -> None:
    """Save a connection. A new default for everyone replaces the previous one, even if two are saved concurrently."""
    if connection.is_default:
        with db.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext('default connection'))")
        Connection.objects.filter(is_default=True).exclude(pk=connection.pk).update(is_default=False)
    connection.save()


def _require_manager(user: User) -> None:
    if not may_manage(user):
        raise Forbidden(_("Only administrators can change shared connections."))


def _require_own_allowed() -> None:
    if not settings.PEOPLE_MAY_CONNECT:
        raise Forbidden(_("Administrators connect models here. Ask one of them if you need another."))


def _audit(verb: Verb, connection: Connection, by: User, **details: list[Word]) -> None:
    """Record the action in the audit log without the key and the address, which may contain a key."""
    words: dict[str, Word | list[Word]] = {"shared": connection.is_shared, "local": connection.is_local}
    record(verb, by=by, target=connection.public_id, details={**words, **details})


def _set(connection: Connection, values: dict[str, Any]) -> None:
    """Validate the values and set them. Raises Invalid with all errors by field."""
    wrong: dict[str, str] = {}
    for name, longest in (("name", NAME_LENGTH), ("model", MODEL_LENGTH)):
        if name in values or connection.pk is None:
            text = " ".join(str(values.get(name, "")).split())
            if not 1 <= len(text) <= longest or CONTROL.search(text):
                wrong[name] = _("Must have 1 to %d characters.") % longest
            setattr(connection, name, text)
    for name in ("has_tools", "can_extract", "is_local", "sees", "is_default"):
        if name in values:
            setattr(connection, name, values[name])
    if "context_tokens" in values:
        connection.context_tokens = values["context_tokens"]
        if not LEAST_CONTEXT <= connection.context_tokens <= MOST_CONTEXT:
            wrong["context_tokens"] = _("Must be from %(least)d to %(most)d.") % {
                "least": LEAST_CONTEXT,
                "most": MOST_CONTEXT,
            }
    wrong |= _set_prices(connection, values)
    if "base_url" in values or connection.pk is None:
        connection.base_url = str(values.get("base_url", "")).strip().rstrip("/")
    if connection.is_local and not connection.is_shared:
        wrong["is_local"] = _("Only administrators can mark a connection as local.")
    if connection.is_default and not connection.is_shared:
        wrong["is_default"] = _("Only a connection for everyone can be the default for everyone.")
    looked_at = connection.pk is None or {"base_url", "is_local"} & set(values)
    if looked_at and (problem := _wrong_address(connection)):
        wrong["base_url"] = problem
    if "api_key" in values:
        key = str(values["api_key"]).strip()
        if len(key) > KEY_LENGTH or not KEY.fullmatch(key):
            wrong["api_key"] = _("Is too long, or has characters that no key contains.")
        else:
            connection.set_key(key)
    if wrong:
        raise Invalid(fields=wrong)


def _set_prices(connection: Connection, values: dict[str, Any]) -> dict[str, str]:
    """Set the prices per million tokens. Return the errors by field."""
    wrong: dict[str, str] = {}
    for name in PRICES:
        if name in values:
            price = values[name]
            setattr(connection, name, price)
            if price is not None and not (price.is_finite() and 0 <= price <= MOST_PRICE):
                wrong[name] = _("Must be from 0 to %s.") % grouped(MOST_PRICE)
    missing = [name for name in ("price_in", "price_out") if getattr(connection, name) is None]
    if not wrong and (len(missing) == 1 or (missing and connection.price_cached is not None)):
        wrong[missing[0]] = _("Enter what tokens in and out cost, or neither.")
    return wrong


def _wrong_address(connection: Connection) -> str:
    """Return an error message for the address, or an empty string. Does not connect to it."""
    url = connection.base_url
    example = _("Must be an address such as https://api.example.org/v1.")
    if problem := wrong_shape(url, longest=URL_LENGTH, example=example):
        return problem
    internal = is_internal(url)
    if connection.is_local and literal(urlsplit(url).hostname or "") and not internal:
        return _("Is an address on the internet: a connection marked local cannot be there.")
    if not connection.is_shared and internal and not settings.PEOPLE_MAY_CONNECT_INTERNAL:
        return _("Is an address inside this server's network, which only administrators may connect to.")
    return ""


SECONDS = 5.0  # timeout for listing a server's models
MOST_OFFERED = 500  # models that are shown


@dataclass(frozen=True)
class Connected:
    connection: Connection
    report: Report
    workspace: Workspace | None  # the workspace that uses it from now on


def list_offered(*, by: User, now: datetime, **values: Any) -> list[str]:
    """Return the model names that a server lists, at most ``MOST_OFFERED``.

    Raises Forbidden, TooManyRequests, or Invalid for a wrong address or a server that lists no models.
    """
    draft = draft_connection(by=by, now=now, **_with_defaults(values | {"name": "-", "model": "-"}))
    spend("model tests", by, now=now)
    endpoint = Endpoint(draft.base_url, draft.api_key, "", address_range_of(draft))
    names = valid_names(list_models(endpoint, seconds=SECONDS) or [])
    if not names:
        unlisted = _(
            "No list of models came from there: check the address and the key, or type the model's name."
        )
        raise Invalid(fields={"model": unlisted})
    return sorted(names)[:MOST_OFFERED]


def test_draft(*, by: User, now: datetime, **values: Any) -> Report:
    """Test a connection with these ``values`` without saving it, and return the report. Takes at most half a minute.

    Raises Forbidden if the person may not connect models, Invalid for a wrong value, and TooManyRequests.
    """
    draft = draft_connection(by=by, now=now, **_with_defaults(values))
    spend("model tests", by, now=now)
    return replace(report_on(draft), hints=[])  # the tested capabilities are saved as they are


def connect(*, by: User, now: datetime, place: Workspace | None, **values: Any) -> Connected | Report:
    """Test a connection, and save it if the model answers. Return it as ``Connected``, or else the report of the test.

    ``place``: a workspace that uses the connection from then on, if ``use_in_workspace`` allows it. Raises Forbidden if
    the person may not connect models, Invalid for a wrong value, Conflict above ``MOST_OWN``, and TooManyRequests.
    """
    report = test_draft(by=by, now=now, **values)
    if not report.answers:
        return report
    connection = save_untested(by=by, now=now, **values | report.abilities)
    return Connected(connection, report, use_in_workspace(place, connection, by=by))


def save_untested(*, by: User, now: datetime, **values: Any) -> Connection:
    """Save a connection without testing it, for example while its server is unavailable."""
    return create_connection(by=by, now=now, **_with_defaults(values))


def use_in_workspace(workspace: Workspace | None, connection: Connection, *, by: User) -> Workspace | None:
    """Make the connection the model of this workspace.

    Return the workspace if it uses the connection from now on. Return None without a change if ``by`` is no owner, if
    the workspace has chosen a model already, or if it may not use the connection.
    """
    if workspace is None or workspace.connection_id is not None or workspace.role != Role.OWNER:
        return None
    if why_not_allowed(workspace, connection.is_local, connection.name):
        return None
    if connection.is_default:
        return workspace
    return update_workspace(workspace, by=by, connection_id=connection.public_id)


def valid_names(names: Iterable[str]) -> list[str]:
    """Return the model names that are not too long and have no control characters."""
    return [name for name in names if 0 < len(name) <= MODEL_LENGTH and not CONTROL.search(name)]


def _with_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """Return the form's values with defaults: the model's name as the connection's name, and whether it is local.

    It is local if it is shared and its address is on this machine.
    """
    is_local = False
    with suppress(ValueError):  # not a URL: validation reports it later
        is_local = Endpoint(values["base_url"], "", "").is_on_this_machine
    name = values.get("name") or values["model"][:NAME_LENGTH]
    return {**values, "name": name, "is_local": is_local and values["shared"]}


# Model servers on this machine, found at their default ports and connected in one click.
#
# The loopback address and the three ports are fixed; no request can choose others. Only people who may connect to
# internal addresses can search, and only by an explicit action.

SERVERS = {"ollama": ("Ollama", 11434), "lm-studio": ("LM Studio", 1234), "llama-cpp": ("llama.cpp", 8080)}
LOCAL_SECONDS = 1.0  # timeout for each server
MOST_MODELS = 50
# Tokens. The default of these servers, which silently cut off longer prompts.
CONTEXT = 4096


@dataclass(frozen=True)
class Running:
    """A model server that runs on this machine, such as Ollama, with the names of its models, which may be none."""

    key: str  # of SERVERS
    name: str
    models: list[str]


def may_find(user: User) -> bool:
    """Return whether this person may search for local servers.

    Administrators may. Others may if the settings allow them to connect to internal addresses.
    """
    return may_manage(user) or (settings.PEOPLE_MAY_CONNECT and settings.PEOPLE_MAY_CONNECT_INTERNAL)


def find_local_servers(*, by: User, now: datetime) -> list[Running]:
    """Return the model servers on this machine that answer at their default ports, after at most a second.

    Raises Forbidden if the person may not search (``may_find``), and TooManyRequests.
    """
    _require_leave(by)
    spend("model tests", by, now=now)
    return running_servers()


def running_servers() -> list[Running]:
    """Return the model servers on this machine that answer. The caller must check the right and the rate limit."""
    with ThreadPoolExecutor(len(SERVERS)) as asking:
        model_lists = list(asking.map(_models_at, SERVERS))
    return [
        Running(key, SERVERS[key][0], models)
        for key, models in zip(SERVERS, model_lists, strict=True)
        if models is not None
    ]


def connect_local(
    server: str, model: str, *, by: User, now: datetime, place: Workspace | None = None
) -> Connected | Report:
    """Test a model of a server on this machine, and save a connection to it if it answers. Takes at most half a minute.

    Returns the connection as ``Connected``, or else the report of the test. ``server``: a key of ``SERVERS``.
    ``place``: a workspace that uses the connection from then on, if ``use_in_workspace`` allows it. An administrator's
    connection is shared. Raises Forbidden if the person may not search for servers, NotFound for an unknown server,
    Invalid for a model that the server does not offer, TooManyRequests.
    """
    _require_leave(by)
    if server not in SERVERS:
        raise NotFound(_("This is not one of the servers that MemoryHub looks for."))
    spend("model tests", by, now=now)  # before anything is sent or stored
    if model not in (_models_at(server) or []):
        raise Invalid(
            fields={"model": _("%s does not offer this model now. Look again.") % SERVERS[server][0]}
        )
    shared = may_manage(by)
    values: dict[str, Any] = {
        "shared": shared,
        "name": f"{model[: NAME_LENGTH - 20]} ({SERVERS[server][0]})",
        "base_url": _address(server),
        "model": model,
        "is_local": shared,
        "has_tools": False,
        "can_extract": False,
        "context_tokens": CONTEXT,
    }
    there = Connection.objects.live().filter(base_url=values["base_url"], model=model)
    known = there.filter(owner=None if shared else by).first()
    report = report_on(known or draft_connection(by=by, now=now, **values))
    if not report.answers:
        return report
    if known is not None:
        connection = update_connection(known, by=by, now=now, **report.abilities)
    else:
        connection = create_connection(by=by, now=now, **values | report.abilities)
    return Connected(connection, report, use_in_workspace(place, connection, by=by))


def _require_leave(user: User) -> None:
    if not may_find(user):
        raise Forbidden(_("Only administrators connect models of this machine."))


def _address(server: str) -> str:
    return f"http://127.0.0.1:{SERVERS[server][1]}/v1"


def _models_at(server: str) -> list[str] | None:
    """Return the usable model names of a server on this machine (a key of ``SERVERS``), or None if it does not answer.

    The request follows the rules for local endpoints: internal address, no redirects, no proxy.
    """
    names = list_models(Endpoint(_address(server), "", "", AddressRange.INTERNAL), seconds=LOCAL_SECONDS)
    return names and (valid_names(names)[:MOST_MODELS] or None)
