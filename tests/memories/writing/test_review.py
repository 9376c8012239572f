"""Proposals wait for a person, and nothing uses them before."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories import tasks
from memories.access import count_live
from memories.forgetting.for_good import forget_memories
from memories.models import Memory, Review, Tombstone
from memories.recalling.recall import recall
from memories.writing import changing, gate, review
from memories.writing.gate import Draft, save_memory
from memoryhub.errors import Conflict, Forbidden, NotFound
from tests.api import Api
from tests.conftest import Cast
from tests.factories import HERE, make_memory
from workspaces.access import get_workspace
from workspaces.models import AuditEvent, PassageVector, PassageWord, Workspace

TEXT = "The launch is on March 15"
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]


@pytest.fixture
def reviewed(cast: Cast) -> Workspace:
    Workspace.objects.filter(pk=cast.workspace.pk).update(reviews_proposals=True)
    cast.workspace.refresh_from_db()
    return cast.workspace


def propose(cast: Cast, text: str = TEXT, **fields: Any) -> Memory:
    draft = Draft(text, cast.workspace, cast.editor, for_review=True, **fields)
    saved = save_memory(draft, by=None, now=timezone.now())
    assert (saved.pending, saved.created, saved.duplicate) == (True, False, False)
    return saved.memory


def test_nothing_knows_of_a_proposal(cast: Cast) -> None:
    memory = propose(cast)
    assert memory.review == Review.PENDING
    assert not Memory.objects.live().exists()
    assert count_live(cast.workspace, cast.owner, personal=True, now=timezone.now()) == 0
    for ranking in ("hybrid", "semantic", "longterm", "lexical"):
        assert (
            recall(TEXT, cast.workspace, cast.owner, ranking=ranking, policy=HERE, now=timezone.now()).items
            == []
        )
    assert not PassageVector.objects.exists()
    assert not PassageWord.objects.exists()
    assert tasks.sweep().startswith("0 extractions, 0 embeddings")
    saved = save_memory(Draft(TEXT, cast.workspace, cast.editor), by=cast.editor, now=timezone.now())
    assert saved.created, "a person who says it themselves need not wait"


def test_approving_brings_it_into_use(cast: Cast) -> None:
    memory = propose(cast)
    saved = review.approve(memory, by=cast.owner, now=timezone.now())
    assert saved.created
    assert [
        item.memory
        for item in recall(TEXT, cast.workspace, cast.viewer, policy=HERE, now=timezone.now()).items
    ] == [memory]
    assert PassageWord.objects.filter(ref=memory.pk, lexeme="launch").exists()
    assert [each.action for each in memory.revisions.order_by("pk")] == ["propose", "approve"]
    event = AuditEvent.objects.get(verb="moderated")
    assert (event.by_name, event.target, event.details) == ("olive", memory.public_id, {"action": "approve"})
    with pytest.raises(NotFound):
        review.approve(memory, by=cast.owner, now=timezone.now())


def test_rejecting_keeps_it_out_and_from_being_proposed_again(cast: Cast) -> None:
    memory = propose(cast)
    review.reject(memory, by=cast.owner, now=timezone.now())
    again = save_memory(
        Draft(TEXT + "!", cast.workspace, cast.viewer, for_review=True), by=None, now=timezone.now()
    )
    assert (again.memory, again.pending) == (memory, True)
    assert not review.proposals(cast.workspace, cast.owner).exists()
    assert review.approve(memory, by=cast.owner, now=timezone.now()).created, "a rejection can be taken back"


@pytest.mark.parametrize("decide", [review.approve, review.reject])
def test_either_decision_can_be_taken_back_and_then_it_waits_again(cast: Cast, decide: Any) -> None:
    memory = propose(cast)
    decide(memory, by=cast.owner, now=timezone.now())
    for _ in range(2):  # the second call changes nothing
        review.reconsider(memory, by=cast.owner, now=timezone.now())
    assert list(review.proposals(cast.workspace, cast.owner)) == [memory]
    assert not Memory.objects.live().exists()
    assert not PassageVector.objects.exists()
    assert not PassageWord.objects.exists()
    assert recall(TEXT, cast.workspace, cast.owner, policy=HERE, now=timezone.now()).items == []
    assert [
        event.details["action"] for event in AuditEvent.objects.filter(verb="moderated").order_by("pk")
    ] == [
        decide.__name__,
        "propose",
    ]
    assert review.approve(memory, by=cast.owner, now=timezone.now()).created
    assert [
        item.memory
        for item in recall(TEXT, cast.workspace, cast.viewer, policy=HERE, now=timezone.now()).items
    ] == [memory]


def test_approving_replaces_the_older_one_if_it_is_asked_to_and_undo_lets_it_hold(cast: Cast) -> None:
    older = make_memory("The launch is on March 1", cast.owner, cast.workspace)
    memory = propose(cast)
    Memory.objects.filter(pk=memory.pk).update(may_replace=older)
    page = Client()
    page.force_login(cast.editor)
    shown = page.get(f"/workspaces/{cast.workspace.public_id}/tidy/?show=waiting").content.decode()
    assert "Approve and replace" in shown and older.content in shown
    at = f"workspaces/{cast.workspace.public_id}/proposals/{memory.public_id}/approve"
    for person, code in ((cast.viewer, 403), (cast.stranger, 404), (cast.editor, 200)):
        assert Api(person).post(at, {"replacing": True}).status_code == code
        older.refresh_from_db()
        assert (older.replaced_by == memory) == (code == 200)
    assert older.is_over(timezone.now())
    review.reconsider(memory, by=cast.owner, now=timezone.now())
    older.refresh_from_db()
    assert (older.replaced_by, older.valid_to) == (None, None)
    answer = page.post(
        f"/workspaces/{cast.workspace.public_id}/proposals/{memory.public_id}/approve/", {"replacing": "on"}
    )
    older.refresh_from_db()
    assert older.replaced_by == memory and "kept for questions about the past" in answer.content.decode()
    open_still = propose(cast, "The launch is on March 29")
    Memory.objects.filter(pk=open_still.pk).update(may_replace=memory)
    review.approve(open_still, by=cast.owner, now=timezone.now())
    memory.refresh_from_db()
    assert memory.replaced_by is None


def test_what_nobody_decided_about_cannot_be_put_to_review(cast: Cast) -> None:
    """A deleted memory cannot either: one hidden for a credential would reappear in the panel."""
    plain, approved = make_memory("Cats purr", cast.owner, cast.workspace), propose(cast)
    review.approve(approved, by=cast.owner, now=timezone.now())
    gate.delete_memory(approved, by=None, now=timezone.now())
    for memory in (plain, approved):
        with pytest.raises(Conflict):
            review.reconsider(memory, by=cast.owner, now=timezone.now())
    assert not review.proposals(cast.workspace, cast.owner).exists()
    assert list(Memory.objects.live()) == [plain]


def test_restoring_is_no_way_around_the_review(cast: Cast) -> None:
    with pytest.raises(Conflict) as refused:
        changing.restore_memory(propose(cast), by=cast.editor, now=timezone.now())
    assert refused.value.code == "in_review"


def test_what_models_propose_waits_where_the_workspace_says_so(cast: Cast, reviewed: Workspace) -> None:
    now = timezone.now()
    for source in ("model", "auto_chat"):
        draft = Draft(f"{TEXT} says {source}", reviewed, cast.editor, source_type=source)
        assert save_memory(draft, by=None, now=now).pending
    assert save_memory(Draft(TEXT, reviewed, cast.editor), by=cast.editor, now=now).created
    own = Draft("I am vegetarian", reviewed, cast.editor, source_type="auto_chat", scope="user")
    assert save_memory(own, by=None, now=now).created, "one's own memories are nobody else's to review"


def test_viewers_propose_where_they_may(cast: Cast, reviewed: Workspace) -> None:
    now = timezone.now()
    workspace = get_workspace(cast.viewer, reviewed.public_id)
    saved = review.save_or_propose(Draft(TEXT, workspace, cast.viewer), by=cast.viewer, now=now)
    assert saved.pending
    with pytest.raises(Forbidden):
        review.save_or_propose(Draft(TEXT, workspace, cast.viewer, scope="user"), by=cast.viewer, now=now)
    Workspace.objects.update(reviews_proposals=False)
    workspace = get_workspace(cast.viewer, reviewed.public_id)
    with pytest.raises(Forbidden):
        review.save_or_propose(Draft(TEXT, workspace, cast.viewer), by=cast.viewer, now=now)


def test_a_viewers_proposal_lifts_no_tombstone_an_approval_does(cast: Cast) -> None:
    forget_memories([make_memory(TEXT, cast.owner, cast.workspace)], by=cast.owner, now=timezone.now())
    draft = Draft(TEXT, cast.workspace, cast.viewer, for_review=True)
    memory = save_memory(draft, by=cast.viewer, now=timezone.now()).memory
    assert Tombstone.objects.count() == 1
    review.approve(memory, by=cast.owner, now=timezone.now())
    assert not Tombstone.objects.exists()


def test_personal_proposals_are_their_owners(cast: Cast) -> None:
    memory = propose(cast, scope="user")
    home = get_workspace(cast.editor, memory.workspace.public_id)
    assert list(review.proposals(home, cast.editor)) == [memory]
    assert not review.proposals(home, cast.owner).exists()
    review.approve(memory, by=cast.editor, now=timezone.now())
    assert AuditEvent.objects.get(verb="moderated").workspace_id == "", "nor to be seen in a workspace's log"


def test_proposals_wait_as_long_as_it_takes_and_rejected_ones_go(cast: Cast) -> None:
    waiting, rejected = propose(cast), propose(cast, "Another")
    review.reject(rejected, by=cast.owner, now=timezone.now())
    Memory.objects.update(deleted_at=timezone.now() - timedelta(days=99))
    tasks.sweep()
    assert list(Memory.objects.all()) == [waiting]


def test_a_proposal_with_a_key_changes_nothing_in_place(cast: Cast) -> None:
    known = make_memory("The launch is in April", cast.owner, cast.workspace, key="launch")
    memory = propose(cast, key="launch")
    known.refresh_from_db()
    assert known.content == "The launch is in April"
    with pytest.raises(Conflict):
        review.approve(memory, by=cast.owner, now=timezone.now())
