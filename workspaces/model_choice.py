"""Choice of the model that answers.

The order is the chat's model, the workspace's, the shared default, the model in the settings. Every view and endpoint
chooses again for each turn, so that a change takes effect immediately in every process.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.conf import settings
from django.utils.translation import gettext as _

from memoryhub.database.queries import PreparedQuery
from memoryhub.encryption import Unsealable
from memoryhub.errors import Invalid
from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.base import ChatModel
from memoryhub.llm.errors import ModelError, ModelNotLocal, ModelRefused
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.registry import LARGE_CAPABILITIES, chat_model_at, get_chat_model
from workspaces.models import User, Workspace
from workspaces.models.language_models import Connection

BUILT_IN = "built-in"  # used instead of a connection's id for the model in the settings
_EVERYONES_DEFAULT = PreparedQuery(lambda: Connection.objects.everyones_default())
_USABLE = PreparedQuery(lambda user: Connection.objects.usable_by(User(pk=user)), user=int)


@dataclass(frozen=True)
class Chosen:
    """The model chosen for one person's turns in one workspace.

    Use ``model`` only to read its properties. To send it a request, get it from ``ask()``, which raises ``trouble`` if
    the model may not be used here.
    """

    model: ChatModel
    connection: Connection | None = None  # None: the model in the settings
    lost: str = ""  # why the chosen model is not used, if so
    trouble: ModelError | None = None  # why it may not be used here

    def ask(self) -> ChatModel:
        """Return the model for a call. Raises ModelNotLocal for a remote model in a local-only workspace."""
        if self.trouble is not None:
            raise self.trouble
        return self.model

    @property
    def is_missing(self) -> bool:
        """Return whether there is no model, neither a connection nor one in the settings."""
        return self.connection is None and not settings.EMBEDDED_MODEL and not settings.LLM_BASE_URL

    @property
    def may_be_asked(self) -> bool:
        return not self.is_missing and self.trouble is None

    @property
    def answers_well(self) -> bool:
        """Return whether the model may be used here and is capable enough to suggest questions on the chat page."""
        able = self.model.capabilities
        answers_well = able.can_extract if able.answers_well is None else able.answers_well
        return self.may_be_asked and answers_well

    @property
    def label(self) -> str:
        """Return the model's displayed name."""
        return self.connection.name if self.connection else default_label()


@dataclass(frozen=True)
class Option:
    """An entry in a menu of models. ``why_not``: why it cannot be chosen here; empty if it can."""

    value: str  # public id, empty for the default
    label: str
    model: str
    is_chosen: bool
    is_local: bool
    is_own: bool = False
    why_not: str = ""


def chosen_for(workspace: Workspace, user: User | None, *, first: Connection | None = None) -> Chosen:
    """Return the model for this person's turns: the chat's choice ``first``, else the workspace's choice, else the
    default.

    A choice that was deleted or belongs to another person is skipped, and ``lost`` of the result says why. A remote
    model in a local-only workspace is not replaced silently: it is returned with ``trouble``, so that it cannot be
    called. At most two queries.
    """
    lost = ""
    for wanted in (first, workspace.connection):
        if wanted is None:
            continue
        if wanted.is_built_in:
            return _configured(workspace, lost)
        if why := _why_lost(wanted, user):
            lost = lost or why
            continue
        return Chosen(model_of(wanted), wanted, lost, _trouble_with(wanted, workspace))
    return _default(workspace, lost)


def all_for(workspace: Workspace, user: User) -> list[Chosen]:
    """Return every model that this person may choose, first the one that the workspace uses by default. Two queries.

    A model that may not be used in the workspace is included, with ``trouble`` set.
    """
    first, configured = chosen_for(workspace, user), _configured(workspace)
    others = [
        Chosen(model_of(each), each, trouble=_trouble_with(each, workspace))
        for each in _usable_by(user)
        if first.connection is None or each.pk != first.connection.pk
    ]
    return [first, *others] if first.connection is None else [first, configured, *others]


def _usable_by(user: User) -> Iterable[Connection]:
    own = settings.PEOPLE_MAY_CONNECT  # on which the query depends
    return _USABLE.all(user=user.pk) if own else Connection.objects.usable_by(user)


def _default(workspace: Workspace, lost: str = "") -> Chosen:
    """Return the shared default model, else the model in the settings.

    A shared default that the workspace does not allow, because it is remote, is skipped. ``lost``: why an earlier
    choice was skipped, which is set on the result.
    """
    everyones = _EVERYONES_DEFAULT.first()
    if everyones is None or why_not_allowed(workspace, everyones.is_local, everyones.name):
        return _configured(workspace, lost)
    return Chosen(model_of(everyones), everyones, lost, _trouble_with(everyones, workspace))


def _configured(workspace: Workspace, lost: str = "") -> Chosen:
    model = get_chat_model()
    refusal = why_not_allowed(workspace, model.capabilities.local, default_label())
    return Chosen(model, None, lost, ModelNotLocal(refusal) if refusal else None)


def model_of(connection: Connection) -> ChatModel:
    """Return the chat model of a connection, without a key if the key cannot be decrypted."""
    key = key_of(connection)
    endpoint = Endpoint(connection.base_url, key or "", connection.model, address_range_of(connection))
    return chat_model_at(connection.public_id, endpoint, connection.capabilities)


def key_of(connection: Connection) -> str | None:
    """Return the decrypted key, or None if no current encryption key decrypts it."""
    try:
        return connection.api_key
    except Unsealable:
        return None


def _trouble_with(connection: Connection, workspace: Workspace) -> ModelError | None:
    if refusal := why_not_allowed(workspace, connection.is_local, connection.name):
        return ModelNotLocal(refusal)
    if key_of(connection) is None:
        return ModelRefused(_("The stored key of this connection can no longer be read. Enter it again."))
    return None


def address_range_of(connection: Connection) -> AddressRange:
    if connection.is_local:
        return AddressRange.INTERNAL
    if connection.is_shared or settings.PEOPLE_MAY_CONNECT_INTERNAL:
        return AddressRange.ANYWHERE
    return AddressRange.PUBLIC


def options_for(
    workspace: Workspace, user: User, chosen: Connection | None, *, inherited: Connection | None = None
) -> list[Option]:
    """Return the entries of a menu of models. At most three queries.

    They are the default, the model in the settings, the shared connections and the person's own. ``chosen``: the
    current choice. ``inherited``: the workspace's choice, which a chat without its own choice uses.
    """
    default = chosen_for(workspace, user) if inherited is not None else _default(workspace)
    configured = _configured(workspace)
    is_chosen = chosen is not None and chosen.deleted_at is None
    options = [_option("", default, workspace, is_chosen=not is_chosen)]
    if default.connection is not None:
        picked = is_chosen and chosen is not None and chosen.is_built_in
        options.append(_option(BUILT_IN, configured, workspace, is_chosen=picked))
    for usable in Connection.objects.usable_by(user):
        picked = is_chosen and chosen is not None and chosen.pk == usable.pk
        if default.connection is None or usable.pk != default.connection.pk:
            options.append(
                _option(usable.public_id, Chosen(model_of(usable), usable), workspace, is_chosen=picked)
            )
    if not any(option.is_chosen for option in options):  # the choice equals the default
        options[0] = replace(options[0], is_chosen=True)
    return options


def _option(value: str, of: Chosen, workspace: Workspace, *, is_chosen: bool) -> Option:
    is_local = of.model.capabilities.local
    return Option(
        value,
        of.label,
        of.model.name,
        is_chosen,
        is_local,
        of.connection is not None and not of.connection.is_shared,
        why_not_allowed(workspace, is_local, of.label),
    )


def usable_connection(user: User, public_id: str) -> Connection | None:
    """Return the connection with this id if the person may use it, else None."""
    if public_id == BUILT_IN:
        return Connection.objects.built_in()
    return Connection.objects.usable_by(user).filter(public_id=public_id).first() if public_id else None


def choose_connection(workspace: Workspace, public_id: str, *, by: User) -> Connection:
    """Return the connection with this id for a workspace or a chat in it.

    Raises Invalid if it cannot be chosen there.
    """
    chosen = usable_connection(by, public_id)
    if chosen is None:
        raise Invalid(
            _("This model connection does not exist, or you cannot use it."),
            fields={"connection_id": _("is not a connection you can use")},
        )
    if chosen.is_built_in:
        why = why_not_allowed(workspace, get_chat_model().capabilities.local, default_label())
    else:
        why = why_not_allowed(workspace, chosen.is_local, chosen.name)
    if why:
        raise Invalid(why, code="model_not_local", fields={"connection_id": _("is not marked local")})
    return chosen


def why_not_allowed(workspace: Workspace, is_local: bool, label: str) -> str:
    """Return a sentence saying why a model may not be used in this workspace, or an empty string if it may."""
    if is_local or not workspace.local_only:
        return ""
    return _("This workspace's memories never leave this machine, and “%(name)s” is not marked local.") % {
        "name": label
    }


def default_label() -> str:
    """Return the displayed name of the model in the settings."""
    if not settings.EMBEDDED_MODEL:
        return settings.LLM_MODEL or _("No model")
    is_large = get_chat_model().capabilities == LARGE_CAPABILITIES
    return _("Larger built-in model") if is_large else _("Built-in model")


def _why_lost(connection: Connection, user: User | None) -> str:
    name = {"name": connection.name}
    if not connection.is_shared and (user is None or connection.owner_id != user.pk):
        return _("The model chosen here belongs to someone else and answers only them.")
    if connection.deleted_at is not None:
        return _("The connection “%(name)s”, which was chosen here, no longer exists.") % name
    if not connection.is_shared and not settings.PEOPLE_MAY_CONNECT:
        return _("People's own connections are turned off, “%(name)s” included.") % name
    return ""


# Whether a model accepts images: found out from its server's list or by sending one, and stored in the connection.


def detect_vision(chosen: Chosen) -> None:
    """Find out whether the model accepts images, from its server's list of models, if that is unknown.

    Requests the list once per process, for at most 2 s.
    """
    chosen.model.detect_vision()
    store_vision(chosen.connection, chosen.model.sees)


def store_vision(connection: Connection | None, sees: bool | None) -> None:
    """Store whether the model accepts images (None: unknown).

    Changes nothing if it is stored already, or if the connection has another model now.
    """
    if connection is None or sees is None or connection.sees is not None:
        return
    conditions = {"base_url": connection.base_url, "model": connection.model, "sees": None}
    Connection.objects.filter(pk=connection.pk, **conditions).update(sees=sees)
