"""Retention rules: permissions, deletion and exemptions, softly first and permanently later."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from chat.chats import services
from chat.chats.services import restore_chat
from chat.chats.tags_and_pins import set_mark
from chat.models import Chat
from memories.forgetting import for_good
from memories.models import Memory, Receipt, ReceiptItem
from memories.recalling.recall import recall
from memories.writing.changing import restore_memory
from memoryhub.errors import Forbidden, Invalid
from tests.api import Api
from tests.conftest import Cast
from tests.factories import HERE, make_artifact, make_chat, make_document, make_memory, make_message
from workspaces import artifacts, audit, retention, tasks
from workspaces.access import default_workspace
from workspaces.documents import documents
from workspaces.models import Artifact, AuditEvent, Document, Retention

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=100)
pytestmark = pytest.mark.django_db


def set_rules(cast: Cast, **days: int | None) -> None:
    retention.set_rules(cast.workspace, by=cast.owner, now=NOW - timedelta(days=2), **days)


def swept() -> int:
    number, is_all = retention.sweep(now=NOW, seconds=60)
    assert is_all
    return number


def aged(row: Any, **fields: Any) -> Any:
    row.__class__.objects.filter(pk=row.pk).update(**fields)
    row.refresh_from_db()
    return row


def live(model: Any) -> set[Any]:
    return set(model.objects.filter(deleted_at=None).values_list("pk", flat=True))


def test_what_is_older_goes_and_what_is_newer_pinned_or_elsewhere_stays(
    cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    old = aged(make_chat(cast.owner, cast.workspace), active_at=LONG_AGO)
    private = aged(make_chat(cast.editor, cast.workspace, is_private=True), active_at=LONG_AGO)
    new = make_chat(cast.owner, cast.workspace, active_at=NOW)
    pinned = aged(make_chat(cast.owner, cast.workspace), active_at=LONG_AGO)
    elsewhere = aged(make_chat(cast.owner), active_at=LONG_AGO)
    set_mark(pinned, "pinned", by=cast.viewer)
    with django_assert_num_queries(4):  # without a rule: one query a kind
        assert swept() == 0
    set_rules(cast, chats=90)
    assert swept() == 2
    assert live(Chat) == {new.pk, pinned.pk, elsewhere.pk}
    assert swept() == 0
    event = AuditEvent.objects.get(verb="retention_applied")
    said = (event.workspace_id, event.by_name, event.details)
    assert said == (cast.workspace.public_id, "", {"chats": 1}), "of the private one its owners learn nothing"
    restore_chat(Chat.objects.get(pk=old.pk), by=cast.owner, now=NOW)
    assert swept() == 0, "what a person brings back begins anew"
    assert services.purge(now=NOW + timedelta(days=31), seconds=5) == 1
    assert not Chat.objects.filter(pk=private.pk).exists()


def test_memories_that_nothing_used_go_with_what_was_noted_of_them(cast: Cast) -> None:
    def noted(text: str, **fields: Any) -> Memory:
        return make_memory(text, cast.owner, cast.workspace, now=LONG_AGO, **fields)

    gone, used = noted("The oven is green"), noted("The boiler is blue")
    pinned, edited = noted("The roof is red", pinned=True), noted("The wall is white")
    aged(used, last_accessed_at=NOW - timedelta(days=3))
    aged(edited, updated_at=NOW - timedelta(days=3))
    answer = make_message(make_chat(cast.owner, cast.workspace), "Green.", "assistant")
    receipt = Receipt.objects.create(
        message_id=answer.public_id,
        workspace=cast.workspace,
        user=cast.owner,
        ranking="hybrid",
        threshold=0.5,
    )
    ReceiptItem.objects.create(
        receipt=receipt, memory=gone, position=1, score=1.0, content=gone.content, used=True
    )
    set_rules(cast, memories=30)
    assert swept() == 1
    assert live(Memory) == {used.pk, pinned.pk, edited.pk}
    found = recall("oven green", cast.workspace, cast.owner, now=NOW, policy=HERE)
    assert gone.pk not in {item.memory.pk for item in found.items}
    restore_memory(Memory.objects.get(pk=gone.pk), by=cast.owner, now=NOW)
    assert swept() == 0
    aged(gone, updated_at=LONG_AGO)
    assert swept() == 1
    assert for_good.purge(now=NOW + timedelta(days=31), seconds=5) == 1
    assert not Memory.objects.filter(pk=gone.pk).exists()
    assert not ReceiptItem.objects.filter(receipt=receipt).exists()


def test_personal_memories_follow_nobodys_rule_but_their_owners(cast: Cast, settings: Any) -> None:
    """The rule of another person who became an owner of their workspace does not count."""
    home = default_workspace(cast.owner)
    mine = make_memory("Olive likes olives", cast.owner, scope="user", now=LONG_AGO)
    home.memberships.create(user=cast.stranger, role="owner")
    before = NOW - timedelta(days=2)
    retention.set_rules(home, by=cast.stranger, now=before, memories=30)
    assert retention.would_go(home, {"memories": 30}, by=cast.stranger, now=NOW) == {"memories": 0}
    assert retention.would_go(home, {"memories": 30}, by=cast.owner, now=NOW) == {"memories": 1}
    assert swept() == 0
    retention.set_rules(home, by=cast.owner, now=before, memories=31)
    assert swept() == 1
    assert not AuditEvent.objects.filter(verb="retention_applied").exists()
    aged(mine, deleted_at=None, updated_at=LONG_AGO)
    retention.set_rules(home, by=cast.stranger, now=before, memories=30)
    settings.RETENTION_MOST = settings.RETENTION_MOST | {"memories": 40}
    assert swept() == 1, "the operator's concerns all"


def test_documents_and_artifacts_go_after_their_last_change(cast: Cast) -> None:
    document, kept = (
        make_document(cast.owner, cast.workspace, text) for text in ("The oven is hot.", "The tea is cold.")
    )
    artifact, private = (
        make_artifact(cast.owner, cast.workspace, text, personal=personal)
        for text, personal in (("print('oven')", False), ("print('private')", True))
    )
    for row in (document, artifact, private):
        aged(row, created_at=LONG_AGO, updated_at=LONG_AGO)
    set_rules(cast, documents=90, artifacts=90)
    assert retention.would_go(
        cast.workspace, {"documents": 90, "artifacts": 90}, by=cast.editor, now=NOW
    ) == {
        "documents": 1,
        "artifacts": 1,
    }
    assert swept() == 2  # without personal rows, which are elsewhere
    assert (live(Document), live(Artifact)) == ({kept.pk}, {private.pk})
    assert not document.passages.filter(deleted_at=None).exists()
    documents.restore(Document.objects.get(pk=document.pk), by=cast.owner, now=NOW)
    artifacts.restore(Artifact.objects.get(pk=artifact.pk), by=cast.owner, now=NOW)
    assert swept() == 0


def test_the_activity_keeps_who_decided_and_what_a_restore_needs(cast: Cast, settings: Any) -> None:
    settings.AUDIT_DAYS = 365
    record = audit.record
    for verb in (audit.Verb.EXPORTED, audit.Verb.DOCUMENT_FORGOTTEN, audit.Verb.RETENTION_SET):
        record(verb, by=cast.owner, workspace=cast.workspace)
    record(audit.Verb.EXPORTED, by=cast.owner)  # of no workspace
    later = audit.timezone.now() + timedelta(days=60)
    retention.set_rules(cast.workspace, by=cast.owner, now=later - timedelta(days=2), activity=30)
    assert retention.would_go(cast.workspace, {"activity": 30}, by=cast.owner, now=later) == {"activity": 1}
    assert audit.prune(now=later) == 1
    left = AuditEvent.objects.order_by("pk").values_list("verb", "workspace_id")
    ws = cast.workspace.public_id
    assert list(left) == [
        ("document_forgotten", ws),
        ("retention_set", ws),
        ("exported", ""),
        ("retention_set", ws),
    ]


def test_what_the_operator_allows_at_most_holds_everywhere(cast: Cast, settings: Any) -> None:
    settings.RETENTION_MOST = settings.RETENTION_MOST | {"chats": 60}
    settings.AUDIT_DAYS = settings.RETENTION_MOST["activity"] = 365
    chats = [aged(make_chat(cast.stranger), active_at=NOW - timedelta(days=days)) for days in (59, 61)]
    assert retention.in_force(retention.rules_of(cast.workspace))["chats"] == 60
    for days in ({"chats": 61}, {"chats": 0}, {"activity": 29}, {"activity": 366}, {"memories": 36_501}):
        with pytest.raises(Invalid):
            retention.set_rules(cast.workspace, by=cast.owner, now=NOW, **days)
    with pytest.raises(Forbidden):
        retention.set_rules(cast.workspace, by=cast.editor, now=NOW, chats=30)
    assert swept() == 1
    assert live(Chat) == {chats[0].pk}


def test_a_rule_waits_a_day_and_the_job_works_in_bounded_batches(cast: Cast, monkeypatch: Any) -> None:
    make = [Chat(workspace=cast.workspace, created_by=cast.owner, active_at=LONG_AGO) for _ in range(7)]
    Chat.objects.bulk_create(make)
    retention.set_rules(cast.workspace, by=cast.owner, now=NOW, chats=30)
    assert retention.sweep(now=NOW + timedelta(hours=23), seconds=60) == (0, True)
    monkeypatch.setattr(retention, "BATCH", 3)
    tomorrow = NOW + timedelta(hours=25)
    assert retention.sweep(now=tomorrow, seconds=-1) == (3, False)
    queued: list[str] = []
    monkeypatch.setattr(tasks, "async_task", lambda name, **_: queued.append(name))
    monkeypatch.setattr(tasks.settings, "JOB_TIMEOUT", -1)
    assert (tasks.keep_for_a_time(), queued) == (
        "3 deleted by rules of retention",
        ["workspaces.tasks.keep_for_a_time"],
    )
    assert retention.sweep(now=tomorrow, seconds=60) == (1, True)


def test_owners_set_and_count_members_read_and_strangers_find_nothing(cast: Cast) -> None:
    old = aged(make_chat(cast.editor, cast.workspace, is_private=True), active_at=LONG_AGO)
    path = f"/workspaces/{cast.workspace.public_id}/retention/"
    client = Client()
    client.force_login(cast.owner)
    counted = client.post(path, {"chats": "30", "preview": "on"})
    assert (counted.status_code, Retention.objects.count()) == (200, 0)
    assert "Chats: 0" in counted.content.decode()
    wrong = client.post(path, {"chats": "0"})
    assert (wrong.status_code, "Must be 1 to 36500 days." in wrong.content.decode()) == (422, True)
    assert client.post(path, {"chats": "30", "memories": ""}).status_code == 302
    assert AuditEvent.objects.get(verb="retention_set").details == {"chats": 30}
    viewer = Client()
    viewer.force_login(cast.viewer)
    page = viewer.get(path).content.decode()
    assert "Chats: days after the last message" in page and 'name="chats"' not in page
    api = f"workspaces/{cast.workspace.public_id}/retention"
    read = Api(cast.editor).get(api).json()
    assert (read["rules"]["chats"], read["in_force"]["activity"], read["purged_after"]) == (30, 365, 30)
    owner = Api(cast.owner)
    put = owner.client.put(f"/chat/api/{api}", {"memories": 200}, content_type="application/json")
    assert put.json()["rules"] == dict.fromkeys(retention.NAMES) | {"memories": 200}
    for body in ({"chats": "30"}, {"chats": True}, {"chats": -1}, {"chats": 10**12}, {"cats": 3}):
        sent = owner.client.put(f"/chat/api/{api}", body, content_type="application/json")
        assert sent.status_code == 422, body
    assert owner.post(f"{api}/preview", {"chats": 30}).json() == {"would_go": {"chats": 0}}
    make_cast_own = Api(cast.editor).post(f"{api}/preview", {"chats": 30})
    assert make_cast_own.status_code == 403
    assert Chat.objects.get(pk=old.pk).deleted_at is None
