"""Background jobs of workspaces."""

from collections.abc import Sequence

from django.conf import settings
from django.utils import timezone
from django_q.tasks import async_task

from memoryhub import mail
from memoryhub.jobs import job
from workspaces import audit, retention
from workspaces.accounts import invitations, program_authorizations, sessions, unsent_mail
from workspaces.api import idempotency
from workspaces.artifacts import purge as purge_artifacts
from workspaces.documents import documents, files, reading_jobs
from workspaces.index import index_maintenance, reembedding
from workspaces.models import index
from workspaces.models.documents import DOCUMENT
from workspaces.webhooks import hooks, sending


@job
def sweep() -> str:
    """Delete expired rows and purge deleted documents and artifacts. Runs hourly."""
    now = timezone.now()
    notes, sign_ins, events = idempotency.sweep(now=now), sessions.sweep(now=now), audit.prune(now=now)
    reembedding.fill_gaps()
    reading_jobs.complete_all()  # the embedder may have been changed or removed
    documents.sweep(now=now, seconds=settings.JOB_TIMEOUT / 6)
    files.sweep(now=now)
    documents.purge(now=now, seconds=settings.JOB_TIMEOUT / 6)
    purge_artifacts(now=now, seconds=settings.JOB_TIMEOUT / 6)
    program_authorizations.sweep_tokens(now=now)
    invitations.sweep(now=now)
    program_authorizations.sweep_clients(now=now)
    sending.sweep(now=now)
    return f"{notes} notes of requests, {sign_ins} sign-ins, {events} events of the audit log deleted"


@job
def keep_for_a_time() -> str:
    """Apply the retention rules for a third of the job timeout. Runs hourly, and again at once if items are left."""
    number, is_all = retention.sweep(now=timezone.now(), seconds=settings.JOB_TIMEOUT / 3)
    if not is_all:
        async_task("workspaces.tasks.keep_for_a_time", task_name="retention")
    return f"{number} deleted by rules of retention"


@job
def retry_mail() -> str:
    """Retry unsent mail every minute, if a mail server is configured."""
    number = unsent_mail.retry(now=timezone.now(), seconds=settings.JOB_TIMEOUT / 3) if mail.is_set() else 0
    return f"{number} mails sent"


@job
def rebuild() -> str:
    """Embed texts with a newly configured model for half of the job timeout, then delete vectors of retired models."""
    outcome = reembedding.advance(seconds=settings.JOB_TIMEOUT / 2)
    if outcome == reembedding.Outcome.UNFINISHED:
        reembedding.queue()
    gone = reembedding.clean(seconds=settings.JOB_TIMEOUT / 6)
    return f"{outcome}, {gone} old vectors deleted"


@job
def keep_indexes() -> str:
    """Build and drop the vector indexes and counts of large scopes. Return a summary."""
    return str(index_maintenance.maintain_indexes(now=timezone.now()))


@job
def embed_passages(*, kind: int, refs: Sequence[int]) -> int:
    done = reembedding.embed_passages(index.kind_numbered(kind), refs)
    if kind == DOCUMENT:
        reading_jobs.complete_all(passages__in=refs)
    return done


@job
def read_document(*, document_id: int) -> str:
    return reading_jobs.read(document_id, now=timezone.now())


@job
def sweep_readings() -> str:
    """Queue documents again whose reading was killed. Runs every minute."""
    return f"{reading_jobs.sweep(now=timezone.now())} documents queued again"


@job
def tell_webhooks() -> str:
    """Send the webhook deliveries that are due."""
    return sending.send_alone(seconds=settings.JOB_TIMEOUT / 4)


@job
def send_webhooks() -> None:
    """Queue the sending of webhook deliveries. Runs every minute, for failed deliveries and after a job was killed."""
    hooks.queue_one()
