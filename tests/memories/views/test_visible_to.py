"""The choice of who sees a saved memory, in its edit form."""

from typing import Any

from django.utils import timezone

from memories.forgetting.for_good import forget_memories
from memories.models import Memory, Scope
from tests.conftest import Cast
from tests.factories import make_memory
from tests.signing_in import signed_in
from workspaces.models import User

TEXT = "The newsletter goes out on Tuesdays"


def edit(memory: Memory, by: User, whose: str, **fields: str) -> Any:
    address = f"/workspaces/{memory.workspace.public_id}/memories/{memory.public_id}/edit/?as=receipt"
    data = {"content": memory.content, "whose": whose} | fields
    return signed_in(by).post(address, {f"{memory.public_id}-{name}": value for name, value in data.items()})


def forgotten_page(cast: Cast, user: User) -> str:
    address = f"/workspaces/{cast.workspace.public_id}/memories/all/?forgotten=on"
    return signed_in(user).get(address).content.decode()


def seen_by(user: User) -> list[str]:
    return list(Memory.objects.visible_to(user).live().values_list("content", flat=True))


def test_author_changes_who_sees_a_memory(cast: Cast) -> None:
    own = make_memory(TEXT, cast.editor, scope=Scope.USER, key="newsletter", category="fact")
    assert seen_by(cast.viewer) == []
    response = edit(own, cast.editor, cast.workspace.public_id, category="event")
    assert f"Everyone in {cast.workspace.name} sees this memory now." in response.content.decode()
    assert seen_by(cast.viewer) == [TEXT]
    shared = Memory.objects.live().get(content=TEXT)
    assert TEXT not in forgotten_page(cast, cast.editor)
    assert (shared.key, shared.category, shared.author) == ("newsletter", "event", cast.editor)
    response = edit(shared, cast.editor, "user")
    assert "Other members no longer see this memory." in response.content.decode()
    assert seen_by(cast.viewer) == [] and seen_by(cast.editor) == [TEXT]
    assert Memory.objects.live().get(content=TEXT).owner == cast.editor
    assert TEXT not in forgotten_page(cast, cast.owner)


def test_forgetting_a_moved_memory_for_good_removes_the_row_that_it_came_from(cast: Cast) -> None:
    own = make_memory(TEXT, cast.editor, scope=Scope.USER)
    edit(own, cast.editor, cast.workspace.public_id)
    forget_memories([Memory.objects.live().get()], by=cast.editor, now=timezone.now())
    assert not Memory.objects.exists()


def test_only_the_author_is_offered_the_choice(cast: Cast) -> None:
    memory = make_memory(TEXT, cast.editor, cast.workspace)
    address = f"/workspaces/{memory.workspace.public_id}/memories/{memory.public_id}/edit/"
    assert "Visible to" in signed_in(cast.editor).get(address).content.decode()
    assert "Visible to" not in signed_in(cast.owner).get(address).content.decode()
    edit(memory, cast.owner, "user")
    assert seen_by(cast.viewer) == [TEXT]


def test_a_taken_key_and_a_local_only_workspace_refuse_the_move(cast: Cast) -> None:
    make_memory("Sent weekly", cast.owner, cast.workspace, key="newsletter")
    own = make_memory(TEXT, cast.editor, scope=Scope.USER, key="newsletter")
    response = edit(own, cast.editor, cast.workspace.public_id)
    assert response.status_code == 422 and "already has this key" in response.content.decode()
    shared = make_memory("Readers like it", cast.editor, cast.workspace)
    cast.workspace.local_only = True
    cast.workspace.save()
    response = edit(shared, cast.editor, "user")
    assert response.status_code == 422 and "keeps everything on this machine" in response.content.decode()
    assert "Readers like it" in seen_by(cast.viewer) and TEXT not in seen_by(cast.viewer)
