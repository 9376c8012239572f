"""The Django app of the base package, and its system checks."""

from __future__ import annotations

import sys
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning, register
from django.db.models.signals import post_migrate, pre_migrate

from memoryhub.monitoring import tracing


class MemoryHubConfig(AppConfig):
    name = "memoryhub"

    def ready(self) -> None:
        from memoryhub.database.startup import (
            refuse_to_serve_other_version,
            store_backward_compatible_migrations,
        )
        from memoryhub.jobs import follow_traces

        if tracing.is_wanted():
            follow_traces()
        for migrates in (pre_migrate, post_migrate):
            migrates.connect(store_backward_compatible_migrations)  # no sender, since this app has no models

        if sys.argv[1:2] in (["qcluster"], ["migrate"]):  # these commands do not check the version
            refuse_to_serve_other_version()


@register()
def traces_are_sent(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if tracing.is_wanted() and not tracing.is_installed():
        return [Warning(tracing.NOT_INSTALLED, id="memoryhub.W001")]
    return []
