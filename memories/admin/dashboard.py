"""The first page of the admin: pending decisions, failures, growth, and the cost of models this month.

Each number links to its list, is shown only to staff who may open that list, and costs an index lookup that stops
counting at a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Min, QuerySet, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils.timesince import timesince
from django_q.models import Failure, OrmQ

from memories.admin import activity
from memories.admin.filters import readable, unrecalled
from memories.admin.side_by_side import (
    EQUAL,
    chosen_workspace,
    equal_texts,
    may_choose,
    picker,
    possible_updates,
    with_older,
)
from memories.models import Extraction, Memory, Review
from memories.models.extraction import ExtractionStatus
from memories.models.memory import MEMORY
from memoryhub.database.queries import EXACT_COUNT_UP_TO, count_or_estimate
from memoryhub.languages import file_size
from workspaces.admin.models import OWN
from workspaces.billing import Bill, amount, first_of_month
from workspaces.index.embedding import active_model
from workspaces.models import Document, DocumentStatus, EmbeddingModel, User, Workspace
from workspaces.models.index import has_vector
from workspaces.usage import Taker, Use, use_of_all

GROWTH = timedelta(days=7)


@dataclass(frozen=True)
class Figure:
    label: str
    value: str
    url: str
    note: str = ""
    needs_attention: bool = False


@dataclass(frozen=True)
class Group:
    title: str
    figures: list[Figure]


def overview(user: Any, now: datetime, workspace_id: int | None = None) -> list[Group]:
    """Return the groups of figures that this member of staff may see, for one workspace or for all."""
    within = Within(user, now, workspace_id)
    groups = [
        Group("Needs attention", list(_waiting(within))),
        Group("Suggestions", list(_worth_a_look(within))),
        Group("In the background", list(_background(within))),
        Group("Growing", list(_growing(within))),
    ]
    return [group for group in groups if group.figures]


@dataclass(frozen=True)
class Within:
    """The viewer, the time and the workspace to which all figures are limited."""

    user: Any
    now: datetime
    workspace_id: int | None

    def may_view(self, model: str) -> bool:
        app, _, name = model.partition(".")
        return bool(self.user.has_perm(f"{app}.view_{name}"))

    def of(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if self.workspace_id is None else rows.filter(workspace=self.workspace_id)

    def memories(self) -> QuerySet[Any]:
        """Return the live memories that this person may read."""
        return self.of(readable(Memory.objects.live(self.now), self.user))

    def link(self, name: str, query: str = "", *, page: str = "changelist") -> str:
        place = f"workspace={self.workspace_id}" if self.workspace_id is not None else ""
        asked = "&".join(part for part in (query, place) if part)
        url = reverse(f"admin:{name}_{page}")
        return f"{url}?{asked}" if asked else url


def _waiting(within: Within) -> Iterator[Figure]:
    if within.may_view("memories.memory"):
        proposed = within.of(readable(Memory.objects.filter(review=Review.PENDING), within.user))
        url = within.link("memories_memory", "state=pending")
        yield _figure("proposals to review", proposed, url, "Not in use until somebody approves them.")
        updates = possible_updates(within.user, within.workspace_id)
        url = within.link("memories_memory", page="pairs")
        yield _figure("possible updates", updates, url, "A newer memory may replace an older one.")
    if within.may_view("memories.extraction"):
        failed = within.of(Extraction.objects.filter(status=ExtractionStatus.FAILED))
        url = within.link("memories_extraction", "status=failed")
        yield _figure("failed extractions", failed, url, "Given up after all attempts. Can be retried.")
    if within.may_view("workspaces.document"):
        unread = within.of(Document.objects.live().filter(status=DocumentStatus.FAILED))
        url = within.link("workspaces_document", "status=failed&state=live")
        yield _figure("documents that could not be read", unread, url, "Each says why. Can be read again.")
    if within.workspace_id is None and within.may_view("django_q.failure"):
        url = within.link("django_q_failure")
        yield _figure("failed jobs", Failure.objects.all(), url, "Background work that raised an error.")


def _worth_a_look(within: Within) -> Iterator[Figure]:
    if not within.may_view("memories.memory"):
        return
    equal = len(equal_texts(within.workspace_id))
    url = within.link("memories_memory", f"kind={EQUAL}", page="pairs")
    more = "or more " if equal == EXACT_COUNT_UP_TO else ""
    yield Figure("texts stored twice", f"{more}{equal:,}", url, "The same words, saved more than once.")
    for which, label, note in (
        ("never-30", "never recalled", "Saved over 30 days ago, never used"),
        ("stale-90", "not recalled for long", "Of use once, but not in the last 90 days."),
    ):
        rows = unrecalled(within.memories(), which, within.now)
        url = within.link("memories_memory", f"recalled={which}")
        yield _figure(label, rows, url, note, attention=False)


def _background(within: Within) -> Iterator[Figure]:
    model, now = active_model(), within.now
    if within.may_view("memories.memory") and model is not None:
        vectors = has_vector(MEMORY, model)
        missing = within.memories().filter(~vectors)
        url = within.link("memories_memory", "vector=without")
        yield _figure("memories without a vector", missing, url, "Found by words until they have one.")
        failed = within.memories().filter(embedding_failed_at__isnull=False)
        if failed.exists():
            url = within.link("memories_memory", "vector=failed")
            yield _figure("could not be embedded", failed, url, "The embedder failed on these. Tried again.")
    if within.may_view("workspaces.document"):
        waiting = [DocumentStatus.WAITING, DocumentStatus.READING]
        unread = within.of(Document.objects.live().filter(status__in=waiting))
        url = within.link("workspaces_document", "state=live&status=waiting")
        yield _figure("documents to be read", unread, url, attention=False)
    if within.workspace_id is not None:
        return
    if within.may_view("workspaces.embeddingmodel") and (next_model := EmbeddingModel.objects.building()):
        share = f"{100 * next_model.done_count // max(1, next_model.total_count)} %"
        note = f"{next_model.label}: {next_model.progress}. Recall compares the earlier one until then."
        held = bool(next_model.stopped_at or next_model.error)
        url = within.link("workspaces_embeddingmodel")
        yield Figure("of the next embedding model's vectors", share, url, note, needs_attention=held)
    if within.may_view("django_q.ormq"):
        oldest = OrmQ.objects.filter(lock__lte=now).aggregate(oldest=Min("lock"))["oldest"]
        age = now - oldest if oldest else None
        if age is None:
            note = "None waits for a worker."
        else:
            waited = timesince(oldest, now) if age >= timedelta(minutes=1) else "less than a minute"
            note = f"The oldest has waited {waited}."
        stuck = age is not None and age > timedelta(minutes=5)
        url = within.link("django_q_ormq")
        yield _figure("jobs in the queue", OrmQ.objects.all(), url, note, attention=stuck)


def _growing(within: Within) -> Iterator[Figure]:
    if within.may_view("memories.memory"):
        live = within.memories()
        recent = count_or_estimate(live.filter(created_at__gt=within.now - GROWTH))
        note = f"{_worded(*recent)} saved in the last {GROWTH.days} days."
        yield _figure("memories in use", live, within.link("memories_memory"), note, attention=False)
    if within.may_view("workspaces.document"):
        live = within.of(Document.objects.live())
        url = within.link("workspaces_document", "state=live")
        note = file_size(live.aggregate(size=Sum("size"))["size"] or 0)
        yield _figure("documents", live, url, note, attention=False)
    if within.workspace_id is not None:
        return
    if within.may_view("workspaces.workspace"):
        url = within.link("workspaces_workspace")
        yield _figure("workspaces", Workspace.objects.all(), url, attention=False)
    if within.may_view("workspaces.user"):
        people = User.objects.filter(is_active=True)
        url = within.link("workspaces_user", "is_active__exact=1")
        yield _figure("people", people, url, attention=False)


def _figure(label: str, rows: QuerySet[Any], url: str, note: str = "", *, attention: bool = True) -> Figure:
    number, estimate = count_or_estimate(rows)
    return Figure(label, _worded(number, estimate), url, note, needs_attention=attention and number > 0)


def _worded(number: int, estimate: bool) -> str:
    return f"about {number:,}" if estimate else f"{number:,}"


@dataclass(frozen=True)
class Ranked:
    name: str
    took: str
    url: str


@dataclass(frozen=True)
class Ranking:
    title: str
    rows: list[Ranked]


def model_use(user: Any, now: datetime, workspace_id: int | None) -> tuple[list[Group], list[Ranking]]:
    """Return the figures of model usage this month and the largest consumers, for one workspace or for all.

    One query, or none for staff without the permission, who get empty lists.
    """
    if not user.has_perm("workspaces.view_modeluse"):
        return [], []
    first = first_of_month(now)
    asked: dict[str, Any] = {"month": f"{first:%Y-%m}"}
    if workspace_id is not None:
        asked["workspace"] = workspace_id
    found = use_of_all(first, workspace_id)
    group = Group("Models this month", list(_figures(found.total, asked)))
    return [group], [ranking for ranking in _rankings(found, asked, workspace_id) if ranking.rows]


def _figures(total: Bill, asked: dict[str, Any]) -> Iterator[Figure]:
    url = _list(asked)
    said = f"{total.tokens_in:,} in, {total.tokens_out:,} out."
    if total.is_estimate:
        said += f" {total.estimated:,} of {total.calls:,} calls are estimated."
    yield Figure("tokens", total.about + _short(total.tokens), url, said)
    if total.has_cost:
        note = f"{total.unpriced:,} calls have no price." if total.unpriced else "All calls have a price."
        yield Figure("cost", total.about + amount(total.cost), url, note)
    yield Figure("calls of models", f"{total.calls:,}", url)


def _rankings(found: Use, asked: dict[str, Any], workspace_id: int | None) -> Iterator[Ranking]:
    if workspace_id is None:
        rows = [_ranked(each, asked | {"workspace": each.key}) for each in found.workspaces]
        yield Ranking("Workspaces", rows)
    yield Ranking("People", [_ranked(each, asked | {"user": each.key}) for each in found.people])
    yield Ranking("Models", [_ranked(each, asked | {"model": each.name or OWN}) for each in found.models])


def _short(number: int) -> str:
    """Return a number for a tile, in millions from ten million on: 57.4 M."""
    return f"{number:,}" if number < 10_000_000 else f"{number / 1_000_000:,.1f} M"


def _ranked(taker: Taker, asked: dict[str, Any]) -> Ranked:
    bill = taker.bill
    took = f"{bill.about}{bill.tokens:,}" + (f" · {bill.about}{amount(bill.cost)}" if bill.cost else "")
    return Ranked(taker.name or "Own connections", took, _list(asked))


def _list(asked: dict[str, Any]) -> str:
    return f"{reverse('admin:workspaces_modeluse_changelist')}?{urlencode(asked)}"


SHOWN = 5


@dataclass(frozen=True)
class Row:
    key: Any
    name: str
    at: datetime | None
    reason: str


@dataclass(frozen=True)
class Failed:
    """Failed work, newest first, with the admin action that retries it, or "" if this person may not retry."""

    title: str
    rows: list[Row]
    number: str
    url: str
    action: str


def dashboard(request: HttpRequest, now: datetime) -> dict[str, Any]:
    user: Any = request.user
    workspace = chosen_workspace(request)
    within = workspace.pk if workspace else None
    groups, rankings = model_use(user, now, within)
    shown: dict[str, Any] = {
        "workspace": workspace,
        "picker": picker(workspace) if may_choose(request) else "",
        "groups": [*overview(user, now, within), *groups],
        "rankings": rankings,
        "failed": [failed for failed in _failed(user, within) if failed.rows],
        "here": request.get_full_path(),
    }
    if user.has_perm("memories.view_memory"):
        shown["proposals"] = list(_proposals(user, within)[:SHOWN])
        shown["saved"] = activity.saved(now, within)
        shown["pairs"] = with_older(possible_updates(user, within)[:SHOWN])
        shown["may_forget"] = user.has_perm("memories.delete_memory")
        shown["may_change"] = user.has_perm("memories.change_memory")
    if user.has_perm("memories.view_refusal"):
        shown["refused"], shown["kinds"] = activity.refused(now, within)
    return shown


def _proposals(user: Any, workspace_id: int | None) -> QuerySet[Memory]:
    """Return the proposals that wait for review, oldest first."""
    rows = readable(Memory.objects.filter(review=Review.PENDING), user)
    rows = rows if workspace_id is None else rows.filter(workspace=workspace_id)
    rows = rows.select_related("workspace", "author", "edited_by").defer(
        "search", "source_excerpt", "source_details"
    )
    return rows.order_by("created_at", "pk")


def _failed(user: Any, workspace_id: int | None) -> Iterator[Failed]:
    if user.has_perm("memories.view_extraction"):
        rows: QuerySet[Any] = Extraction.objects.filter(status=ExtractionStatus.FAILED).order_by("-id")
        place = ""
        if workspace_id is not None:
            rows, place = rows.filter(workspace=workspace_id), f"&workspace={workspace_id}"
        newest = rows.select_related("workspace")[:SHOWN]
        shown = [Row(row.pk, row.workspace.name, row.finished_at, row.error) for row in newest]
        url = reverse("admin:memories_extraction_changelist") + f"?status=failed{place}"
        retry = "retry" if user.has_perm("memories.change_extraction") else ""
        yield Failed("Failed extractions", shown, _worded(*count_or_estimate(rows)), url, retry)
    if workspace_id is None and user.has_perm("django_q.view_failure"):
        rows = Failure.objects.order_by("-stopped")
        shown = [
            Row(row.pk, row.name or row.func, row.stopped, str(row.result or "").split("\n", 1)[0][:200])
            for row in rows[:SHOWN]
        ]
        url = reverse("admin:django_q_failure_changelist")
        retry = "run_again" if user.has_perm("django_q.change_failure") else ""
        yield Failed("Failed jobs", shown, _worded(*count_or_estimate(rows)), url, retry)
