"""Moderating memories: forms and actions, all of which use the writer."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from memories.models import Memory
from memories.writing import gate
from tests.admin_pages import run_action, said
from tests.conftest import Cast
from tests.factories import make_memory

LIST = "/admin/memories/memory/"
pytestmark = pytest.mark.django_db


def run(client: Client, action: str, *rows: Any, at: str = LIST) -> list[str]:
    """Run an action on these rows. Return its messages."""
    page = f"{at}?state=every" if at == LIST else at
    return said(run_action(client, page, action, *rows))


def shown(client: Client, query: str = "") -> set[str]:
    response = client.get(f"{LIST}?{query}")
    assert response.status_code == 200
    return {memory.start for memory in response.context["cl"].result_list}


# Forms


FORM = {
    "content": "The kettle is green",
    "importance": "0.5",
    "tags": "",
    "expires_at_0": "",
    "expires_at_1": "",
    "revisions-TOTAL_FORMS": "0",
    "revisions-INITIAL_FORMS": "0",
}


def test_adding_goes_through_the_gate(boss: Client, cast: Cast) -> None:
    values = FORM | {
        "workspace": cast.workspace.pk,
        "content": "  The kettle is green ",
        "tags": "tea, kitchen",
    }
    response = boss.post(f"{LIST}add/", values)
    assert response.status_code == 302
    memory = Memory.objects.get()
    assert (memory.content, memory.tags, memory.category) == ("The kettle is green", ["tea", "kitchen"], None)
    assert memory.author is not None
    assert memory.author.username == "root"
    assert memory.embeddings.count() == 1
    assert memory.revisions.get().by == memory.author


def test_adding_what_is_known_leads_to_the_memory_that_says_it(boss: Client, cast: Cast) -> None:
    known = make_memory("The kettle is green", cast.owner, cast.workspace)
    response = boss.post(f"{LIST}add/", FORM | {"workspace": cast.workspace.pk})
    assert response["Location"] == f"{LIST}{known.pk}/change/"
    assert "known already" in str(next(iter(get_messages(response.wsgi_request))))
    assert Memory.objects.count() == 1


def test_refusals_are_shown_at_the_field(boss: Client, cast: Cast) -> None:
    memory = make_memory("Untouched", cast.owner, cast.workspace)
    for page in ("add/", "{pk}/change/"):
        for values, field, sentence in (
            (
                {"content": "api_key = 'sk-proj-" + "a1B2c3D4" * 5 + "'"},
                "content",
                "Looks like a credential.",
            ),
            ({"tags": "x" * 51}, "tags", "50"),
            ({"content": "   "}, "content", "required"),
            ({"content": "x" * 2001}, "content", "2000"),
            ({"importance": "7"}, "importance", "1"),
        ):
            response = boss.post(
                LIST + page.format(pk=memory.pk), FORM | {"workspace": cast.workspace.pk} | values
            )
            assert response.status_code == 200
            assert sentence in " ".join(response.context["adminform"].form.errors[field])
            assert list(Memory.objects.values_list("content", flat=True)) == ["Untouched"]


def test_a_key_that_is_taken_is_said_in_the_form(boss: Client, cast: Cast) -> None:
    make_memory("Tea", cast.owner, cast.workspace, key="drink")
    other = make_memory("Coffee", cast.owner, cast.workspace)
    response = boss.post(f"{LIST}{other.pk}/change/", FORM | {"content": "Coffee", "key": "drink"})
    assert response.status_code == 200
    assert "Is taken." in response.context["adminform"].form.errors["key"]


def test_editing_leaves_a_revision_and_a_new_vector(boss: Client, cast: Cast) -> None:
    memory = make_memory("The kettle is green", cast.owner, cast.workspace, source_excerpt="somebody said so")
    values = FORM | {"content": "The kettle is red", "category": "fact", "pinned": "on"}
    assert boss.post(f"{LIST}{memory.pk}/change/", values).status_code == 302
    memory.refresh_from_db()
    assert (memory.content, memory.category, memory.pinned) == ("The kettle is red", "fact", True)
    assert memory.source_excerpt == ""
    revision = memory.revisions.first()
    assert revision is not None
    assert revision.by is not None
    assert (revision.action, revision.by.username) == ("edit", "root")
    assert revision.before["content"] == "The kettle is green"


def test_saving_without_a_change_changes_nothing(boss: Client, cast: Cast) -> None:
    memory = make_memory("The kettle is green", cast.owner, cast.workspace, summary="green", tags=["tea"])
    page = boss.get(f"{LIST}{memory.pk}/change/")
    initial = page.context["adminform"].form.initial
    values = FORM | {"summary": initial["summary"], "tags": "tea"}
    assert boss.post(f"{LIST}{memory.pk}/change/", values).status_code == 302
    assert memory.revisions.count() == 1


def test_a_forgotten_memory_is_shown_but_not_edited(boss: Client, cast: Cast) -> None:
    memory = gate.delete_memory(make_memory("Gone", cast.owner, cast.workspace), by=None, now=timezone.now())
    page = f"{LIST}{memory.pk}/change/"
    assert b"forgotten" in boss.get(page).content
    assert boss.post(page, FORM).status_code == 403
    assert boss.post(f"{LIST}{memory.pk}/delete/", {"post": "yes"}).status_code == 403


def test_the_delete_page_forgets_softly(boss: Client, cast: Cast) -> None:
    memory = make_memory("Here", cast.owner, cast.workspace)
    page = boss.get(f"{LIST}{memory.pk}/delete/")
    assert b"can be restored" in page.content
    assert boss.post(f"{LIST}{memory.pk}/delete/", {"post": "yes"}).status_code == 302
    memory.refresh_from_db()
    assert memory.deleted_at is not None
    assert memory.content == "Here"


# Actions


def test_forget_says_how_many_and_how_many_were_already(boss: Client, cast: Cast) -> None:
    memories = [make_memory(f"Memory {n}", cast.owner, cast.workspace) for n in range(4)]
    gate.delete_memory(memories[0], by=cast.owner, now=timezone.now())
    assert run(boss, "forget", *memories) == ["3 memories forgotten, 1 was already."]
    assert Memory.objects.filter(deleted_at=None).count() == 0
    revision = memories[3].revisions.first()
    assert revision is not None
    assert revision.by is not None
    assert (revision.action, revision.by.username) == ("delete", "root")


def test_embed_anew_queues_a_job(boss: Client, cast: Cast, django_capture_on_commit_callbacks: Any) -> None:
    memory = make_memory("Embed me", cast.owner, cast.workspace)
    Memory.objects.filter(pk=memory.pk).update(embedding_failed_at=timezone.now())
    with django_capture_on_commit_callbacks(execute=True):
        assert run(boss, "embed_anew", memory) == ["1 memory queued to be embedded anew."]
    assert [job.task["kwargs"] for job in OrmQ.objects.all()] == [{"memory_ids": [memory.pk]}]
    memory.refresh_from_db()
    assert memory.embedding_failed_at is None


def test_extract_anew_queues_those_with_a_source(
    boss: Client, cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    sourced = make_memory("Said", cast.owner, cast.workspace, source_message_id="msg_" + "d" * 24)
    typed = make_memory("Typed", cast.owner, cast.workspace)
    with django_capture_on_commit_callbacks(execute=True):
        done, refused = run(boss, "extract_anew", sourced, typed)
    assert done == "1 memory queued to be extracted anew."
    assert refused.startswith("1 was refused.")
    assert typed.public_id in refused
    assert OrmQ.objects.count() == 1


def test_a_possible_update_is_decided(boss: Client, cast: Cast) -> None:
    older, newer, other = (
        make_memory(text, cast.owner, cast.workspace) for text in ("Older", "Newer", "Other")
    )
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    assert run(boss, "replace_older", newer, other) == ["1 memory replaced an older one."]
    assert shown(boss, "state=over") == {"Older"}
    Memory.objects.filter(pk=newer.pk).update(may_replace=other)
    assert run(boss, "keep_both", newer) == ["1 memory kept beside the older one."]
    assert shown(boss, "review=replaces") == set()


def test_a_huge_selection_is_refused(boss: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workspaces.admin.base.AT_ONCE", 2)
    memories = [make_memory(f"Memory {n}", cast.owner, cast.workspace) for n in range(3)]
    response = boss.post(
        LIST, {"action": "forget", "select_across": "1", "_selected_action": [memories[0].pk]}
    )
    assert "nothing was done" in str(next(iter(get_messages(response.wsgi_request))))
    assert Memory.objects.filter(deleted_at=None).count() == 3
