"""Rules for whether automatic memory (injection and extraction) may run. Explicit actions are always allowed."""

from __future__ import annotations

from django.conf import settings

from workspaces.models import User


def vetoed() -> bool:
    """Return whether the operator has switched automatic memory off for everyone."""
    return settings.MEMORY_ENABLED is False


def memory_on(user: User, chat_value: bool | None) -> bool:
    """Return whether automatic memory is on in a chat.

    The operator's veto comes first, then the chat's setting, the person's default and the operator's default; otherwise
    it is off.
    """
    if vetoed():
        return False
    for choice in (chat_value, user.memory_default, settings.MEMORY_ENABLED):
        if choice is not None:
            return choice
    return False


def must_ask(user: User) -> bool:
    """Return whether the person still has to answer the first-run question, which the operator may answer for
    everyone.
    """
    return user.memory_default is None and settings.MEMORY_ENABLED is None
