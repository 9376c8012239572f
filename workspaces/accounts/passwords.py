"""Whether password sign-in is allowed: for everybody, or with single sign-on alone only in an emergency."""

from __future__ import annotations

from django.conf import settings
from django.core.cache import cache

from workspaces.audit import Verb, record
from workspaces.models import User

MINUTES = 15
_LET_IN = "let-in-by-password"


def are_asked_for() -> bool:
    """Whether the form for a password is there at all."""
    return settings.PASSWORD_SIGN_IN or bool(_let_in())


def opens_for(user: User) -> bool:
    return settings.PASSWORD_SIGN_IN or user.pk in _let_in()


def let_in(user: User) -> None:
    """For ``MINUTES``: an administrator, when the provider of single sign-on is away."""
    record(Verb.PASSWORD_LET_IN, by=None, target=user.public_id, details={"minutes": MINUTES})
    cache.set(_LET_IN, [*_let_in(), user.pk], MINUTES * 60)


def _let_in() -> list[int]:
    return cache.get(_LET_IN, [])
