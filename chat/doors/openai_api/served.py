"""The models behind ``/v1`` and the names they go by there."""

from __future__ import annotations

from django.utils.translation import gettext as _

from chat.doors.openai_api.errors import ModelMissing
from workspaces.connections.choice import Chosen, all_for
from workspaces.models import User, Workspace

BUILT_IN = "built-in"  # while its server, which knows the name, is still starting
WHATEVER = frozenset({"", "default", "memoryhub"})


def served(workspace: Workspace, person: User) -> dict[str, Chosen]:
    """Every model that this person may ask here, by its name; first the one that answers where none is chosen.

    Of two connections to models of one name the later goes by its own name, or by its id.
    """
    found: dict[str, Chosen] = {}
    for chosen in all_for(workspace, person):
        own = [chosen.connection.name, chosen.connection.public_id] if chosen.connection else []
        name = next((each for each in [chosen.model.name or BUILT_IN, *own] if each not in found), "")
        if name and chosen.trouble is None:
            found[name] = chosen
    return found


def find_model(wanted: str, workspace: Workspace, person: User) -> Chosen:
    """By its name, also behind the workspace's (``Launch/large-2``) or a connection's name or id. ModelMissing."""
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
