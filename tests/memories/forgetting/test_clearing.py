"""Clearing a scope: what is deleted, who may do it, its undo, and two of them at once."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from memories import tasks
from memories.forgetting import clear
from memories.models import Clearing, Memory, Scope
from memories.writing.gate import Draft, delete_memory, save_memory
from tests.api import Api, type_password_again
from tests.conftest import Cast
from tests.factories import make_agent, make_memory
from workspaces.access import default_workspace

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]


@pytest.fixture
def memories(cast: Cast) -> dict[str, Memory]:
    """One of each scope, and one deleted before."""
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


@pytest.mark.parametrize(
    ("scope", "count", "stays"),
    [
        ("workspace", 2, {"mine", "its"}),
        ("user", 1, {"first", "second", "its"}),
        ("agent", 1, {"first", "second", "mine"}),
    ],
)
def test_clearing_empties_one_scope_and_its_undo_brings_it_back(
    cast: Cast, memories: dict[str, Memory], scope: str, count: int, stays: set[str]
) -> None:
    agent = memories["its"].agent
    assert agent is not None
    api, which = (
        Api(cast.owner),
        {"scope": scope} | ({"agent_id": agent.public_id} if scope == "agent" else {}),
    )
    address = f"workspaces/{cast.workspace.public_id}/clearings"
    assert api.get(address, **which).json()["count"] == count

    clearing = work(start(cast, api, **which))

    assert live(memories) == stays
    shown = api.get(f"{address}/{clearing.public_id}").json()
    assert (shown["status"], shown["total"], shown["done"]) == ("cleared", count, count)
    work(api.post(f"{address}/{clearing.public_id}/undo"))
    assert live(memories) == {"first", "second", "mine", "its"}  # what was deleted before stays so
    assert api.get(f"{address}/{clearing.public_id}").json()["status"] == "undone"


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


@pytest.mark.parametrize("scope", ["workspace", "agent"])
def test_only_owners_clear_what_others_share(cast: Cast, memories: dict[str, Memory], scope: str) -> None:
    agent = memories["its"].agent
    assert agent is not None
    which = {"scope": scope} | ({"agent_id": agent.public_id} if scope == "agent" else {})
    for person, status in ((cast.editor, 403), (cast.viewer, 403), (cast.stranger, 404)):
        assert start(cast, Api(person), **which).status_code == status
    assert not Clearing.objects.exists()


def test_anybody_clears_only_their_own_personal_memories(cast: Cast, memories: dict[str, Memory]) -> None:
    work(start(cast, Api(cast.viewer), scope="user"))
    assert "mine" in live(memories)
    clearing = work(start(cast, Api(cast.owner), scope="user"))
    others = f"workspaces/{cast.workspace.public_id}/clearings/{clearing.public_id}"
    assert Api(cast.editor).get(others).status_code == 404
    assert Api(cast.editor).post(f"{others}/undo").status_code == 404


def test_two_at_once_are_one(cast: Cast, memories: dict[str, Memory]) -> None:
    api = Api(cast.owner)
    first = start(cast, api)
    second = start(cast, api)
    assert (second.status_code, second.json()["error"]["code"]) == (409, "clearing")
    clearing = Clearing.objects.get(public_id=first.json()["id"])
    stale = Clearing.objects.get(pk=clearing.pk)
    clear.work_on(clearing, seconds=60)
    clear.work_on(stale, seconds=60)  # a second worker with the same job
    assert Clearing.objects.get(pk=clearing.pk).done == 2
    assert live(memories) == {"mine", "its"}


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
