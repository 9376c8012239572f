"""Proposals in the panel, in settings, over REST and in the admin."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.judging.extraction.speaker import Source
from memories.models import Memory, Review
from memories.writing.gate import Draft, save_memory
from memoryhub.llm.base import Speaker
from tests.admin_pages import run_action, said
from tests.api import Api, error_of
from tests.conftest import Cast
from tests.factories import make_document, make_memory
from tests.signing_in import signed_in
from workspaces.models import User, Workspace

TEXT = "The launch is on <b>March 15</b>"
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]
LIST = "/admin/memories/memory/"


def propose(cast: Cast, text: str = TEXT, by: User | None = None) -> Memory:
    draft = Draft(text, cast.workspace, by or cast.viewer).to_review()
    return save_memory(draft, by=by or cast.viewer, now=timezone.now()).memory


@pytest.fixture
def reviewed(cast: Cast) -> Workspace:
    client = signed_in(cast.owner)
    client.post(f"/workspaces/{cast.workspace.public_id}/reviews/", {"reviews": "on"})
    cast.workspace.refresh_from_db()
    assert cast.workspace.reviews_proposals
    return cast.workspace


def panel(user: User, workspace: Workspace, **query: str) -> str:
    return signed_in(user).get(f"/workspaces/{workspace.public_id}/memories/", query).content.decode()


def test_viewers_propose_in_the_panel_where_they_may(cast: Cast) -> None:
    url = f"/workspaces/{cast.workspace.public_id}/memories/add/"
    viewer = signed_in(cast.viewer)
    assert "memory-add" not in panel(cast.viewer, cast.workspace)
    assert viewer.post(url, {"new-content": TEXT}).status_code == 403
    Workspace.objects.update(reviews_proposals=True)
    assert "Propose" in panel(cast.viewer, cast.workspace)
    said = viewer.post(url, {"new-content": TEXT}).content.decode()
    assert "It waits until an editor approves it" in said
    memory = Memory.objects.get()
    assert (memory.review, memory.author) == (Review.PENDING, cast.viewer)
    assert viewer.get(f"/workspaces/{cast.workspace.public_id}/memories/count/").status_code == 200


def test_editors_decide_with_one_click_and_viewers_watch(cast: Cast) -> None:
    memory, other = propose(cast), propose(cast, "Cats purr")
    shown = panel(cast.editor, cast.workspace)
    assert "2 memories are waiting for review" in shown
    assert "The launch is on &lt;b&gt;March 15&lt;/b&gt;" in shown
    assert "vera" in shown
    assert "Approve" not in panel(cast.viewer, cast.workspace)
    assert "waiting for review" not in panel(cast.editor, cast.workspace, q="launch", part="list")
    client = signed_in(cast.editor)
    approve = f"/workspaces/{cast.workspace.public_id}/proposals/{memory.public_id}/approve/"
    answer = client.post(approve)
    assert answer["HX-Trigger"] == "memories:changed"
    assert "Approved." in answer.content.decode()
    reject = f"/workspaces/{cast.workspace.public_id}/proposals/{other.public_id}/reject/"
    assert "will not be proposed again" in client.post(reject).content.decode()
    assert client.post(approve).status_code == 404
    assert "1 waits" not in panel(cast.editor, cast.workspace)
    assert list(Memory.objects.live()) == [memory]
    assert client.post(reject.replace("reject", "approve")).status_code == 200, "decided otherwise"


def test_a_proposal_names_whose_words_it_rests_on(cast: Cast) -> None:
    """A document by its title, for those who may read it: the title of a personal one stays hidden."""
    shared = make_document(cast.owner, cast.workspace, title="Refund <b>policy</b>", embedded=False)
    own = make_document(cast.owner, cast.workspace, title="Diary", embedded=False, personal=True)
    for text, document in (("Refunds go to a bank", shared), ("It rains in Oslo", own)):
        source = Source(Speaker.DOCUMENT, None, document.public_id)
        save_memory(
            Draft(text, cast.workspace, cast.owner).with_source(source), by=cast.owner, now=timezone.now()
        )
    mine, others = panel(cast.owner, cast.workspace), panel(cast.editor, cast.workspace)
    for shown in (mine, others):
        assert "Source: <bdi>Document: Refund &lt;b&gt;policy" in shown
    assert "Diary" in mine and "Diary" not in others


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_undo_of_a_decision_puts_it_back_to_review_and_never_into_use(cast: Cast, decision: str) -> None:
    memory = propose(cast)
    client = signed_in(cast.editor)
    decided = client.post(f"/workspaces/{cast.workspace.public_id}/proposals/{memory.public_id}/{decision}/")
    undo = re.search(r'hx-post="([^"]+)"', decided.content.decode())
    assert undo is not None
    assert signed_in(cast.viewer).post(undo[1]).status_code == 403
    answer = client.post(undo[1])
    assert "It is waiting for review again." in answer.content.decode()
    assert "Undo" not in answer.content.decode()
    assert "1 memory is waiting for review" in panel(cast.editor, cast.workspace)
    assert not Memory.objects.live().exists()


def test_the_panel_costs_no_more_with_many_proposals(cast: Cast) -> None:
    def queries() -> int:
        client = signed_in(cast.editor)
        with CaptureQueriesContext(connection) as captured:
            client.get(f"/workspaces/{cast.workspace.public_id}/memories/")
        return len(captured)

    propose(cast)
    few = queries()
    for number in range(12):
        propose(cast, f"Number {number} is up")
    assert queries() == few


def test_rest_lists_takes_and_decides(cast: Cast, reviewed: Workspace) -> None:
    viewer, editor = Api(cast.viewer), Api(cast.editor)
    base = f"workspaces/{reviewed.public_id}"
    made = viewer.post(f"{base}/proposals", {"content": TEXT, "category": "event", "tags": ["launch"]})
    assert made.status_code == 202
    assert viewer.post(f"{base}/memories", {"content": TEXT}).status_code == 403
    assert error_of(viewer.post(f"{base}/proposals", {"content": TEXT, "pinned": True}))["code"] == "invalid"
    listed = editor.get(f"{base}/proposals").json()["items"]
    assert [(item["content"], item["category"]) for item in listed] == [(TEXT, "event")]
    assert editor.get(f"{base}/memories").json()["items"] == []
    memory_id = made.json()["id"]
    assert editor.get(f"{base}/memories/{memory_id}").status_code == 404
    assert error_of(editor.post(f"{base}/memories/{memory_id}/restore"))["code"] == "in_review"
    approved = editor.post(f"{base}/proposals/{memory_id}/approve")
    assert (approved.status_code, approved.json()["duplicate"]) == (200, False)
    assert viewer.post(f"{base}/proposals", {"content": TEXT}).json()["duplicate"] is True
    second = viewer.post(f"{base}/proposals", {"content": "Cats purr"}).json()["id"]
    assert editor.post(f"{base}/proposals/{second}/reject").status_code == 204
    assert editor.get(f"{base}/proposals").json()["items"] == []


def run(client: Client, action: str, *memories: Memory) -> str:
    return " ".join(said(run_action(client, LIST, action, *memories)))


def test_the_admin_decides_about_several(admin_client: Client, cast: Cast) -> None:
    first, second, live = (
        propose(cast),
        propose(cast, "Cats purr"),
        make_memory("Dogs bark", cast.owner, cast.workspace),
    )
    shown = admin_client.get(LIST, {"state": "pending"}).content.decode()
    assert "waits for review" in shown
    assert "Dogs bark" not in shown
    assert "Cats purr" not in admin_client.get(LIST, {"state": "deleted"}).content.decode()
    assert "1 memory approved, 1 left as before." in run(admin_client, "approve", first, live)
    assert "1 memory rejected." in run(admin_client, "reject", second)
    assert set(Memory.objects.live()) == {first, live}
    assert "Cats purr" in admin_client.get(LIST, {"state": "rejected"}).content.decode()
    put_back = run(admin_client, "reconsider", first, second, live)
    assert "2 memories put back to review, 1 left as before." in put_back
    assert set(Memory.objects.filter(review=Review.PENDING)) == {first, second}
    assert list(Memory.objects.live()) == [live]
