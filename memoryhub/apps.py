import sys

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class MemoryHubConfig(AppConfig):
    name = "memoryhub"

    def ready(self) -> None:
        from memoryhub import checks  # noqa: F401  the checks register themselves
        from memoryhub.database.startup import note_what_older_may_run_with, refuse_to_serve_other_version
        from memoryhub.jobs import follow_traces
        from memoryhub.monitoring import tracing

        if tracing.is_wanted():
            follow_traces()
        for migrates in (pre_migrate, post_migrate):
            migrates.connect(note_what_older_may_run_with)  # sent for apps with models, so not for this one

        if sys.argv[1:2] in (
            ["qcluster"],
            ["migrate"],
        ):  # libraries' commands, which ask nothing of themselves
            refuse_to_serve_other_version()
