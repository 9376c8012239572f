"""Copies that the deleting user may not delete: who is notified, their options, and what stays hidden."""

from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from memories.forgetting.for_good import forget_memories, forget_noted, get_noted, with_noted_copies
from memories.forgetting.remaining_copies import LOOKED_FOR
from memories.models import CopyKind, KeptCopy, Memory
from memories.writing import changing, gate
from memories.writing.gate import Draft
from tests.api import Api, error_of, type_password_again
from tests.conftest import Cast
from tests.factories import make_memory, make_workspace
from tests.memories.test_forgetting_guesses import SECRET, say
from tests.races import Work
from tests.raw_search import places_with
from workspaces.access import default_workspace
from workspaces.models import AuditEvent, Membership, Role, User, Workspace

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]


def forget(text: str, by: User, workspace: Workspace, **fields: Any) -> None:
    forget_memories([make_memory(text, by, workspace, **fields)], by=by, now=timezone.now())


def seen_by(person: User, workspace: Workspace) -> set[Memory]:
    return set(with_noted_copies(workspace, person))


def test_they_are_told_who_may_forget_the_copies_and_nobody_else(cast: Cast) -> None:
    home = default_workspace(cast.owner)
    for person, role in ((cast.editor, Role.EDITOR), (cast.stranger, Role.OWNER), (cast.viewer, Role.EDITOR)):
        Membership.objects.create(workspace=home, user=person, role=role)
    shared, personal = say(SECRET, cast.viewer, home), say(SECRET, cast.owner, home, scope="user")
    elsewhere = say(SECRET, cast.stranger, default_workspace(cast.stranger), scope="user")
    deleted = make_memory(SECRET, cast.viewer, home)
    gate.delete_memory(deleted, by=cast.viewer, now=timezone.now())
    other = say(SECRET, cast.owner, make_workspace(owner=cast.owner, name="Another matter"))
    forget(SECRET, cast.editor, home)
    assert seen_by(cast.editor, home) == set()
    assert seen_by(cast.viewer, home) == {shared, deleted}
    assert seen_by(cast.owner, home) == {shared, deleted, personal}
    assert seen_by(cast.stranger, home) == {shared, deleted}
    assert seen_by(cast.stranger, default_workspace(cast.stranger)) == {elsewhere}
    assert not KeptCopy.objects.filter(memory=other).exists()
    assert set(shared.kept_copies.values_list("kind", flat=True)) == {"excerpt", "revision", "item"}
    assert "memories_keptcopy" not in str(places_with(SECRET)), "no word of it stands in a note"


def test_of_a_personal_memory_that_is_forgotten_nobody_hears(cast: Cast) -> None:
    """Guesses planted in histories would reveal to their author who deletes them."""
    home = default_workspace(cast.editor)
    Membership.objects.create(workspace=home, user=cast.owner, role=Role.OWNER)
    planted = say(SECRET, cast.owner, home)
    personal = make_memory(SECRET, cast.editor, home, scope="user")
    forget_memories([personal], by=cast.editor, now=timezone.now(), among=Memory.objects.none())
    assert not KeptCopy.objects.exists()
    assert Memory.objects.filter(pk=planted.pk).exclude(source_excerpt="").exists()


def test_of_a_proposal_that_is_forgotten_no_viewer_hears(cast: Cast) -> None:
    """They could never read it, so guesses in their own histories must not be notified."""
    for person in (cast.viewer, cast.owner):
        say(SECRET, person, default_workspace(person), scope="user")
    proposal = gate.save_memory(
        Draft(SECRET, cast.workspace, cast.editor).to_review(), by=cast.editor, now=timezone.now()
    ).memory
    forget_memories([proposal], by=cast.editor, now=timezone.now())
    assert set(KeptCopy.objects.values_list("memory__owner", flat=True)) == {cast.owner.pk}


def test_one_click_forgets_those_copies_and_no_more(cast: Cast) -> None:
    memory = say(SECRET, cast.owner, cast.workspace)
    gate.edit_memory(memory, by=cast.owner, now=timezone.now(), content="It says this now", category="fact")
    forget(SECRET, cast.editor, cast.workspace)
    later = make_memory("Untouched", cast.owner, cast.workspace, source_excerpt="olive: other things")
    client = Client()
    client.force_login(cast.owner)
    panel = client.get(f"/workspaces/{cast.workspace.public_id}/memories/").content.decode()
    assert "1 memory quotes what someone forgot for good" in panel
    assert "Forget those copies" in panel
    address = f"/workspaces/{cast.workspace.public_id}/copies/{memory.public_id}/forget/"
    assert "/accounts/reauthenticate/" in client.post(address)["Location"]
    type_password_again(client)
    page = client.post(address).content.decode()
    assert "The copies are no longer in the database" in page
    assert places_with(SECRET) == []
    memory.refresh_from_db()
    assert (memory.content, memory.category) == ("It says this now", "fact")
    assert Memory.objects.get(pk=later.pk).source_excerpt
    assert client.post(address).status_code == 404, "once is enough"
    event = AuditEvent.objects.filter(verb="memory_forgotten", target=memory.public_id).get()
    assert event.details["earlier_versions"] == 2


def test_a_deleted_one_that_says_so_goes_whole_and_a_restored_one_is_left(cast: Cast) -> None:
    deleted, restored = (make_memory(SECRET, cast.owner, cast.workspace) for _ in "12")
    for memory in (deleted, restored):
        gate.delete_memory(memory, by=cast.owner, now=timezone.now())
    forget(SECRET, cast.editor, cast.workspace)
    assert seen_by(cast.owner, cast.workspace) == {deleted, restored}
    changing.restore_memory(restored, by=cast.owner, now=timezone.now())
    assert seen_by(cast.owner, cast.workspace) == {deleted}
    forget_noted(restored, by=cast.owner, now=timezone.now())
    assert set(Memory.objects.all()) == {deleted, restored}
    forget_noted(deleted, by=cast.owner, now=timezone.now())
    assert not Memory.objects.filter(pk=deleted.pk).exists()


def test_over_rest(cast: Cast) -> None:
    memory = say(SECRET, cast.owner, cast.workspace)
    forget(SECRET, cast.editor, cast.workspace)
    address = f"workspaces/{cast.workspace.public_id}/copies"
    owner, editor = Api(cast.owner), Api(cast.editor)
    expected = {"memory_id": memory.public_id, "copies": {"excerpt": 1, "item": 1, "revision": 1}}
    assert owner.get(address).json()["items"] == [expected]
    assert editor.get(address).json()["items"] == []
    for act in ("forget", "keep"):
        assert editor.post(f"{address}/{memory.public_id}/{act}").status_code == 403
    assert error_of(owner.post(f"{address}/{memory.public_id}/forget"))["code"] == "reauthenticate"
    type_password_again(owner.client)
    removed = owner.post(f"{address}/{memory.public_id}/forget").json()["removed"]
    assert removed == {"source_excerpts": 1, "earlier_versions": 1, "receipt_items": 1}
    assert places_with(SECRET) == []
    assert owner.get(address).json()["items"] == []


def test_what_is_kept_is_noted_no_more(cast: Cast) -> None:
    memory = say(SECRET, cast.owner, cast.workspace)
    forget(SECRET, cast.editor, cast.workspace)
    client = Client()
    client.force_login(cast.owner)
    answer = client.post(f"/workspaces/{cast.workspace.public_id}/copies/{memory.public_id}/keep/")
    assert "Kept as it is" in answer.content.decode()
    assert seen_by(cast.owner, cast.workspace) == set()
    assert Memory.objects.get(pk=memory.pk).source_excerpt


def test_the_same_forgotten_twice_is_noted_once(cast: Cast) -> None:
    say(SECRET, cast.owner, cast.workspace)
    for _ in range(2):
        forget(SECRET, cast.editor, cast.workspace)
    assert KeptCopy.objects.count() == 3


def test_an_excerpt_that_an_edit_put_into_the_history_goes_too(cast: Cast) -> None:
    memory = say(SECRET, cast.owner, cast.workspace)
    forget(SECRET, cast.editor, cast.workspace)
    gate.edit_memory(memory, by=cast.owner, now=timezone.now(), content="Something new")
    noted_one = get_noted(cast.owner, memory.public_id, workspace=_with_role(cast.workspace, cast.owner))
    forget_noted(noted_one, by=cast.owner, now=timezone.now())
    assert places_with(SECRET) == []


def _with_role(workspace: Workspace, person: User) -> Workspace:
    workspace.role = Membership.objects.get(workspace=workspace, user=person).role
    return workspace


@pytest.mark.django_db(transaction=True)
def test_who_removes_the_copy_at_that_moment_is_not_waited_for(cast: Cast) -> None:
    """A note on a row being deleted would fail, and waiting for its lock would reveal it."""
    memory = say(SECRET, cast.owner, cast.workspace)
    twin = make_memory(SECRET, cast.editor, cast.workspace)
    with transaction.atomic():
        Memory.objects.select_for_update().get(pk=memory.pk)
        work = Work(lambda: forget_memories([twin], by=cast.editor, now=timezone.now()))
        report = work.end()
    assert report.removed["memories"] == 1
    assert not KeptCopy.objects.filter(kind=CopyKind.REVISION).exists()


@pytest.mark.parametrize("how", ["deleted", "history of a deleted one", "expired"])
def test_of_what_viewers_could_not_read_none_of_them_hears(cast: Cast, how: str) -> None:
    """Guesses in their own histories would reveal what the others deleted."""
    for person in (cast.viewer, cast.owner):
        say(SECRET, person, default_workspace(person), scope="user")
    gone = make_memory(SECRET, cast.editor, cast.workspace)
    if how == "history of a deleted one":
        gate.edit_memory(gone, by=cast.editor, now=timezone.now(), content="It says something else")
    if how == "expired":
        Memory.objects.filter(pk=gone.pk).update(expires_at=timezone.now())
    else:
        gate.delete_memory(gone, by=cast.editor, now=timezone.now())
    live = make_memory("The sky is blue today", cast.editor, cast.workspace)
    forget_memories([gone, live], by=cast.editor, now=timezone.now())
    assert not seen_by(cast.viewer, default_workspace(cast.viewer))
    assert set(KeptCopy.objects.values_list("memory__owner", flat=True)) == {cast.owner.pk}


@pytest.mark.parametrize("earlier", [False, True])
def test_of_what_viewers_could_read_they_hear(cast: Cast, earlier: bool) -> None:
    own = say(SECRET, cast.viewer, default_workspace(cast.viewer), scope="user")
    memory = make_memory(SECRET, cast.editor, cast.workspace)
    if earlier:
        gate.edit_memory(memory, by=cast.editor, now=timezone.now(), content="It says something else")
    forget_memories([memory], by=cast.editor, now=timezone.now())
    assert seen_by(cast.viewer, default_workspace(cast.viewer)) == {own}


def test_of_another_workspaces_memory_forgotten_along_nobody_else_hears(cast: Cast) -> None:
    other = make_workspace(owner=cast.owner, name="Another matter")
    Membership.objects.create(workspace=other, user=cast.stranger, role=Role.VIEWER)
    say(SECRET, cast.stranger, default_workspace(cast.stranger), scope="user")
    both = [
        make_memory(SECRET, cast.owner, cast.workspace),
        make_memory("The sky is blue today", cast.owner, other),
    ]
    forget_memories(both, by=cast.owner, now=timezone.now())
    assert not KeptCopy.objects.exists()


@pytest.mark.parametrize("edits", [LOOKED_FOR - 2, LOOKED_FOR + 5])
def test_however_often_a_memory_was_edited_copies_of_its_words_are_found(cast: Cast, edits: int) -> None:
    theirs, own = (say(SECRET, person, cast.workspace) for person in (cast.owner, cast.editor))
    memory = make_memory(SECRET, cast.editor, cast.workspace)
    for number in range(edits):
        gate.edit_memory(memory, by=cast.editor, now=timezone.now(), content=f"{number} is its number now")
    report = forget_memories([memory], by=cast.editor, now=timezone.now())
    assert set(theirs.kept_copies.values_list("kind", flat=True)) == {"excerpt", "revision", "item"}
    assert report.removed["source excerpts"] == report.removed["earlier versions of other memories"] == 1
    own.refresh_from_db()
    assert own.source_excerpt == ""
