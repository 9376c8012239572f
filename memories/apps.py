from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete, post_migrate


def _schedule_sweeps(sender: Any, **kwargs: Any) -> None:
    """The minute's sweep is data of the queue: made (or mended) whenever the database is migrated."""
    from django_q.models import Schedule

    Schedule.objects.update_or_create(
        name="memories: sweep",
        defaults={
            "func": "memories.tasks.sweep",
            "schedule_type": Schedule.MINUTES,
            "minutes": 1,
            "repeats": -1,
        },
    )


def _schedule_orphans(sender: Any, **kwargs: Any) -> None:
    """Every hour: files that a crash left without their row."""
    from django_q.models import Schedule

    Schedule.objects.update_or_create(
        name="memories: files",
        defaults={"func": "memories.tasks.sweep_files", "schedule_type": Schedule.HOURLY, "repeats": -1},
    )


def _schedule_questions(sender: Any, **kwargs: Any) -> None:
    """Every five minutes: what a change of embedder, threshold or content did to the questions that are kept."""
    from django_q.models import Schedule

    Schedule.objects.update_or_create(
        name="memories: recall questions",
        defaults={
            "func": "memories.tasks.ask_recall_questions",
            "schedule_type": Schedule.MINUTES,
            "minutes": 5,
            "repeats": -1,
        },
    )


class MemoriesConfig(AppConfig):
    name = "memories"

    def ready(self) -> None:
        from memories.assets.assets import forget_file
        from memories.forgetting.forget import empty_places
        from memories.models import Asset, Memory
        from memories.recalling.kind import MEMORIES
        from workspaces.actions.removal import register_room
        from workspaces.index.kinds import register_kind
        from workspaces.quotas import register_quota

        register_kind(MEMORIES)
        register_room(empty_places)
        register_quota("memories", lambda user: Memory.objects.filter(author=user))
        register_quota("bytes", lambda user: Asset.objects.filter(created_by=user))
        post_migrate.connect(_schedule_sweeps, sender=self, dispatch_uid="memories.sweep")
        post_migrate.connect(_schedule_questions, sender=self, dispatch_uid="memories.recall_test")
        post_migrate.connect(_schedule_orphans, sender=self, dispatch_uid="memories.files")
        post_delete.connect(forget_file, sender=Asset, dispatch_uid="memories.forget_file")
