from django.apps import AppConfig

from memoryhub.jobs import run_every


class ChatConfig(AppConfig):
    name = "chat"

    def ready(self) -> None:
        from chat.chats.message_search import find_messages
        from chat.chats.services import CHATS, leave_chats, made_private, most_expensive_chats
        from chat.chats.sharing import forget_in_share_links
        from chat.import_export.forget_in_imports import forget_in_imports
        from chat.models import Chat, Import
        from chat.runs.forgetting import forget_in_runs
        from chat.runs.run_display import text_for_webhook
        from chat.runs.transitions import stop_runs_of, stop_runs_of_others
        from chat.turns.extraction_text import load_message, load_turn
        from memories.forgetting.remaining_copies import register_copy_remover
        from memories.recalling.workspace_search import register_messages
        from memories.writing.drafts_from_turns import register_loaders
        from workspaces.accounts.account_changes import on_closing
        from workspaces.actions.purging import register_remover
        from workspaces.quotas import charged_rows, register_quota
        from workspaces.retention import register_kept
        from workspaces.spending.monthly_usage import register_chats
        from workspaces.webhooks.hooks import register_text

        register_loaders(turn=load_turn, message=load_message)
        register_messages(find_messages)
        register_remover(leave_chats)
        on_closing(stop_runs_of)
        made_private.connect(stop_runs_of_others)
        register_kept(CHATS)
        register_chats(most_expensive_chats)
        register_text("run", text_for_webhook)
        register_copy_remover(forget_in_imports)
        register_copy_remover(forget_in_runs)
        register_copy_remover(forget_in_share_links)
        register_quota("chats", lambda user: Chat.objects.filter(charged_rows(user, "created_by")))
        register_quota("bytes", lambda user: Import.objects.of(user).filter(finished_at=None))
        run_every(1, "chat.tasks.sweep", name="chat: sweep", app=self)
