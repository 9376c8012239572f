"""Which connected models see pictures: what their servers say, or what came of sending one, kept with them."""

from __future__ import annotations

from workspaces.connections.choice import Chosen
from workspaces.models import Connection


def find_out(chosen: Chosen) -> None:
    """Where nobody knows, the server's list of models is asked; two seconds at the most, once a process."""
    chosen.model.find_sight()
    remember(chosen.connection, chosen.model.sees)


def remember(connection: Connection | None, sees: bool | None) -> None:
    """What was found, unless somebody has said it, or another model stands there, meanwhile."""
    if connection is None or sees is None or connection.sees is not None:
        return
    asked = {"base_url": connection.base_url, "model": connection.model, "sees": None}
    Connection.objects.filter(pk=connection.pk, **asked).update(sees=sees)
