"""Export into one file and import into an empty installation: the rows are the same."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import Value
from django.db.models.functions import Concat
from django.utils import timezone

from chat.import_export import import_jobs
from chat.import_export.export import export
from chat.import_export.import_lines import SETTINGS
from chat.models import Chat, Message, MessageRole, MessageStatus
from chat.models.imports import Import, ImportStatus
from memories.models import Memory, MemorySource, Receipt, ReceiptItem, Revision, Scope
from memories.recalling.recall import recall
from memories.writing.changing import restore_memory
from memories.writing.export_lines import DATES, PLAIN, SOURCE
from memories.writing.gate import Draft, delete_memory, edit_memory, save_memory
from tests.conftest import Cast
from tests.factories import (
    HERE,
    make_chat,
    make_document,
    make_memory,
    make_message,
    make_user,
    make_workspace,
)
from workspaces.access import default_workspace
from workspaces.actions.workspaces import archive_agent, create_agent
from workspaces.documents import documents, reading_jobs
from workspaces.models import Agent, Document, Membership, PassageWord, Role, User, Workspace

pytestmark = pytest.mark.django_db
THEN = datetime(2025, 3, 1, 9, 30, 15, 123456, tzinfo=UTC)


def exported(user: User, workspace: Workspace | None = None) -> bytes:
    return b"".join(export(user, workspace=workspace, now=timezone.now()))


def lines_of(data: bytes, kind: str = "") -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in data.splitlines()]
    return [line for line in lines if kind in ("", line["type"])]


def uploaded(
    user: User, data: bytes, workspace: Workspace | None = None, name: str = "export.jsonl"
) -> Import:
    """Upload a file and run its preview; return the import."""
    file = io.BytesIO(data)
    pieces: Iterator[bytes] = iter(lambda: file.read(65_536), b"")
    imported = import_jobs.begin(user, workspace=workspace, filename=name, pieces=pieces, now=timezone.now())
    while import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.UNFINISHED:
        pass
    imported.refresh_from_db()
    return imported


def imported_whole(
    user: User, data: bytes, workspace: Workspace | None = None, name: str = "export.jsonl"
) -> Import:
    imported = uploaded(user, data, workspace, name)
    assert (imported.status, imported.error) == (ImportStatus.PREVIEW, ""), imported.error
    import_jobs.start(imported, now=timezone.now())
    while import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.UNFINISHED:
        pass
    imported.refresh_from_db()
    assert (imported.status, imported.error) == (ImportStatus.DONE, "")
    return imported


def a_rich_workspace(cast: Cast) -> None:
    """Create one of everything, long ago, by several people."""
    owner, editor, workspace = cast.owner, cast.editor, cast.workspace
    Workspace.objects.filter(pk=workspace.pk).update(reviews_proposals=True, description="All of it")
    agent = create_agent(workspace, name="Ada", instructions="Be brief.", by=editor, now=THEN)
    archived = create_agent(workspace, name="Old", by=owner, now=THEN)
    archive_agent(archived, by=owner, now=THEN + timedelta(days=1))
    chat = make_chat(
        owner, workspace, title="Deadlines", agent=agent, memory_enabled=True, created_at=THEN, active_at=THEN
    )
    private = make_chat(owner, workspace, title="Mine alone", is_private=True, created_at=THEN)
    make_message(private, "Only I see this", created_at=THEN)
    question = make_message(
        chat, "When is the deadline?\nSay it\u2028briefly 🚀", created_at=THEN, author=editor
    )
    answer = make_message(
        chat,
        "On March 15.",
        role=MessageRole.ASSISTANT,
        reply_to=question,
        model="m-1",
        attempt=2,
        memory_enabled=True,
        created_at=THEN,
        finished_at=THEN + timedelta(seconds=3),
    )
    make_message(
        chat,
        "",
        MessageRole.ASSISTANT,
        reply_to=question,
        status=MessageStatus.FAILED,
        error="No answer",
        error_code="timeout",
    )
    older = make_memory("The deadline is March 10", editor, workspace, now=THEN)
    source = {"source_chat_id": chat.public_id, "source_message_id": question.public_id}
    newer = make_memory(
        "The deadline is March 15",
        owner,
        workspace,
        now=THEN + timedelta(days=2),
        key="deadline",
        tags=["dates", "launch"],
        category="fact",
        summary="Deadline: March 15",
        importance=0.9,
        pinned=True,
        source_type="auto_chat",
        source_excerpt="olive: When is the deadline?",
        source_details={"extractor": "rules", "rule": "date"},
        expires_at=datetime(2099, 1, 1, tzinfo=UTC),
        **source,
    )
    Memory.objects.filter(pk=newer.pk).update(may_replace=older, last_accessed_at=THEN + timedelta(days=3))
    former = make_memory("The deadline was in 2025", owner, workspace, now=THEN)
    replacing = make_memory("The deadline is in 2026", owner, workspace, now=THEN)
    edit_memory(former, by=owner, now=THEN, replaced_by=replacing)
    edited = make_memory("Tea is green", editor, workspace, now=THEN)
    edit_memory(edited, by=owner, now=THEN + timedelta(hours=1), content="Tea is black", tags=["drinks"])
    make_memory("Tea is black.", owner, workspace, now=THEN)  # a near-duplicate that was stored anyway
    gone = make_memory("The old office is in Porto", owner, workspace, now=THEN)
    delete_memory(gone, by=editor, now=THEN + timedelta(days=5))
    MemorySource.objects.create(memory=edited, source_id=answer.public_id)
    save_memory(
        Draft("Lunch is at noon", workspace, author=editor, source_type="model").to_review(),
        by=editor,
        now=THEN,
    )
    make_memory("I am allergic to nuts", owner, now=THEN, scope=Scope.USER)
    make_memory("Ada answers in French", owner, workspace, now=THEN, scope=Scope.AGENT, agent=agent)
    receipt = Receipt.objects.create(
        message_id=answer.public_id,
        workspace=workspace,
        user=editor,
        ranking="hybrid",
        threshold=0.5,
        degraded="slow",
    )
    Receipt.objects.filter(pk=receipt.pk).update(created_at=THEN)
    for position, memory in enumerate([newer, older], start=1):
        ReceiptItem.objects.create(
            receipt=receipt,
            memory=memory,
            position=position,
            score=0.75,
            score_parts={"meaning": 0.75},
            strength="strong" if position == 1 else "",
            content=memory.content,
            mentions=[[0, 2]] if position == 1 else [],
            used=position == 1,
            reason="" if position == 1 else "below the threshold",
            not_relevant=position == 2,
        )


def everything() -> dict[str, list[Any]]:
    """Return every row by its fields, in order, with public ids and usernames for keys."""
    told_apart = ("scope", "imported_at")  # an import marks rows under other people's names
    memory = [name for name in (*PLAIN, *SOURCE, *DATES) if name not in told_apart]
    return {
        "workspaces": list(
            Workspace.objects.order_by("pk").values_list("public_id", "name", "description", "created_at", *SETTINGS)
        ),
        "agents": list(
            Agent.objects.order_by("pk").values_list(
                "public_id", "workspace__public_id", "name", "description", "instructions",
                "created_by__username", "created_at", "updated_at", "archived_at",
            )
        ),
        "chats": list(
            Chat.objects.order_by("pk").values_list(
                "public_id", "workspace__public_id", "created_by__username", "agent__public_id", "title",
                "memory_enabled", "is_private", "created_at", "active_at", "deleted_at",
            )
        ),
        "messages": list(
            Message.objects.order_by("pk").values_list(
                "public_id", "chat__public_id", "role", "author__username", "content", "status", "error_code", "error",
                "reply_to__public_id", "memory_enabled", "model", "attempt", "created_at", "finished_at",
            )
        ),
        "memories": list(
            Memory.objects.order_by("workspace__name", "pk").values_list(
                "public_id", "workspace__public_id", "scope", "owner__username", "author__username", "agent__public_id",
                "may_replace__public_id", "replaced_by__public_id", "content_hash", "review", "sources__source_id",
                *memory,
            )
        ),
        "revisions": list(
            Revision.objects.order_by("memory__public_id", "pk").values_list(
                "memory__public_id", "action", "by__username", "at", "before"
            )
        ),
        "receipts": list(
            ReceiptItem.objects.order_by("pk").values_list(
                "receipt__message_id", "receipt__workspace__public_id", "receipt__user__username", "receipt__ranking",
                "receipt__threshold", "receipt__degraded", "receipt__created_at", "memory__public_id", "position",
                "score", "score_parts", "strength", "content", "mentions", "used", "reason", "not_relevant",
            )
        ),
        "words": sorted(
            PassageWord.objects.values_list("lexeme", "weight").filter(
                ref__in=Memory.objects.filter(scope=Scope.WORKSPACE).values("pk")
            )
        ),
    }  # fmt: skip


def empty_installation(*usernames: str) -> list[User]:
    """Delete everything and create new users with these names."""
    Workspace.objects.all().delete()
    User.objects.update(username=Concat(Value("before-"), "username"), looks=[])
    assert not Memory.objects.exists() and not Chat.objects.exists() and not Message.objects.exists()
    return [make_user(name) for name in usernames]


def test_a_round_trip_into_an_empty_installation_brings_back_every_row(cast: Cast) -> None:
    a_rich_workspace(cast)
    default_workspace(cast.owner)
    Workspace.objects.exclude(default_of=cast.owner).exclude(pk=cast.workspace.pk).delete()
    data, before = exported(cast.owner), everything()
    home = cast.owner.default_workspace.public_id
    assert all(before.values())
    olive, *_ = empty_installation("olive", "eddie", "vera")
    olive.is_superuser = True  # only an administrator may restore an installation with everybody's texts
    olive.save()

    imported = imported_whole(olive, data)

    new_home = default_workspace(olive).public_id
    after = json.loads(json.dumps(everything(), default=str).replace(new_home, home))
    expected = json.loads(json.dumps(before, default=str))
    for kind, rows in expected.items():
        if kind == "workspaces":  # the personal one was created with its user
            assert [row for row in after[kind] if row[0] != home] == [row for row in rows if row[0] != home]
        else:
            assert after[kind] == rows, kind
    refused = [row.reason for row in imported.rows.all() if row.outcome == "refused"]
    assert refused == []
    found = recall(
        "When is the deadline?",
        Workspace.objects.get(name="Shared"),
        olive,
        now=timezone.now(),
        policy=HERE,
    )
    assert found.items[0].memory.content == "The deadline is March 15"
    gone = Memory.objects.get(content__startswith="The old office")
    assert not gone.embeddings.exists()
    restore_memory(gone, by=olive, now=timezone.now())
    assert recall("old office in Porto", gone.workspace, olive, now=timezone.now(), policy=HERE).items


def test_every_field_of_a_memory_is_exported_or_derived() -> None:
    people = {"workspace", "owner", "author", "edited_by", "imported_by", "agent", "may_replace"}
    derived = {"id", "content_hash", "search", "secret_rules", "brought_by", "own_row", "embedding_failed_at"}
    fields = {field.name for field in Memory._meta.concrete_fields}
    assert fields == {*PLAIN, *SOURCE, *DATES, *derived, *people, "public_id", "review", "replaced_by"}


def test_documents_go_along_with_their_files_and_are_read_again(cast: Cast) -> None:
    keys = make_document(
        cast.owner, cast.workspace, "The spare key lies under the blue pot.", title="Keys", embedded=False
    )
    make_document(cast.owner, cast.workspace, "Forgotten by now.", embedded=False)
    gone = Document.objects.exclude(pk=keys.pk).get()
    documents.delete(gone, by=cast.owner, now=timezone.now())
    data = exported(cast.viewer, cast.workspace)
    [line] = lines_of(data, "document")
    assert (line["id"], line["title"], line["media_type"]) == (keys.public_id, "Keys", "text/markdown")
    broken = {**line, "sha256": "0" * 64}
    empty, strange = {**line, "content": None}, {**line, "title": "x" * 300}
    more = b"".join(json.dumps(each).encode() + b"\n" for each in (line, broken, empty, strange))
    place = make_workspace(owner=cast.stranger)
    done = imported_whole(cast.stranger, data + more, workspace=place)
    [here] = Document.objects.filter(workspace=place)
    assert (here.title, here.media_type, here.sha256, here.status) == (
        "Keys",
        keys.media_type,
        keys.sha256,
        "waiting",
    )
    assert here.created_by == cast.stranger and here.file_name != keys.file_name
    outcomes = done.outcomes["document"]
    assert (outcomes["new"], outcomes["duplicate"], outcomes["refused"]) == (1, 1, 3)
    again = imported_whole(cast.stranger, data, workspace=place)
    assert (
        again.outcomes["document"]["duplicate"] == 1 and Document.objects.filter(workspace=place).count() == 1
    )
    reading_jobs.read(here.pk, now=timezone.now())
    assert "blue pot" in here.passages.get().text


def test_what_is_ones_own_goes_along_for_oneself_alone(cast: Cast) -> None:
    own = make_document(cast.editor, cast.workspace, "The key is Mona's.", personal=True, embedded=False)
    Membership.objects.create(workspace=own.workspace, user=cast.owner, role=Role.OWNER)
    assert lines_of(exported(cast.owner, own.workspace), "document") == []
    [line] = lines_of(data := exported(cast.editor, own.workspace), "document")
    assert line["personal"] is True
    place = make_workspace(owner=cast.stranger)
    for outcome in ("new", "duplicate"):
        assert imported_whole(cast.stranger, data, workspace=place).outcomes["document"][outcome] == 1
    [here] = Document.objects.filter(owner=cast.stranger)
    assert here.workspace == default_workspace(cast.stranger)
