from django.apps import AppConfig
from django.db.models.signals import post_delete

from memoryhub.jobs import run_every


class MemoriesConfig(AppConfig):
    name = "memories"

    def ready(self) -> None:
        from memories.assets import ASSET_FILES
        from memories.forgetting.for_good import remove_memories
        from memories.indexing import MEMORIES
        from memories.models import Asset, Memory
        from memories.writing.changing import text_for_webhook
        from memories.writing.drafts import is_sensitive
        from memories.writing.eviction import MEMORIES as KEPT_MEMORIES
        from memoryhub.database.queries import count_or_estimate
        from memoryhub.http.health import register_gauge
        from workspaces.actions.purging import register_remover
        from workspaces.artifacts import register_judge
        from workspaces.models.index import register_kind
        from workspaces.quotas import charged_rows, register_quota
        from workspaces.retention import register_kept
        from workspaces.webhooks.hooks import register_text

        register_kind(MEMORIES)
        register_judge(is_sensitive)
        register_remover(remove_memories)
        register_kept(KEPT_MEMORIES)
        register_text("memory", text_for_webhook)
        register_quota("memories", lambda user: Memory.objects.filter(charged_rows(user, "author")))
        register_quota("bytes", lambda user: Asset.objects.filter(created_by=user))
        register_gauge(
            "memoryhub_memories",
            "Live memories; above 1,000 the planner's estimate.",
            lambda now: count_or_estimate(Memory.objects.filter(deleted_at=None))[0],
        )
        run_every(1, "memories.tasks.sweep", name="memories: sweep", app=self)
        run_every(5, "memories.tasks.ask_recall_questions", name="memories: recall questions", app=self)
        run_every(60, "memories.tasks.sweep_files", name="memories: files", app=self)
        post_delete.connect(ASSET_FILES.forget, sender=Asset, dispatch_uid="memories.forget_file")
