"""Rates at which the calls of a model are counted."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from memoryhub.llm.usage import NOTHING, Price
from workspaces.connections.choice import Chosen
from workspaces.models.spending import Purpose


@dataclass(frozen=True, slots=True)
class Rate:
    """``model``: its name in the ledger; of a person's own connection empty, as it is nobody else's business.
    ``is_embedded``: it runs in this installation, costs nothing, and continues at any budget.
    """

    model: str
    price: Price | None = None
    is_embedded: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """On whom calls are put, what for, and at which rate."""

    workspace_id: int | None
    user_id: int | None
    purpose: Purpose
    rate: Rate


def rate_of(chosen: Chosen) -> Rate:
    """Return the rate of the model that answers. A price that nobody has set is None: then no money is mentioned."""
    connection = chosen.connection
    if connection is not None:
        return Rate(connection.model if connection.is_shared else "", connection.price)
    if settings.EMBEDDED_MODEL:
        return Rate(chosen.model.name, NOTHING, is_embedded=True)
    return Rate(settings.LLM_MODEL, settings.LLM_PRICE)
