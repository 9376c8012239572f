from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _schedule_sweeps(sender: Any, **kwargs: Any) -> None:
    from django_q.models import Schedule

    Schedule.objects.update_or_create(
        name="chat: sweep",
        defaults={"func": "chat.tasks.sweep", "schedule_type": Schedule.MINUTES, "minutes": 1, "repeats": -1},
    )


class ChatConfig(AppConfig):
    name = "chat"

    def ready(self) -> None:
        from chat.chats.forgetting import leave_chats
        from chat.exchange.forgetting import forget_in_imports
        from chat.models import Chat, Import
        from chat.turns.mining import load_message, load_turn
        from memories.forgetting.copies import register_elsewhere
        from memories.writing.turn_text import register_loaders
        from workspaces.actions.removal import register_room
        from workspaces.quotas import register_quota

        register_loaders(turn=load_turn, message=load_message)
        register_room(leave_chats)
        register_elsewhere(forget_in_imports)
        register_quota("chats", lambda user: Chat.objects.filter(created_by=user))
        register_quota("bytes", lambda user: Import.objects.of(user).filter(finished_at=None))
        post_migrate.connect(_schedule_sweeps, sender=self, dispatch_uid="chat.sweep")
