from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete, post_save

from memoryhub import pubsub
from memoryhub.jobs import run_every


def _notify_members(sender: Any, instance: Any, **kwargs: Any) -> None:
    """Notify open pages of a workspace that its members changed, wherever the change was made."""
    pubsub.publish(f"workspace:{instance.workspace.public_id}", "members.changed")


class WorkspacesConfig(AppConfig):
    name = "workspaces"

    def ready(self) -> None:
        from memoryhub import mail
        from memoryhub.http import health
        from memoryhub.llm.metering import on_embeddings
        from workspaces.accounts import sign_in
        from workspaces.artifacts import ARTIFACTS
        from workspaces.documents.files import DOCUMENT_FILES
        from workspaces.documents.reading_jobs import STUCK, text_for_webhook
        from workspaces.documents.search import DOCUMENTS
        from workspaces.models import ArtifactVersion, Document, DocumentVersion, Membership
        from workspaces.models.index import register_kind
        from workspaces.quotas import register_quota
        from workspaces.spending.usage_records import record_embedding
        from workspaces.webhooks.hooks import register_text

        sign_in.connect()
        on_embeddings(record_embedding)
        register_kind(DOCUMENTS)
        register_kind(ARTIFACTS)
        register_text("document", text_for_webhook)
        register_quota("bytes", Document.objects.charged_to)
        register_quota("bytes", lambda user: DocumentVersion.objects.filter(version_by=user))
        register_quota("bytes", lambda user: ArtifactVersion.objects.filter(by=user))
        for sender in (Document, DocumentVersion):
            uid = f"workspaces.{sender.__name__}"
            post_delete.connect(DOCUMENT_FILES.forget, sender=sender, dispatch_uid=uid)
        for changed in (post_save, post_delete):
            changed.connect(_notify_members, sender=Membership, dispatch_uid="workspaces.members")
        health.register_count("documents", STUCK, "%d not read in time")
        run_every(60, "workspaces.tasks.sweep", name="workspaces: sweep", app=self)
        run_every(1, "workspaces.tasks.sweep_readings", name="workspaces: readings", app=self)
        run_every(60, "workspaces.tasks.keep_for_a_time", name="workspaces: retention", app=self)
        if mail.is_set():
            run_every(1, "workspaces.tasks.retry_mail", name="workspaces: mail", app=self)
        run_every(1, "workspaces.tasks.send_webhooks", name="workspaces: webhooks", app=self)
        run_every(10, "workspaces.tasks.keep_indexes", name="workspaces: indexes", app=self)
