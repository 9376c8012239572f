"""The figures on the admin's first page, each with a link to a list that the member of staff may open."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Min, QuerySet, Sum
from django.urls import reverse
from django.utils.timesince import timesince
from django_q.models import Failure, OrmQ

from memories.admin.memory import readable
from memories.models import Extraction, Memory, Review
from memories.models.extraction import ExtractionStatus
from memories.models.memory import MAY_REPLACE, MEMORY
from memoryhub.database.queries import count_or_estimate
from memoryhub.localization import file_size
from workspaces.index.embedding import active_model
from workspaces.models import Document, DocumentStatus, EmbeddingModel, ModelUse, User, Workspace
from workspaces.models.index import has_vector
from workspaces.spending.budgets import first_of_month
from workspaces.spending.monthly_usage import largest, of_month, total_of
from workspaces.spending.usage_records import Bill, amount

GROWTH = timedelta(days=7)
LATE = timedelta(minutes=5)
LARGEST = (
    ("Workspaces by usage this month", "workspace", "workspace__name"),
    ("People by usage this month", "user", "user__username"),
    ("Models by usage this month", "model", "model"),
)


@dataclass(frozen=True)
class Figure:
    label: str
    value: str
    url: str
    note: str = ""
    needs_attention: bool = False


def overview(user: Any, now: datetime) -> dict[str, list[Figure]]:
    """Return the figures that this member of staff may see, grouped by the title under which they are shown."""
    memories = readable(Memory.objects.live(now), user)
    groups: dict[str, Iterable[Figure]] = {
        "Needs attention": _waiting(user, memories),
        "In the background": _background(user, memories, now),
        "Growing": _growing(user, memories, now),
        **_models(user, now),
    }
    listed = {title: list(figures) for title, figures in groups.items()}
    return {title: figures for title, figures in listed.items() if figures}


def _waiting(user: Any, memories: QuerySet[Memory]) -> Iterator[Figure]:
    if user.has_perm("memories.view_memory"):
        proposals = readable(Memory.objects.filter(review=Review.PENDING), user)
        note = "Not in use until somebody approves them."
        yield _counted("proposals to review", proposals, _list("memories_memory", state="pending"), note)
        url = _list("memories_memory", state="replaces")
        note = "A newer memory may replace an older one."
        yield _counted("possible updates", memories.filter(MAY_REPLACE), url, note)
    if user.has_perm("memories.view_extraction"):
        failed = Extraction.objects.filter(status=ExtractionStatus.FAILED)
        url = _list("memories_extraction", status="failed")
        yield _counted("failed extractions", failed, url, "Given up after all attempts. Can be retried.")
    if user.has_perm("workspaces.view_document"):
        unread = Document.objects.live().filter(status=DocumentStatus.FAILED)
        url = _list("workspaces_document", status="failed", deleted_at__isempty=1)
        yield _counted("documents that could not be read", unread, url, "Each says why. Can be read again.")
    if user.has_perm("django_q.view_failure"):
        note = "Background work that raised an error."
        yield _counted("failed jobs", Failure.objects.all(), _list("django_q_failure"), note)


def _background(user: Any, memories: QuerySet[Memory], now: datetime) -> Iterator[Figure]:
    model = active_model()
    if user.has_perm("memories.view_memory") and model is not None:
        missing = memories.filter(~has_vector(MEMORY, model))
        url = _list("memories_memory", state="live", vector="without")
        yield _counted("memories without a vector", missing, url, "Found by words until they have one.")
        url = _list("memories_memory", state="live", vector="failed")
        failed = memories.filter(embedding_failed_at__isnull=False)
        yield _counted("memories that could not be embedded", failed, url, "Can be embedded again.")
    if user.has_perm("workspaces.view_document"):
        waiting = Document.objects.live().filter(status=DocumentStatus.WAITING)
        url = _list("workspaces_document", status="waiting", deleted_at__isempty=1)
        yield _counted("documents to be read", waiting, url, attention=False)
    building = EmbeddingModel.objects.building()
    if building and user.has_perm("workspaces.view_embeddingmodel"):
        share = f"{100 * building.done_count // max(1, building.total_count)} %"
        note = f"{building.label}: {building.progress}. Recall compares the earlier one until then."
        held = bool(building.stopped_at or building.error)
        url = _list("workspaces_embeddingmodel")
        yield Figure("of the next embedding model's vectors", share, url, note, needs_attention=held)
    if user.has_perm("django_q.view_ormq"):
        oldest = OrmQ.objects.filter(lock__lte=now).aggregate(oldest=Min("lock"))["oldest"]
        note = f"The oldest has waited {timesince(oldest, now)}." if oldest else "None waits for a worker."
        late = oldest is not None and now - oldest > LATE
        yield _counted("jobs in the queue", OrmQ.objects.all(), _list("django_q_ormq"), note, attention=late)


def _growing(user: Any, memories: QuerySet[Memory], now: datetime) -> Iterator[Figure]:
    if user.has_perm("memories.view_memory"):
        recent = _number(*count_or_estimate(memories.filter(created_at__gt=now - GROWTH)))
        note = f"{recent} saved in the last {GROWTH.days} days."
        url = _list("memories_memory", state="live")
        yield _counted("memories in use", memories, url, note, attention=False)
    if user.has_perm("workspaces.view_document"):
        documents = Document.objects.live()
        note = file_size(documents.aggregate(size=Sum("size"))["size"] or 0)
        url = _list("workspaces_document", deleted_at__isempty=1)
        yield _counted("documents", documents, url, note, attention=False)
    if user.has_perm("workspaces.view_workspace"):
        url = _list("workspaces_workspace")
        yield _counted("workspaces", Workspace.objects.all(), url, attention=False)
    if user.has_perm("workspaces.view_user"):
        url = _list("workspaces_user", is_active__exact=1)
        yield _counted("people", User.objects.filter(is_active=True), url, attention=False)


def _models(user: Any, now: datetime) -> dict[str, Iterable[Figure]]:
    if not user.has_perm("workspaces.view_modeluse"):
        return {}
    rows = of_month(ModelUse.objects.all(), first_of_month(now))
    month = {"day__year": now.year, "day__month": now.month}
    groups: dict[str, Iterable[Figure]] = {"Models this month": _spent(total_of(rows), month)}
    for title, key, named in LARGEST:
        groups[title] = [
            Figure(name or "Own connections", _tokens(bill), _uses(month, **{key: value}), _cost(bill))
            for value, name, bill in largest(rows, key, named)
        ]
    return groups


def _spent(total: Bill, month: dict[str, int]) -> Iterator[Figure]:
    note = f"{total.tokens_in:,} in, {total.tokens_out:,} out."
    if total.is_estimate:
        note += f" {total.estimated:,} of {total.calls:,} calls are estimated."
    yield Figure("tokens", _tokens(total), _uses(month), note)
    if total.has_cost:
        note = f"{total.unpriced:,} calls have no price." if total.unpriced else "All calls have a price."
        yield Figure("cost", _cost(total), _uses(month), note)
    yield Figure("calls of models", f"{total.calls:,}", _uses(month))


def _tokens(bill: Bill) -> str:
    return f"{bill.about}{bill.tokens:,}"


def _cost(bill: Bill) -> str:
    return f"{bill.about}{amount(bill.cost)}" if bill.cost else ""


def _uses(month: dict[str, int], **filters: Any) -> str:
    return _list("workspaces_modeluse", **month, **filters)


def _list(name: str, **filters: Any) -> str:
    url = reverse(f"admin:{name}_changelist")
    return f"{url}?{urlencode(filters)}" if filters else url


def _counted(label: str, rows: QuerySet[Any], url: str, note: str = "", *, attention: bool = True) -> Figure:
    number, estimate = count_or_estimate(rows)
    return Figure(label, _number(number, estimate), url, note, needs_attention=attention and number > 0)


def _number(number: int, estimate: bool) -> str:
    return f"about {number:,}" if estimate else f"{number:,}"
