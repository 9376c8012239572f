"""Concurrent edits of a memory: ETag and If-Match in both APIs, and the edit form of the pages."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request

from memories.models import Memory
from memories.writing.changing import Stale, etag, restore_memory, version_of
from memories.writing.gate import delete_memory, edit_memory
from memoryhub.errors import Invalid, Malformed
from tests.api import V1, Api, error_of, type_password_again
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from workspaces.api.base import versions_seen

TYPED, NEWER = "The deadline is in May", "The deadline is in April"


class Door:
    """An endpoint, of three, at which a memory is read, changed and deleted."""

    def __init__(self, name: str, cast: Cast) -> None:
        workspace = cast.workspace
        chat = make_chat(cast.owner, workspace)
        message = make_message(chat, "The deadline is in March")
        self.memory = make_memory(
            message.content,
            cast.owner,
            workspace,
            source_chat_id=chat.public_id,
            source_message_id=message.public_id,
        )
        self.api = Api(cast.owner, base=V1 if name == "v1" else "/chat/api")
        type_password_again(self.api.client)
        mem = self.memory.public_id
        self.field = "value" if name == "v1" else "content"
        self.list = {
            "workspace": f"workspaces/{workspace.public_id}/memories",
            "chat": f"{chat.public_id}/memory",
            "v1": f"memories?workspace_id={workspace.public_id}",
        }[name]
        self.address = {
            "workspace": f"workspaces/{workspace.public_id}/memories/{mem}",
            "chat": f"{chat.public_id}/memories/{mem}",
            "v1": f"memories/{mem}?workspace_id={workspace.public_id}",
        }[name]
        self.readable = self.address if name == "v1" else f"workspaces/{workspace.public_id}/memories/{mem}"

    def patch(self, text: str, seen: str | None) -> Any:
        headers = {} if seen is None else {"If-Match": seen}
        return self.api.client.patch(
            f"{self.api.base}/{self.address}",
            {self.field: text},
            content_type="application/json",
            headers=headers,
        )

    def delete(self, seen: str | None) -> Any:
        headers = {} if seen is None else {"If-Match": seen}
        return self.api.client.delete(f"{self.api.base}/{self.address}", headers=headers)


@pytest.fixture(params=["workspace", "chat", "v1"])
def door(request: pytest.FixtureRequest, cast: Cast) -> Door:
    return Door(request.param, cast)


def test_every_answer_with_a_memory_says_its_version(door: Door) -> None:
    made = door.api.post(door.list, {door.field: "Olive has two cats"})
    assert made.status_code == 201
    assert made["ETag"] == etag(Memory.objects.get(public_id=made.json()["id"]))
    read = door.api.get(door.readable)
    assert read["ETag"] == etag(door.memory)
    changed = door.patch(NEWER, read["ETag"])
    assert changed.status_code == 200
    door.memory.refresh_from_db()
    assert changed["ETag"] == etag(door.memory) != read["ETag"]


def test_what_somebody_else_changed_is_not_overwritten(door: Door, cast: Cast) -> None:
    seen = door.api.get(door.readable)["ETag"]
    edited = edit_memory(door.memory, by=cast.editor, now=timezone.now(), content=NEWER)
    for refused in (door.patch(TYPED, seen), door.delete(seen)):
        assert refused.status_code == 409
        assert error_of(refused)["code"] == "stale"
        assert refused["ETag"] == etag(edited)
    door.memory.refresh_from_db()
    assert (door.memory.content, door.memory.deleted_at) == (NEWER, None)
    assert door.patch(TYPED, refused["ETag"]).status_code == 200


def test_several_versions_any_version_and_weak_ones(cast: Cast) -> None:
    door = Door("v1", cast)
    now = f'"mem_other-1", {etag(door.memory)}'
    assert door.patch("One", now).status_code == 200
    assert door.patch("Two", "*").status_code == 200
    assert door.patch("Three", None).status_code == 200
    weakened = f"W/{door.api.get(door.readable)['ETag']}"  # by a compressing proxy
    assert door.patch("Four", weakened).status_code == 200
    assert door.delete(door.api.get(door.readable)["ETag"]).status_code == 204


MALFORMED = ["", " ", "mem_1", '"open', 'open"', '"a" "b"', '"a",', '*, "a"', "W/*", '"a b"', "ü"]


def test_a_malformed_header_is_refused(door: Door) -> None:
    for header in MALFORMED:
        with pytest.raises(Malformed):
            versions_seen(Request(RequestFactory().get("/", headers={"if-match": header})))
    too_long = '"' + "a" * 1000 + '"'
    for refused in (door.patch(TYPED, too_long), door.delete(too_long)):
        assert (refused.status_code, error_of(refused)["code"]) == (400, "malformed")
    door.memory.refresh_from_db()
    assert (door.memory.content, door.memory.deleted_at) == ("The deadline is in March", None)


def test_no_version_comes_twice_whatever_the_clock_says(cast: Cast) -> None:
    now = timezone.now()
    memory = make_memory("One", cast.owner, cast.workspace, now=now)
    versions = {version_of(memory)}
    for number, at in enumerate((now, now, now - timedelta(days=1))):
        versions.add(version_of(edit_memory(memory, by=cast.owner, now=at, content=f"Text {number}")))
    versions.add(version_of(delete_memory(memory, by=cast.owner, now=now)))
    versions.add(version_of(restore_memory(memory, by=cast.owner, now=now)))
    assert len(versions) == 6


def test_what_changes_nothing_is_refused_too_when_it_was_not_seen(cast: Cast) -> None:
    memory = make_memory(NEWER, cast.owner, cast.workspace)
    with pytest.raises(Stale):
        edit_memory(memory, by=cast.owner, now=timezone.now(), seen={"mem_x-1"}, content=NEWER)


@pytest.mark.django_db(transaction=True)
def test_of_two_editors_at_once_exactly_one_wins(cast: Cast) -> None:
    memory = make_memory("The deadline is in March", cast.owner, cast.workspace)
    address = f"/chat/api/workspaces/{cast.workspace.public_id}/memories/{memory.public_id}"
    start = Barrier(2)

    def edit(text: str) -> tuple[int, str]:
        client = Client()
        client.force_login(cast.owner)
        start.wait()
        try:
            answer: Any = client.patch(
                address,
                {"content": text},
                content_type="application/json",
                headers={"If-Match": etag(memory)},
            )
            return answer.status_code, answer["ETag"]
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        outcomes = dict(zip((TYPED, NEWER), pool.map(edit, (TYPED, NEWER)), strict=True))
    assert sorted(code for code, _ in outcomes.values()) == [200, 409]
    memory.refresh_from_db()
    assert outcomes[memory.content] == (200, etag(memory))
    assert {version for _, version in outcomes.values()} == {etag(memory)}
    assert memory.revisions.filter(action="edit").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_that_replace_each_other_at_once_exactly_one_does(cast: Cast) -> None:
    both = [make_memory(f"The vault is at {bank}", cast.owner, cast.workspace) for bank in ("Ava", "Bo")]
    start = Barrier(2)

    def replace(pair: tuple[Memory, Memory]) -> bool:
        start.wait()
        try:
            edit_memory(pair[0], by=cast.owner, now=timezone.now(), replaced_by=pair[1])
        except Invalid:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(replace, [(both[0], both[1]), (both[1], both[0])])) == [False, True]
    assert Memory.objects.exclude(replaced_by=None).count() == 1


def form_of(client: Client, cast: Cast, memory: Memory) -> tuple[str, dict[str, str]]:
    """Return the edit form's address, and its fields as shown."""
    address = reverse("memories:edit", args=[cast.workspace.public_id, memory.public_id])
    form = client.get(address).context["form"]
    return address, {form.add_prefix(field.name): field.value() or "" for field in form}


def test_the_page_shows_both_texts_and_lets_its_person_decide(cast: Cast) -> None:
    memory = make_memory("The deadline is in March", cast.owner, cast.workspace)
    client = Client()
    client.force_login(cast.editor)
    address, fields = form_of(client, cast, memory)
    edit_memory(memory, by=cast.owner, now=timezone.now(), content=f"{NEWER} <b>", category="decision")
    fields[f"{memory.public_id}-content"] = TYPED

    refused = client.post(address, fields)
    assert (refused.status_code, refused["HX-Retarget"]) == (409, "this")
    html = refused.content.decode()
    assert f"{NEWER} &lt;b&gt;" in html and "decision" in html  # the stored text
    assert f">\n{TYPED}</textarea>" in html  # and the typed one
    memory.refresh_from_db()
    assert memory.content == f"{NEWER} <b>"

    form = refused.context["form"]
    fields = {form.add_prefix(field.name): field.value() or "" for field in form}
    assert client.post(address, fields).status_code == 200
    memory.refresh_from_db()
    assert memory.content == TYPED
