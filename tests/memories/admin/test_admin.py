"""Moderating memories: forms and actions, all of which use the writer."""

import time
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from memories.admin.memory import side_by_side
from memories.models import Extraction, Memory
from memories.writing import gate
from tests.admin_pages import run_action, said, staff
from tests.conftest import Cast
from tests.factories import make_memory
from workspaces.models import AuditEvent

LIST = "/admin/memories/memory/"
pytestmark = pytest.mark.django_db


def run(client: Client, action: str, *rows: Any, at: str = LIST) -> list[str]:
    """Run an action on these rows. Return its messages."""
    return said(run_action(client, at, action, *rows))


def shown(client: Client, query: str = "") -> set[str]:
    response = client.get(f"{LIST}?{query}")
    assert response.status_code == 200
    return {memory.content for memory in response.context["cl"].result_list}


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


def test_a_memory_has_no_page_that_deletes_it_and_buttons_that_ask(boss: Client, cast: Cast) -> None:
    memory = make_memory("Here", cast.owner, cast.workspace)
    assert boss.post(f"{LIST}{memory.pk}/delete/", {"post": "yes"}).status_code == 403
    page = f"{LIST}{memory.pk}/change/"
    assert [name for name, _ in boss.get(page).context["actions"]] == ["forget"]
    assert staff("view_memory").get(page).context["actions"] == []
    run(boss, "forget", memory)
    assert [name for name, _ in boss.get(page).context["actions"]] == ["restore"]
    newer = make_memory("There", cast.owner, cast.workspace)
    other = make_memory("Elsewhere", cast.owner, cast.workspace)
    Memory.objects.filter(pk=newer.pk).update(may_replace=other)
    shown = boss.get(f"{LIST}{newer.pk}/change/").context["actions"]
    assert [name for name, _ in shown] == ["replace_older", "keep_both", "forget"]


# Actions


def test_forget_says_how_many_and_how_many_were_already(boss: Client, cast: Cast) -> None:
    memories = [make_memory(f"Memory {n}", cast.owner, cast.workspace) for n in range(4)]
    gate.delete_memory(memories[0], by=cast.owner, now=timezone.now())
    assert run(boss, "forget", *memories) == ["3 memories forgotten, 1 left as before."]
    assert Memory.objects.filter(deleted_at=None).count() == 0
    revision = memories[3].revisions.first()
    assert revision is not None
    assert revision.by is not None
    assert (revision.action, revision.by.username) == ("delete", "root")


def test_embed_anew_queues_a_job(boss: Client, cast: Cast, django_capture_on_commit_callbacks: Any) -> None:
    memory = make_memory("Embed me", cast.owner, cast.workspace)
    Memory.objects.filter(pk=memory.pk).update(embedding_failed_at=timezone.now())
    with django_capture_on_commit_callbacks(execute=True):
        assert run(boss, "embed_anew", memory) == ["1 memory queued to be embedded again."]
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
    assert done == "1 memory queued to be extracted again."
    assert refused.startswith("1 refused.")
    assert typed.public_id in refused
    assert OrmQ.objects.count() == 1


def test_a_possible_update_is_decided(boss: Client, cast: Cast) -> None:
    older, newer, other = (
        make_memory(text, cast.owner, cast.workspace) for text in ("Older", "Newer", "Other")
    )
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    assert run(boss, "replace_older", newer, other) == ["1 memory replaced an older one, 1 left as before."]
    assert shown(boss, "state=over") == {"Older"}
    Memory.objects.filter(pk=newer.pk).update(may_replace=other)
    assert run(boss, "keep_both", newer) == ["1 memory kept beside the older one."]
    assert shown(boss, "state=replaces") == set()


def test_a_possible_update_is_shown_side_by_side_before_it_is_decided(boss: Client, cast: Cast) -> None:
    older = make_memory("Tea at ten in room 4", cast.owner, cast.workspace)
    newer = make_memory("Tea at half nine in room 4", cast.owner, cast.workspace)
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    asked = boss.post(LIST, {"action": "replace_older", "_selected_action": [newer.pk]}).content.decode()
    for text in ("Tea at</span> <del>ten</del> <span>in", "Tea at</span> <ins>half nine</ins> <span>in"):
        assert text in asked
    older.refresh_from_db()
    assert older.replaced_by is None
    assert not AuditEvent.objects.filter(verb="admin_action").exists()
    run(boss, "replace_older", newer)
    older.refresh_from_db()
    assert older.replaced_by == newer
    noted = AuditEvent.objects.get(verb="admin_action")
    assert noted.target == newer.public_id and "Tea" not in str(noted.details)
    run(boss, "hold_again", newer)
    older.refresh_from_db()
    assert (older.replaced_by, older.valid_to) == (None, None)


def test_long_texts_are_compared_at_once() -> None:
    before = time.process_time()
    side_by_side("a " * 1000, "a b " * 500)
    assert time.process_time() - before < 0.5


def test_a_huge_selection_is_refused(boss: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workspaces.admin.base.AT_ONCE", 2)
    memories = [make_memory(f"Memory {n}", cast.owner, cast.workspace) for n in range(3)]
    chosen = {"action": "forget", "select_across": "1", "_selected_action": [memories[0].pk]}
    for form in (chosen, chosen | {"confirmed": "yes"}):
        assert "nothing was done" in said(boss.post(LIST, form, follow=True))[0]
    assert Memory.objects.filter(deleted_at=None).count() == 3


def test_what_leaves_the_filtered_list_is_settled_all_the_same(boss: Client, cast: Cast) -> None:
    memory = make_memory("Gone", cast.owner, cast.workspace)
    gate.delete_memory(memory, by=cast.owner, now=timezone.now())
    assert said(run_action(boss, f"{LIST}?state=deleted", "restore", memory)) == ["1 memory restored."]


def test_failed_work_is_retried_and_the_rest_left(boss: Client, cast: Cast) -> None:
    place = {"workspace": cast.workspace, "user": cast.owner, "chat_id": "c", "source_type": "auto_chat"}
    for status in ("failed", "done"):
        Extraction.objects.create(
            **place, message_id=f"msg_{status}", status=status, attempts=5, next_attempt_at=timezone.now()
        )
    listed = "/admin/memories/extraction/"
    done = run(boss, "retry", *Extraction.objects.all(), at=listed)
    assert done == ["1 extraction queued again, 1 left as before."]
    assert set(Extraction.objects.values_list("status", "attempts")) == {("pending", 0), ("done", 5)}
    rows = boss.get(f"{listed}?status=done").context["cl"].result_list
    assert [row.message_id for row in rows] == ["msg_done"]
