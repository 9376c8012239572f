"""Clearing a scope: which memories are deleted, permissions, undo, and concurrency."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories import tasks
from memories.forgetting import clear
from memories.models import Clearing, Memory, Scope
from memories.writing.changing import restore_memory
from memories.writing.gate import Draft, delete_memory, save_memory
from memories.writing.tombstones import WasForgotten
from tests.admin_pages import run_action
from tests.api import Api, type_password_again
from tests.conftest import Cast
from tests.factories import make_agent, make_memory
from tests.races import Work
from tests.rollback import rolled_back
from workspaces.access import default_workspace
from workspaces.models import Membership, Role, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]


@pytest.fixture
def memories(cast: Cast) -> dict[str, Memory]:
    """Create one of each scope, and one deleted before."""
    now, agent = timezone.now(), make_agent(cast.owner, cast.workspace)
    home = default_workspace(cast.owner)
    mine = Draft("Olive sings", home, cast.owner, scope=Scope.USER)
    its = Draft("Answers are short", cast.workspace, cast.owner, scope=Scope.AGENT, agent=agent)
    gone = make_memory("The shed is red", cast.editor, cast.workspace)
    delete_memory(gone, by=cast.editor, now=now)
    return {
        "first": make_memory("We deploy on Fridays", cast.editor, cast.workspace),
        "second": make_memory("Cats purr", cast.owner, cast.workspace),
        "gone": gone,
        "mine": save_memory(mine, by=cast.owner, now=now).memory,
        "its": save_memory(its, by=cast.owner, now=now).memory,
    }


def live(memories: dict[str, Memory]) -> set[str]:
    rows = Memory.objects.filter(deleted_at=None).values_list("pk", flat=True)
    return {name for name, memory in memories.items() if memory.pk in set(rows)}


def start(cast: Cast, api: Api, **body: Any) -> Any:
    return api.post(f"workspaces/{cast.workspace.public_id}/clearings", body)


def work(answer: Any) -> Clearing:
    assert answer.status_code == 202, answer.content
    clearing = Clearing.objects.get(public_id=answer.json()["id"])
    tasks.clear_memories(clearing_id=clearing.pk)
    return clearing


def test_clearing_empties_one_scope_and_its_undo_brings_it_back(
    cast: Cast, memories: dict[str, Memory]
) -> None:
    agent, api = memories["its"].agent, Api(cast.owner)
    assert agent is not None
    address = f"workspaces/{cast.workspace.public_id}/clearings"
    for which, count, stays in (
        ({"scope": "workspace"}, 2, {"mine", "its"}),
        ({"scope": "user"}, 1, {"first", "second", "its"}),
        ({"scope": "agent", "agent_id": agent.public_id}, 1, {"first", "second", "mine"}),
    ):
        if which["scope"] != "user":
            for person, status in ((cast.editor, 403), (cast.viewer, 403), (cast.stranger, 404)):
                assert start(cast, Api(person), **which).status_code == status, which
        assert api.get(address, **which).json()["count"] == count, which
        clearing = work(start(cast, api, **which))
        assert live(memories) == stays, which
        shown = api.get(f"{address}/{clearing.public_id}").json()
        assert (shown["status"], shown["total"], shown["done"]) == ("cleared", count, count), which
        work(api.post(f"{address}/{clearing.public_id}/undo"))
        assert live(memories) == {"first", "second", "mine", "its"}, which  # not those deleted before
        assert api.get(f"{address}/{clearing.public_id}").json()["status"] == "undone", which


def test_clearing_for_good_needs_the_password_and_leaves_no_row(
    cast: Cast, memories: dict[str, Memory]
) -> None:
    api = Api(cast.owner)
    refused = start(cast, api, for_good=True)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "reauthenticate")
    type_password_again(api.client)
    clearing = work(start(cast, api, for_good=True))
    assert set(Memory.objects.values_list("pk", flat=True)) == {memories["mine"].pk, memories["its"].pk}
    assert Clearing.objects.get(pk=clearing.pk).done == 3
    undone = api.post(f"workspaces/{cast.workspace.public_id}/clearings/{clearing.public_id}/undo")
    assert undone.status_code == 409


def test_anybody_clears_only_their_own_personal_memories(cast: Cast, memories: dict[str, Memory]) -> None:
    work(start(cast, Api(cast.viewer), scope="user"))
    assert "mine" in live(memories)
    clearing = work(start(cast, Api(cast.owner), scope="user"))
    others = f"workspaces/{cast.workspace.public_id}/clearings/{clearing.public_id}"
    assert Api(cast.editor).get(others).status_code == 404
    assert Api(cast.editor).post(f"{others}/undo").status_code == 404


def test_second_clearing_is_refused_and_the_sweep_takes_up_the_first(
    cast: Cast, memories: dict[str, Memory]
) -> None:
    api = Api(cast.owner)
    first = start(cast, api)
    second = start(cast, api)
    assert (second.status_code, second.json()["error"]["code"]) == (409, "clearing")
    clearing = Clearing.objects.get(public_id=first.json()["id"])
    assert "1 clearings" in tasks.sweep()  # its job is lost
    clearing.refresh_from_db()
    assert (clearing.status, clearing.done) == ("cleared", 2) and live(memories) == {"mine", "its"}
    assert "0 clearings" in tasks.sweep()


def test_a_job_out_of_time_leaves_the_rest_to_the_next(
    cast: Cast, memories: dict[str, Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clear, "BATCH", 1)
    clearing = Clearing.objects.get(public_id=start(cast, Api(cast.owner)).json()["id"])
    saved_since = make_memory("Dogs bark", cast.owner, cast.workspace)
    clear.work_on(clearing, seconds=0)
    assert (clearing.status, clearing.done) == ("clearing", 1)
    tasks.clear_memories(clearing_id=clearing.pk)
    clearing.refresh_from_db()
    assert (clearing.status, clearing.done) == ("cleared", 2)
    assert Memory.objects.get(pk=saved_since.pk).deleted_at is None


def test_a_workspace_deleted_meanwhile_ends_its_clearing(cast: Cast, memories: dict[str, Memory]) -> None:
    start(cast, Api(cast.owner))
    clearing = Clearing.objects.get()
    delete_memory(memories["first"], by=cast.owner, now=timezone.now())
    Clearing.objects.all().delete()  # as when its workspace is deleted
    clear.work_on(clearing, seconds=60)
    assert live(memories) == {"second", "mine", "its"}


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_count_each_memory_once(
    cast: Cast, memories: dict[str, Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clear, "BATCH", 1)
    clearing = Clearing.objects.get(public_id=start(cast, Api(cast.owner)).json()["id"])
    for worker in [Work(lambda: tasks.clear_memories(clearing_id=clearing.pk)) for _ in range(3)]:
        assert isinstance(worker.end(), str), worker.result
    tasks.clear_memories(clearing_id=clearing.pk)
    clearing.refresh_from_db()
    assert (clearing.status, clearing.done, clearing.left_out) == ("cleared", 2, 0)


def test_what_is_refused_is_counted_as_left_out(
    cast: Cast, memories: dict[str, Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api(cast.owner)
    clearing = work(start(cast, api))
    address = f"workspaces/{cast.workspace.public_id}/clearings/{clearing.public_id}"

    def refuse_one(memory: Memory, **given: Any) -> Memory:
        if memory.pk == memories["first"].pk:
            raise WasForgotten
        return restore_memory(memory, **given)

    monkeypatch.setattr(clear, "restore_memory", refuse_one)
    work(api.post(f"{address}/undo"))
    shown = api.get(address).json()
    assert (shown["status"], shown["total"], shown["done"], shown["left_out"]) == ("undone", 2, 1, 1)
    assert live(memories) == {"second", "mine", "its"}


def test_a_clearing_stops_when_its_person_may_no_longer_do_it(
    cast: Cast, memories: dict[str, Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clear, "BATCH", 1)
    clearing = Clearing.objects.get(public_id=start(cast, Api(cast.owner)).json()["id"])
    clear.work_on(clearing, seconds=0)

    def stops() -> None:
        tasks.clear_memories(clearing_id=clearing.pk)
        clearing.refresh_from_db()
        assert (clearing.status, clearing.done, clearing.is_at_work) == ("stopped", 1, False)
        assert live(memories) == {"second", "mine", "its"}

    membership = Membership.objects.filter(user=cast.owner)
    losses: list[Callable[[], Any]] = [
        lambda: membership.update(role=Role.EDITOR),
        lambda: User.objects.filter(pk=cast.owner.pk).update(is_active=False),
    ]
    for lose in rolled_back(losses):
        lose()
        stops()
    membership.delete()
    stops()

    Membership.objects.update_or_create(
        user=cast.editor, workspace=cast.workspace, defaults={"role": Role.OWNER}
    )
    address = f"workspaces/{cast.workspace.public_id}/clearings/{clearing.public_id}"
    undone = work(Api(cast.editor).post(f"{address}/undo"))  # another owner undoes it
    undone.refresh_from_db()
    assert (undone.status, undone.done, undone.by) == ("undone", 1, cast.editor)
    assert live(memories) == {"first", "second", "mine", "its"}


class TestPages:
    def page(self, cast: Cast, person: User) -> str:
        client = Client()
        client.force_login(person)
        return client.get(self.address(cast)).content.decode()

    def address(self, cast: Cast) -> str:
        return f"/workspaces/{cast.workspace.public_id}/clear/"

    def test_each_person_sees_what_they_may_clear_with_its_count(
        self, cast: Cast, memories: dict[str, Memory]
    ) -> None:
        of_owner = self.page(cast, cast.owner)
        for scope in ("workspace", "user", "agent"):
            assert f"?scope={scope}" in of_owner
        assert "Clear 2 memories?" in of_owner and "Clear 1 memory?" in of_owner
        for person in (cast.editor, cast.viewer):
            of_other = self.page(cast, person)
            assert "scope=workspace" not in of_other and "scope=agent" not in of_other
            assert "Your personal memories" in of_other and "0 memories" in of_other
        client = Client()
        client.force_login(cast.stranger)
        assert client.get(self.address(cast)).status_code == 404

    def test_one_is_cleared_followed_and_taken_back(self, cast: Cast, memories: dict[str, Memory]) -> None:
        client = Client()
        client.force_login(cast.owner)
        begun = client.post(self.address(cast) + "?scope=workspace", follow=True).content.decode()
        assert "0 of 2 are done." in begun and 'hx-trigger="every 2s"' in begun
        clearing = Clearing.objects.get()
        tasks.clear_memories(clearing_id=clearing.pk)
        ended = client.get(self.address(cast) + "?part=list").content.decode()
        assert "<html" not in ended and "every 2s" not in ended
        assert f"{clearing.public_id}/undo/" in ended and live(memories) == {"mine", "its"}
        client.post(f"{self.address(cast)}{clearing.public_id}/undo/")
        tasks.clear_memories(clearing_id=clearing.pk)
        assert live(memories) == {"first", "second", "mine", "its"}
        assert "/undo/" not in self.page(cast, cast.owner)

    def test_for_good_asks_for_the_password_and_says_how_many(
        self, cast: Cast, memories: dict[str, Memory]
    ) -> None:
        client = Client()
        client.force_login(cast.owner)
        address = self.address(cast) + "for-good/?scope=workspace"
        for answer in (client.get(address), client.post(address)):
            assert answer.status_code == 302 and "/accounts/reauthenticate/" in answer["Location"]
        assert not Clearing.objects.exists()
        type_password_again(client)
        assert "Clear 3 memories for good?" in client.get(address).content.decode()
        assert client.post(address).status_code == 302
        tasks.clear_memories(clearing_id=Clearing.objects.get().pk)
        assert live(memories) == {"mine", "its"} and Memory.objects.count() == 2

    def test_an_odd_scope_is_refused(self, cast: Cast, memories: dict[str, Memory]) -> None:
        for query in ("", "?scope=all", "?scope=agent", "?scope=user&agent=agent_x"):
            client = Client()
            client.force_login(cast.owner)
            assert client.post(self.address(cast) + query).status_code in (404, 422)
            assert not Clearing.objects.exists()


class TestAdmin:
    @pytest.fixture
    def client(self, cast: Cast) -> Client:
        client = Client()
        client.force_login(User.objects.create_superuser("ada"))
        return client

    def add(self, client: Client, cast: Cast, **values: Any) -> str:
        form = {"workspace": cast.workspace.pk} | values
        return str(client.post("/admin/memories/clearing/add/", form, follow=True).content.decode())

    def test_staff_type_the_number_first_and_undo(
        self, client: Client, cast: Cast, memories: dict[str, Memory]
    ) -> None:
        assert "2 memories go. Type the number to go on." in self.add(client, cast)
        assert not Clearing.objects.exists()
        self.add(client, cast, number=2)
        clearing = Clearing.objects.get()
        tasks.clear_memories(clearing_id=clearing.pk)
        assert live(memories) == {"mine", "its"}
        assert "2 of 2" in client.get("/admin/memories/clearing/").content.decode()
        run_action(client, "/admin/memories/clearing/", "undo", clearing)
        tasks.clear_memories(clearing_id=clearing.pk)
        assert live(memories) == {"first", "second", "mine", "its"}

    def test_for_good_needs_the_password(
        self, client: Client, cast: Cast, memories: dict[str, Memory]
    ) -> None:
        self.add(client, cast, number=3, for_good="on")
        assert not Clearing.objects.exists()
        type_password_again(client)
        self.add(client, cast, number=3, for_good="on")
        tasks.clear_memories(clearing_id=Clearing.objects.get().pk)
        assert Memory.objects.count() == 2

    def test_staff_whose_right_is_taken_away_stop(
        self, client: Client, cast: Cast, memories: dict[str, Memory]
    ) -> None:
        self.add(client, cast, number=2)
        User.objects.filter(username="ada").update(is_superuser=False)
        clearing = Clearing.objects.get()
        tasks.clear_memories(clearing_id=clearing.pk)
        clearing.refresh_from_db()
        assert clearing.status == "stopped" and live(memories) == {"first", "second", "mine", "its"}

    def test_an_assistant_of_another_workspace_is_refused(
        self, client: Client, cast: Cast, memories: dict[str, Memory]
    ) -> None:
        other = make_agent(cast.stranger)
        assert "belongs to another workspace" in self.add(client, cast, agent=other.pk, number=0)
        assert not Clearing.objects.exists()
