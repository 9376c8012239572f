"""Proposals: memories that wait until an editor approves or rejects them.

A proposal is a row marked as deleted, so no list, count, recall or duplicate check uses it. A rejected proposal is
kept, so that it is not proposed again, until it is purged like other deleted rows.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from memories.indexing import put_in_index, unindex_words
from memories.models import Memory, Review, Revision, Scope
from memories.models.memory import MemoryQuerySet, RevisionAction
from memories.writing import changing, decide, gate, tombstones
from memories.writing.changing import announce, audit, next_update, notify_webhooks
from memories.writing.gate import Draft, Saved, enforce_limit
from memoryhub.errors import Conflict, Forbidden, NotFound
from workspaces.access import require
from workspaces.audit import Verb
from workspaces.data_policy import DataPolicy
from workspaces.index.embedding import embed_one
from workspaces.models import Role, User, Workspace


def may_propose(workspace: Workspace, role: str) -> bool:
    """Return whether this role may only propose memories: a viewer in a workspace that reviews proposals."""
    return not Role(role).allows(Role.EDITOR) and workspace.reviews_proposals


def require_to_save(workspace: Workspace) -> None:
    """Raise Forbidden if the person, whose role is ``workspace.role``, may neither save nor propose memories."""
    if not may_propose(workspace, workspace.role):
        require(workspace.role, Role.EDITOR)


def save_or_propose(draft: Draft, *, by: User, now: datetime) -> Saved:
    """Save the draft, for a viewer as a proposal. Raises Forbidden if ``draft.workspace.role`` allows neither."""
    require_to_save(draft.workspace)
    if may_propose(draft.workspace, draft.workspace.role):
        if draft.scope == Scope.USER:
            message = _("You cannot save personal memories here. Save them in your personal workspace.")
            raise Forbidden(message)
        draft = draft.to_review()
    return gate.save_memory(draft, by=by, now=now)


def proposals(workspace: Workspace, user: User) -> MemoryQuerySet:
    """Return the waiting proposals that the user may see, oldest first."""
    waiting = Memory.objects.visible_to(user).filter(workspace=workspace, review=Review.PENDING)
    return waiting.listed().order_by("created_at", "pk")


def get_proposal(user: User, public_id: str, *, workspace: Workspace) -> Memory:
    """Return a waiting or rejected proposal. Raises NotFound if the user may not see it, Forbidden if no editor."""
    rows = Memory.objects.visible_to(user).exclude(review=Review.NONE).filter(workspace=workspace)
    rows = rows.select_related("author", "edited_by", "imported_by", "workspace", "agent", "owner")
    proposal = rows.filter(public_id=public_id).first()
    if proposal is None:
        raise NotFound(_("This proposal does not exist, or someone has already decided about it."))
    require(workspace.role, Role.EDITOR)
    return proposal


def approve(memory: Memory, *, by: User, now: datetime, replacing: bool = False) -> Saved:
    """Make a proposal live, even a rejected one. Costs one embedding.

    If a live memory says the same by now, reject the proposal and return that memory. ``replacing``: also end the older
    memory that the proposal may replace. Raises NotFound if somebody else has approved it in the meantime.
    """
    embedded = embed_one(memory.content, memory.source_excerpt, DataPolicy.here(memory.workspace))
    with changing.one_owner_per_key():
        decide.one_writer_at_a_time(memory.workspace)
        locked = _locked(memory)
        forgotten = tombstones.forbids_restore(locked, by=by)
        verdict = decide.decide(locked, decide.Stored(locked, embedded, now), now=now, forgotten=forgotten)
        match verdict:
            case decide.Refused(error):
                raise error
            case decide.Known(known):
                changing.record_wordings([(known, locked.content)], by=by, now=now)
                _decide(locked, RevisionAction.REJECT, Review.REJECTED, by, now)
                return Saved(known, created=False, duplicate=True)
            case decide.Update(known, previous_key_owner):
                changes = {"content": locked.content, "key": locked.key}
                known = changing.update_in_place(
                    known, changes, embedded, previous_key_owner, by=by, words=locked, now=now
                )
                _decide(locked, RevisionAction.REJECT, Review.REJECTED, by, now)
                return Saved(known, created=False, duplicate=True)
            case decide.New(may_replace, previous_key_owner):
                older = locked.possibly_replaced if replacing else None
                older = older and changing.locked_row(older, deleted=False)
                locked.may_replace = older or may_replace
                if previous_key_owner is not None:
                    changing.move_key(previous_key_owner, to=locked, by=by, now=now)
        locked.deleted_at = None
        _decide(locked, RevisionAction.APPROVE, Review.NONE, by, now)
        put_in_index(locked, embedded)
        if older is not None:
            changing.replace(older, newer=locked, by=by, now=now)
        if locked.is_automatic:
            enforce_limit(locked)
    return Saved(locked, created=True)


def reject(memory: Memory, *, by: User, now: datetime) -> Memory:
    """Reject a proposal, so that it is not proposed again. A second call does nothing."""
    with transaction.atomic():
        locked = _locked(memory)
        if locked.review != Review.REJECTED:
            _decide(locked, RevisionAction.REJECT, Review.REJECTED, by, now)
    return locked


def reconsider(memory: Memory, *, by: User, now: datetime) -> Memory:
    """Undo an approval, with its replacement, or a rejection. Raises Conflict if the memory was never decided on."""
    with transaction.atomic():
        locked = _locked(memory, proposals_only=False)
        if locked.review == Review.PENDING:
            return locked
        if not decided(Memory.objects.filter(pk=locked.pk)).exists():
            raise Conflict(_("Nobody has decided about this memory yet."), code="no_proposal")
        if locked.review == Review.NONE:
            notify_webhooks([locked], "reconsider")
            if (older := locked.replaced) is not None:
                changing.replace(changing.locked_row(older), newer=None, by=by, now=now)
            locked.embeddings.all().delete()
            unindex_words([locked])
        _decide(locked, RevisionAction.PROPOSE, Review.PENDING, by, now)
    return locked


def decided(rows: QuerySet[Memory]) -> QuerySet[Memory]:
    """Filter to memories that were rejected, or that were approved and are still live."""
    approved = Revision.objects.filter(memory=OuterRef("pk"), action=RevisionAction.APPROVE)
    return rows.filter(Q(review=Review.REJECTED) | Q(Exists(approved), review=Review.NONE, deleted_at=None))


def _decide(memory: Memory, action: str, outcome: str, by: User, now: datetime) -> None:
    memory.review, memory.updated_at = outcome, next_update(memory, now)
    # The retention of deleted rows starts now.
    memory.deleted_at = memory.deleted_at if outcome == Review.NONE else now
    memory.save(update_fields=["review", "deleted_at", "updated_at", "may_replace"])
    Revision.objects.create(memory=memory, action=action, by=by, at=now)
    audit(Verb.MODERATED, memory, by, action=action)
    announce(memory, action)


def _locked(memory: Memory, *, proposals_only: bool = True) -> Memory:
    rows = Memory.objects.select_for_update(of=("self",)).select_related(
        "workspace", "owner", "author", "edited_by", "may_replace"
    )
    if proposals_only:
        rows = rows.exclude(review=Review.NONE)
    locked = rows.filter(pk=memory.pk).first()
    if locked is None:
        raise NotFound(_("Someone has already decided about this proposal."))
    return locked
