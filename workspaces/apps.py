from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _schedule_sweeps(sender: Any, **kwargs: Any) -> None:
    """The hour's sweep is data of the queue: made (or mended) whenever the database is migrated."""
    from django_q.models import Schedule

    Schedule.objects.update_or_create(
        name="workspaces: sweep",
        defaults={"func": "workspaces.tasks.sweep", "schedule_type": Schedule.HOURLY, "repeats": -1},
    )


def _schedule_indexes(sender: Any, **kwargs: Any) -> None:
    """Large places are looked after every ten minutes; what each run did stands in the queue's results."""
    from django_q.models import Schedule

    Schedule.objects.filter(name="memories: indexes").delete()  # its name before there were other kinds
    Schedule.objects.update_or_create(
        name="workspaces: indexes",
        defaults={
            "func": "workspaces.tasks.keep_indexes",
            "schedule_type": Schedule.MINUTES,
            "minutes": 10,
            "repeats": -1,
        },
    )


class WorkspacesConfig(AppConfig):
    name = "workspaces"

    def ready(self) -> None:
        from workspaces.accounts import sign_in

        sign_in.connect()
        post_migrate.connect(_schedule_sweeps, sender=self, dispatch_uid="workspaces.sweep")
        post_migrate.connect(_schedule_indexes, sender=self, dispatch_uid="workspaces.indexes")
