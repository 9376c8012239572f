"""Permanent deletion: nothing remains anywhere, and nothing stores the text again."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_q.models import Failure, Success

from memories import tasks
from memories.forgetting.for_good import forget_memories, may_forget, purge
from memories.models import Memory, Receipt, ReceiptItem, Revision, Tombstone
from memories.writing import gate, tombstones
from memories.writing.gate import Draft, save_memory
from memories.writing.tombstones import WasForgotten, essence
from memories.writing.vector_backfill import reembed
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import make_memory, make_workspace
from tests.raw_search import places_with
from workspaces.models import AuditEvent, PassageVector, PassageWord, Role

TEXT = 'Olive keeps the spare "key" under the blue flowerpot'
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]


def receipt_with(memory: Memory, cast: Cast, message_id: str = "msg_" + "r" * 24) -> ReceiptItem:
    receipt = Receipt.objects.create(
        message_id=message_id, workspace=cast.workspace, user=cast.owner, ranking="hybrid", threshold=0.3
    )
    return ReceiptItem.objects.create(
        receipt=receipt, memory=memory, position=1, score=0.5, content=memory.content, used=True
    )


def test_nothing_is_left_in_any_table_or_in_the_queue(
    cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    now = timezone.now()
    excerpt = f"olive: {TEXT}\nAssistant: Noted."
    with django_capture_on_commit_callbacks(execute=True):
        memory = make_memory(
            "Olive has a flowerpot",
            cast.owner,
            cast.workspace,
            source_excerpt=excerpt,
            summary=TEXT,
            tags=[TEXT[:40]],
        )
        gate.edit_memory(memory, by=cast.owner, now=now, content=TEXT, key=TEXT)
        newer = make_memory("Olive keeps no key at all", cast.owner, cast.workspace)
        Memory.objects.filter(pk=newer.pk).update(may_replace=memory)
        receipt_with(Memory.objects.get(pk=memory.pk), cast)
        deleted = gate.delete_memory(make_memory(TEXT, cast.owner, cast.workspace), by=cast.owner, now=now)
        beside = make_memory("We deploy on Fridays", cast.editor, cast.workspace, source_excerpt=excerpt)
        once = make_memory(TEXT + " and in the shed", cast.editor, cast.workspace)
        receipt_with(once, cast, "msg_" + "s" * 24)
        gate.edit_memory(once, by=cast.editor, now=now, content="The shed is red")
        reembed(Memory.objects.all())
    tasks.embed_memories(memory_ids=[memory.pk])
    assert len(places_with(TEXT)) == 3  # memories, receipts, histories

    report = forget_memories([Memory.objects.get(pk=memory.pk)], by=cast.owner, now=now)

    assert places_with(TEXT) == []
    assert not Memory.objects.filter(pk__in=[memory.pk, deleted.pk]).exists()
    for table in (PassageVector, PassageWord):
        assert not table.objects.filter(ref__in=[memory.pk, deleted.pk]).exists()
    for table in (Revision, ReceiptItem):
        assert not table.objects.filter(memory_id__in=[memory.pk, deleted.pk]).exists()
    assert set(Memory.objects.values_list("pk", flat=True)) == {newer.pk, beside.pk, once.pk}
    newer.refresh_from_db()
    beside.refresh_from_db()
    assert (newer.may_replace, beside.source_excerpt) == (None, "")
    assert report.removed["memories"] == 2
    assert report.removed["receipt items"] == 2
    assert report.removed["source excerpts"] == 1
    assert report.removed["earlier versions of other memories"] == 1
    assert report.removed["memory words"] > 5
    assert (report.found, report.tombstones) == (0, 2)  # the current and the former text
    assert not {Success, Failure} & {kind for kind in (Success, Failure) if kind.objects.exists()}


SAME = [
    TEXT,
    TEXT.upper(),
    f"  {TEXT}.",
    "Olive keeps the spare key under the blue flower-pot!",
    "olive keeps, the spare “key”, under the blue flowerpot…",
    "Olive\u200b keeps\u00a0the spare key\nunder the blue flowerpot",
    "\uff2flive keeps the spare key under the blue flowerpot",
]  # fmt: skip


def test_no_program_stores_a_forgotten_text_again(cast: Cast) -> None:
    forget_memories([make_memory(TEXT, cast.owner, cast.workspace)], by=cast.owner, now=timezone.now())
    drafts = [
        Draft(again, cast.workspace, cast.editor, source_type=source)
        for again in SAME
        for source in ("auto_chat", "auto_research", "model", "import")
    ]
    for draft in drafts:
        for by in (None, cast.editor):
            with pytest.raises(WasForgotten):
                save_memory(draft, by=by, now=timezone.now())
        assert not Memory.objects.exists(), (draft.content, draft.source_type)
    other = Draft("Something else", cast.workspace, cast.editor)
    *refused, stored = save_memories([*drafts, other], by=None, now=timezone.now())
    assert {(each.created, each.forgotten) for each in refused} == {(False, True)}
    assert (stored.created, stored.forgotten) == (True, False)
    assert list(Memory.objects.values_list("content", flat=True)) == ["Something else"]


def test_a_person_may_say_it_again_and_that_lifts_the_tombstone(cast: Cast) -> None:
    now = timezone.now()
    forget_memories([make_memory(TEXT, cast.owner, cast.workspace)], by=cast.owner, now=now)
    saved = save_memory(Draft(TEXT, cast.workspace, cast.editor), by=cast.editor, now=now)
    assert saved.created
    assert not Tombstone.objects.exists()
    gate.delete_memory(saved.memory, by=cast.editor, now=now)
    assert save_memory(Draft(TEXT, cast.workspace, None, source_type="auto_chat"), by=None, now=now).created


def test_a_person_may_write_it_into_another_memory_a_program_may_not(cast: Cast) -> None:
    now = timezone.now()
    forget_memories([make_memory(TEXT, cast.owner, cast.workspace)], by=cast.owner, now=now)
    source = "msg_" + "q" * 24
    other = make_memory("Something else", cast.owner, cast.workspace, source_message_id=source)
    for changes in ({"content": TEXT}, {"summary": TEXT}):
        with pytest.raises(WasForgotten):
            gate.edit_memory(other, by=cast.owner, now=now, made_from=source, **changes)
    assert gate.edit_memory(other, by=cast.owner, now=now, content=TEXT).content == TEXT


def test_it_is_kept_out_of_its_own_place_only(cast: Cast) -> None:
    elsewhere = make_workspace(owner=cast.owner, name="Other")
    forget_memories([make_memory(TEXT, cast.owner, cast.workspace)], by=cast.owner, now=timezone.now())
    draft = Draft(TEXT, elsewhere, cast.owner, source_type="auto_chat")
    assert save_memory(draft, by=None, now=timezone.now()).created


def test_what_was_ones_own_is_kept_out_of_ones_shared_workspaces(cast: Cast) -> None:
    now = timezone.now()
    forget_memories([make_memory(TEXT, cast.owner, scope="user")], by=cast.owner, now=now)
    with pytest.raises(WasForgotten):
        save_memory(Draft(TEXT, cast.workspace, cast.owner, source_type="auto_chat"), by=None, now=now)
    assert save_memory(
        Draft(TEXT, cast.workspace, cast.editor, source_type="auto_chat"), by=None, now=now
    ).created


def test_the_essence_of_a_text() -> None:
    cases = [
        ("The budget is 3.5 million", "The budget is 35 million", False),
        ("I like C#", "I like C", False),
        ("It grew by 5 %", "It grew by 5", False),
        ("Meet at 10:30", "Meet at 1030", False),
        ("I'm vegetarian", "im vegetarian", True),
        ("Well-known", "well known", True),
        ("???", "!!!", False),
        ("\uff26\uff35\uff2c\uff2c width", "full  width", True),
        ("Straße", "STRASSE", True),
    ]
    for one, other, same in cases:
        assert (essence(one) == essence(other)) is same, (one, other)


def test_a_tombstone_holds_no_word_and_needs_its_key(cast: Cast, settings: Any) -> None:
    forget_memories([make_memory(TEXT, cast.owner, cast.workspace)], by=cast.owner, now=timezone.now())
    before = tombstones.digest(TEXT)
    assert Tombstone.objects.get().digest == before
    settings.SECRET_KEY = "another" * 8
    assert tombstones.digest(TEXT) == before
    settings.FORGET_KEY = "another" * 8
    assert tombstones.digest(TEXT) != before


def test_who_may_forget_for_good(cast: Cast) -> None:
    of_editor = make_memory("By the editor", cast.editor, cast.workspace)
    of_owner = make_memory("By the owner", cast.owner, cast.workspace)
    personal = make_memory("Of the editor alone", cast.editor, scope="user")
    assert may_forget(of_editor, cast.editor, Role.EDITOR)
    assert may_forget(of_editor, cast.owner, Role.OWNER)
    assert not may_forget(of_owner, cast.editor, Role.EDITOR)
    assert not may_forget(of_editor, cast.editor, Role.VIEWER)
    assert not may_forget(of_editor, cast.stranger, None)
    assert may_forget(personal, cast.editor, Role.OWNER)
    assert not may_forget(personal, cast.owner, Role.OWNER)


def test_that_a_personal_one_was_forgotten_stands_in_no_workspaces_log(cast: Cast) -> None:
    personal = make_memory(TEXT, cast.editor, scope="user")
    shared = [make_memory(f"Number {each}", cast.editor, cast.workspace) for each in "12"]
    forget_memories([personal, *shared], by=cast.editor, now=timezone.now())
    events = AuditEvent.objects.filter(verb="memory_forgotten")
    assert {(event.workspace_id, event.target, event.details["count"]) for event in events} == {
        ("", personal.public_id, 1),
        (cast.workspace.public_id, "", 2),
    }
    of_shared = events.get(workspace_id=cast.workspace.public_id)
    assert of_shared.details["ids"] == sorted(memory.public_id for memory in shared)


def test_an_excerpts_part_of_a_vector_goes_with_it(cast: Cast) -> None:
    excerpt = f"olive: {TEXT}"
    beside = make_memory("We deploy on Fridays", cast.owner, cast.workspace, source_excerpt=excerpt)
    own = beside.embeddings.get().statement
    forget_memories([make_memory(TEXT, cast.owner, cast.workspace)], by=cast.owner, now=timezone.now())
    vector = beside.embeddings.get()
    assert vector.embedding == own
    assert vector.statement is None
    assert PassageWord.objects.filter(ref=beside.pk, lexeme="deploy").exists()
    assert not PassageWord.objects.filter(ref=beside.pk, lexeme="flowerpot").exists()


def test_a_short_text_takes_nothing_away_that_only_holds_its_letters(cast: Cast) -> None:
    beside = make_memory("We eat", cast.owner, cast.workspace, source_excerpt="olive: the team wants tea")
    forget_memories([make_memory("tea", cast.owner, cast.workspace)], by=cast.owner, now=timezone.now())
    beside.refresh_from_db()
    assert beside.source_excerpt


def test_many_at_once_cost_batches_not_rows(cast: Cast, django_assert_max_num_queries: Any) -> None:
    memories = [make_memory(f"The number {n} is in use", cast.owner, cast.workspace) for n in range(40)]
    with django_assert_max_num_queries(110):
        report = forget_memories(memories, by=cast.owner, now=timezone.now())
    assert report.removed["memories"] == 40
    assert Tombstone.objects.count() == 40


def test_what_was_deleted_long_ago_is_purged_and_leaves_no_tombstone(cast: Cast, settings: Any) -> None:
    now = timezone.now()
    old, young = (make_memory(text, cast.owner, cast.workspace) for text in (TEXT, "Another"))
    gate.delete_memory(old, by=cast.owner, now=now - timedelta(days=31))
    gate.delete_memory(young, by=cast.owner, now=now - timedelta(days=29))
    live = make_memory("In use", cast.owner, cast.workspace)
    settings.PURGE_AFTER_DAYS = 0
    assert purge(now=now, seconds=5) == 0
    settings.PURGE_AFTER_DAYS = 30
    assert "1 purged" in tasks.sweep()
    assert set(Memory.objects.all()) == {young, live}
    assert places_with(TEXT) == []
    assert not Tombstone.objects.exists()


def test_purging_goes_in_chunks(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.forgetting.for_good.BATCH", 2)
    now = timezone.now()
    for number in range(5):
        memory = make_memory(f"Number {number}", cast.owner, cast.workspace)
        gate.delete_memory(memory, by=None, now=now - timedelta(days=40))
    assert purge(now=now, seconds=5) == 5
    assert not Memory.objects.exists()
