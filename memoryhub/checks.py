"""System checks at start, for faults that would otherwise be noticed later."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from memoryhub.monitoring import tracing

ENGINES = {"django.db.backends.postgresql", "memoryhub.database.pooled"}


@register()
def queue_times(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A job must time out before it is handed to another worker, or it would run twice at once."""
    cluster: dict[str, Any] = settings.Q_CLUSTER
    if cluster["timeout"] >= cluster["retry"]:
        return [Error("Q_CLUSTER's timeout must be shorter than its retry.", id="memoryhub.E001")]
    return []


@register()
def postgres_only(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.DATABASES["default"]["ENGINE"] not in ENGINES:
        return [Error("MemoryHub needs PostgreSQL with pgvector.", id="memoryhub.E002")]
    return []


@register()
def traces_are_sent(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if tracing.is_wanted() and not tracing.is_installed():
        return [Warning(tracing.NOT_INSTALLED, id="memoryhub.W001")]
    return []
