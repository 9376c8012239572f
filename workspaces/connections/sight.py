"""Whether connected models see pictures: from their servers' lists or from sending one, stored with them."""

from __future__ import annotations

from workspaces.connections.choice import Chosen
from workspaces.models import Connection


def find_out(chosen: Chosen) -> None:
    """Look in the server's list of models if it is unknown; two seconds at most, once a process."""
    chosen.model.find_sight()
    remember(chosen.connection, chosen.model.sees)


def remember(connection: Connection | None, sees: bool | None) -> None:
    """Store the result, unless somebody has set it, or another model is there by now."""
    if connection is None or sees is None or connection.sees is not None:
        return
    asked = {"base_url": connection.base_url, "model": connection.model, "sees": None}
    Connection.objects.filter(pk=connection.pk, **asked).update(sees=sees)
