"""Clearing a scope: deleting all its memories, either softly (this can be undone) or permanently.

A scope is a person's own memories, or the shared ones of a workspace or of an assistant. A background job works in
batches, each in one transaction. If it is interrupted, the next run continues where it stopped.
"""

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memories.forgetting.for_good import forget_memories
from memories.models import Clearing, ClearingStatus, Memory, Scope
from memories.models.forgetting import AT_WORK, in_scope
from memories.models.memory import MemoryQuerySet, place_of
from memories.writing.changing import restore_memory
from memories.writing.gate import delete_memory
from memoryhub.errors import Conflict, DomainError, Invalid, NotFound
from workspaces.access import get_workspace, require, role_in
from workspaces.actions.workspaces import choose_agent
from workspaces.models import Agent, Role, User, Workspace

logger = logging.getLogger(__name__)
BATCH = 100  # memories per transaction, after each of which the progress is saved
SWEPT = 5  # clearings per sweep


def scope_of(
    user: User, workspace_id: str, scope: str, agent_id: str | None
) -> tuple[Workspace, Agent | None]:
    """Return the workspace and assistant of a scope, after checking that this person may clear it.

    Members may clear their own memories; owners of the workspace may also clear the shared ones. Raises NotFound for a
    person who is no member, Forbidden for a member who is no owner, and Invalid if ``agent_id`` does not fit the scope.
    """
    workspace = get_workspace(user, workspace_id)
    if scope not in Scope.values:
        raise Invalid(fields={"scope": _("Allowed: %s.") % ", ".join(Scope.values)})
    require(workspace.role, Role.VIEWER if scope == Scope.USER else Role.OWNER)
    if (scope == Scope.AGENT) != (agent_id is not None):
        raise Invalid(fields={"agent_id": _("Name it with the scope agent, and only then.")})
    return workspace, choose_agent(workspace, agent_id) if agent_id is not None else None


def count_in(workspace: Workspace, scope: str, agent: Agent | None, *, by: User) -> tuple[int, int]:
    """Return how many memories a soft clearing deletes, and how many a permanent one, which includes deleted ones."""
    rows = in_scope(workspace, scope, by, agent)
    return rows.filter(deleted_at=None).count(), rows.count()


@dataclass(frozen=True)
class Clearable:
    """Memories that a person may clear together: their own, or the shared ones of a workspace or of an assistant."""

    scope: str
    agent: Agent | None
    live: int  # how many a soft clearing deletes
    whole: int  # how many a permanent one removes
    last: Clearing | None

    @property
    def query(self) -> str:
        return f"?scope={self.scope}" + (f"&agent={self.agent.public_id}" if self.agent else "")


def clearable_by(user: User, workspace: Workspace) -> list[Clearable]:
    """Return the scopes that this member may clear. Assistants without memories are left out. Five queries."""
    places: list[tuple[str, Agent | None]] = [(Scope.USER, None)]
    rows = Q(scope=Scope.USER, owner=user)
    if workspace.role == Role.OWNER:
        places += [(Scope.WORKSPACE, None)]
        places += [(Scope.AGENT, agent) for agent in workspace.agents.order_by("name")]
        rows |= Q(scope__in=(Scope.WORKSPACE, Scope.AGENT), workspace=workspace)
    totals = Memory.objects.filter(rows).order_by().values_list("scope", "agent_id")
    sums = totals.annotate(live=Count("pk", filter=Q(deleted_at=None)), whole=Count("pk"))
    counts = {(scope, agent_id): (live, whole) for scope, agent_id, live, whole in sums}
    numbers = {_place(workspace, scope, agent, user): (scope, agent) for scope, agent in places}
    last = Clearing.objects.filter(place__in=numbers).order_by("place", "-pk").distinct("place")
    lasts = {each.place: each for each in last.select_related("workspace", "agent", "by")}
    scopes = [
        Clearable(scope, agent, *counts.get((scope, agent.pk if agent else None), (0, 0)), lasts.get(place))
        for place, (scope, agent) in numbers.items()
    ]
    return [each for each in scopes if each.agent is None or each.whole or each.last]


def begin(
    workspace: Workspace,
    scope: str,
    agent: Agent | None,
    *,
    by: User,
    for_good: bool,
    now: datetime,
    as_staff: bool = False,
) -> Clearing:
    """Create a clearing and queue the job that runs it. Raises Conflict if another clearing of the scope is running.

    The caller checks the right to it, usually by ``scope_of``. ``for_good`` removes the memories permanently.
    ``as_staff``: ``by`` clears the scope in the admin, by a staff permission instead of a role in the workspace.
    """
    live, whole = count_in(workspace, scope, agent, by=by)
    try:
        with transaction.atomic():
            clearing = Clearing.objects.create(
                workspace=workspace, scope=scope, agent=agent, by=by, place=_place(workspace, scope, agent, by),
                for_good=for_good, total=whole if for_good else live, started_at=now, as_staff=as_staff,
            )  # fmt: skip
            _queue(clearing)
    except IntegrityError:
        raise Conflict(_("These memories are being cleared already."), code="clearing") from None
    return clearing


def _place(workspace: Workspace, scope: str, agent: Agent | None, by: User) -> int:
    owner_id = by.pk if scope == Scope.USER else None
    return place_of(workspace.pk, owner_id=owner_id, agent_id=agent.pk if agent else None)


def get_clearing(user: User, workspace: Workspace, public_id: str) -> Clearing:
    """Return a clearing of the person's own memories, or for an owner one of this workspace. Raises NotFound."""
    shared = ~Q(scope=Scope.USER) & Q(
        workspace=workspace, workspace__memberships__user=user, workspace__memberships__role=Role.OWNER
    )
    rows = Clearing.objects.filter(Q(scope=Scope.USER, by=user) | shared, public_id=public_id)
    clearing = rows.select_related("workspace", "agent", "by").first()
    if clearing is None:
        raise NotFound(_("This does not exist, or you do not have access to it."))
    return clearing


def undo(clearing: Clearing, *, by: User, as_staff: bool = False) -> Clearing:
    """Queue the undo of a soft clearing. Raises Conflict while one of the scope runs, or if this was permanent."""
    try:
        with transaction.atomic():
            locked = Clearing.objects.select_for_update(of=("self",)).get(pk=clearing.pk)
            if locked.for_good or locked.status == ClearingStatus.CLEARING:
                raise Conflict(_("This clearing cannot be undone, or not yet."), code="clearing")
            if locked.status in (ClearingStatus.CLEARED, ClearingStatus.STOPPED):
                Clearing.objects.filter(pk=locked.pk).update(
                    status=ClearingStatus.UNDOING, total=locked.deleted().count(), done=0, left_out=0, after=0,
                    finished_at=None, by=by, as_staff=as_staff,
                )  # fmt: skip
                locked.refresh_from_db()
                _queue(locked)
    except IntegrityError:
        raise Conflict(_("These memories are being cleared already."), code="clearing") from None
    return locked


def work_on(clearing: Clearing, *, seconds: float) -> None:
    """Run a clearing, unless another worker does, for about ``seconds``. If memories are left, queue a job for them."""
    until = time.monotonic() + seconds
    while _work_on_batch(clearing.pk):
        if time.monotonic() > until:
            _queue(clearing)
            break
    with suppress(Clearing.DoesNotExist):  # deleted with its workspace
        clearing.refresh_from_db()


def sweep(*, seconds: float) -> int:
    """Continue clearings that no worker is running, for about ``seconds`` each. Return how many were tried."""
    open_now = Clearing.objects.filter(status__in=AT_WORK).order_by("pk")[:SWEPT]
    for clearing in open_now:
        work_on(clearing, seconds=seconds)
    return len(open_now)


def _work_on_batch(clearing_pk: int) -> bool:
    """Process the next batch of memories in one transaction. Return False if none is left or another worker has it."""
    with transaction.atomic():
        rows = Clearing.objects.select_for_update(of=("self",), skip_locked=True)
        clearing = rows.select_related("workspace", "agent", "by").filter(pk=clearing_pk).first()
        if clearing is None or not clearing.is_at_work:
            return False
        batch = list(_left(clearing).select_related("workspace", "owner", "agent").order_by("pk")[:BATCH])
        if not _still_has_right(clearing):
            _end(clearing, ClearingStatus.STOPPED)
        elif not batch:
            undone = clearing.status == ClearingStatus.UNDOING
            _end(clearing, ClearingStatus.UNDONE if undone else ClearingStatus.CLEARED)
        else:
            changed = _change(clearing, batch)
            clearing.after = batch[-1].pk
            clearing.done += changed
            clearing.left_out += len(batch) - changed
        clearing.save(update_fields=["status", "after", "done", "left_out", "finished_at"])
        return clearing.is_at_work


def _end(clearing: Clearing, status: ClearingStatus) -> None:
    clearing.status, clearing.after, clearing.finished_at = status, 0, timezone.now()


def _still_has_right(clearing: Clearing) -> bool:
    """Return whether the person who began the clearing or its undo still has the right to it. Reads the database."""
    by = User.objects.filter(pk=clearing.by_id, is_active=True).first()
    if by is None:
        return False
    if clearing.as_staff:
        right = "change" if clearing.status == ClearingStatus.UNDOING else "add"
        return by.is_staff and by.has_perm(f"memories.{right}_clearing")
    return clearing.scope == Scope.USER or role_in(by, clearing.workspace) == Role.OWNER


def _change(clearing: Clearing, batch: list[Memory]) -> int:
    """Delete, permanently remove or restore the memories of a batch. Return the number changed."""
    if clearing.status == ClearingStatus.CLEARING and clearing.for_good:
        forget_memories(batch, by=clearing.by, now=timezone.now())
        return len(batch)
    changed = 0
    for memory in batch:
        try:
            if clearing.status == ClearingStatus.UNDOING:
                restore_memory(memory, by=clearing.by, now=timezone.now())
            else:
                delete_memory(memory, by=clearing.by, now=clearing.started_at)
            changed += 1
        except DomainError as error:
            logger.info("A memory was left out of %s: %s", clearing.public_id, error.code)
    return changed


def _left(clearing: Clearing) -> MemoryQuerySet:
    if clearing.status == ClearingStatus.UNDOING:
        return clearing.deleted().filter(pk__gt=clearing.after)
    rows = clearing.memories().filter(pk__gt=clearing.after)
    rows = rows.filter(created_at__lte=clearing.started_at)  # memories saved after the start are kept
    return rows if clearing.for_good else rows.filter(deleted_at=None)


def _queue(clearing: Clearing) -> None:
    job = {"clearing_id": clearing.pk, "task_name": "clear memories"}
    transaction.on_commit(lambda: async_task("memories.tasks.clear_memories", **job))
