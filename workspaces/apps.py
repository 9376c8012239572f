from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from memoryhub.jobs import run_every


def _forget_old_names(sender: Any, **kwargs: Any) -> None:
    from django_q.models import Schedule

    Schedule.objects.filter(name="memories: indexes").delete()  # its name before there were other kinds


class WorkspacesConfig(AppConfig):
    name = "workspaces"

    def ready(self) -> None:
        from workspaces.accounts import sign_in

        sign_in.connect()
        run_every(60, "workspaces.tasks.sweep", name="workspaces: sweep", app=self)
        run_every(10, "workspaces.tasks.keep_indexes", name="workspaces: indexes", app=self)
        post_migrate.connect(_forget_old_names, sender=self, dispatch_uid="workspaces.schedules")
