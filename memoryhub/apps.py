import sys

from django.apps import AppConfig


class MemoryHubConfig(AppConfig):
    name = "memoryhub"

    def ready(self) -> None:
        from memoryhub import checks  # noqa: F401  registers the system checks
        from memoryhub.management.database import refuse_to_serve_newer_database

        if sys.argv[1:2] in (
            ["qcluster"],
            ["migrate"],
        ):  # libraries' commands, which ask nothing of themselves
            refuse_to_serve_newer_database()
