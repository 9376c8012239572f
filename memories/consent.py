"""Whether automatic memory (injection and extraction) may run. Explicit acts never ask here."""

from __future__ import annotations

from django.conf import settings

from workspaces.models import User


def vetoed() -> bool:
    """The operator said no for everyone."""
    return settings.MEMORY_ENABLED is False


def memory_on(user: User, chat_value: bool | None) -> bool:
    """The veto first, then the chat's own chip, then the person's default, then the operator's; else off."""
    if vetoed():
        return False
    for choice in (chat_value, user.memory_default, settings.MEMORY_ENABLED):
        if choice is not None:
            return choice
    return False


def must_ask(user: User) -> bool:
    """True until the person has answered the first-run question, unless the operator answered for them."""
    return user.memory_default is None and settings.MEMORY_ENABLED is None
