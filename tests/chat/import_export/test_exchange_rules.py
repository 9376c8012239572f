"""Permissions of export and import, and what a file cannot do."""

import json
from typing import Any

import pytest
from django.utils import timezone

from chat.import_export import import_jobs
from chat.models import Chat, Message
from chat.models.imports import ImportStatus
from memories.forgetting.for_good import forget_memories
from memories.models import Memory, Receipt, Refusal, Scope
from memories.writing.gate import delete_memory
from memoryhub.errors import Forbidden, NotFound
from tests.chat.import_export.test_exchange import (
    a_rich_workspace,
    everything,
    exported,
    imported_whole,
    lines_of,
    uploaded,
)
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message, make_workspace
from workspaces.access import default_workspace
from workspaces.audit import Verb
from workspaces.models import Agent, AuditEvent, Membership, Role, User, Workspace
from workspaces.quotas import quota_of, require_room

pytestmark = pytest.mark.django_db
SECRET = "sk-ant-api03-" + "Ab1" * 30
HEADER: dict[str, Any] = {"type": "memoryhub", "version": 1}
WS = "ws_" + "A" * 24
WORKSPACE = {"type": "workspace", "id": WS, "name": "Launch"}


def file_of(*lines: Any) -> bytes:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in (HEADER, WORKSPACE, *lines)]
    return "\n".join(texts).encode("utf-8", "surrogatepass")


def memory(content: Any = "Cats purr", **fields: Any) -> dict[str, Any]:
    return {"type": "memory", "workspace": WS, "content": content, **fields}


def chat(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"type": "chat", "id": f"chat_{number:024}", "workspace": WS, "title": "Plans", **fields}


def message(number: int = 1, of: str = "", **fields: Any) -> dict[str, Any]:
    at = {"id": f"msg_{number:024}", "workspace": WS, "chat": of or f"chat_{1:024}"}
    return {"type": "message", "role": "user", "content": "Hello", **at, **fields}


def test_everybody_takes_out_what_they_may_see_and_no_more(cast: Cast) -> None:
    a_rich_workspace(cast)
    make_memory("I am the editor", cast.editor, cast.workspace, scope=Scope.USER)
    make_message(make_chat(cast.editor, cast.workspace, is_temporary=True), "Gone tomorrow")
    hidden = make_chat(cast.editor, cast.workspace, title="Eddie's", is_private=True)
    by = {name: exported(getattr(cast, name), cast.workspace) for name in ("owner", "editor", "viewer")}
    titles = {name: {line["title"] for line in lines_of(data, "chat")} for name, data in by.items()}
    assert titles == {
        "owner": {"Deadlines", "Mine alone"},
        "editor": {"Deadlines", hidden.title},
        "viewer": {"Deadlines"},
    }
    gone = {name: "The old office" in data.decode() for name, data in by.items()}
    # A user who may restore the memory gets it
    assert gone == {"owner": True, "editor": True, "viewer": False}
    assert not any("Only I see this" in by[name].decode() for name in ("editor", "viewer"))
    assert not any("Gone tomorrow" in data.decode() for data in by.values())
    assert exported(cast.stranger, cast.workspace).count(b"\n") == 1  # the header
    everything_of_editor = exported(cast.editor)
    assert "I am the editor" in everything_of_editor.decode()
    assert "allergic" not in everything_of_editor.decode()


def test_exports_and_imports_stand_in_the_audit_log(cast: Cast) -> None:
    from django.test import Client

    client = Client()
    client.force_login(cast.viewer)
    response = client.get(f"/chat/api/workspaces/{cast.workspace.public_id}/export")
    assert response["Content-Disposition"].startswith('attachment; filename="memoryhub-shared-')
    assert response["Cache-Control"] == "no-store"
    imported_whole(cast.editor, b"Cats purr", cast.workspace)
    verbs = AuditEvent.objects.filter(verb__in=[Verb.EXPORTED, Verb.IMPORTED]).values_list("verb", "by_name")
    assert list(verbs.order_by("pk")) == [("exported", "vera"), ("imported", "eddie")]


def test_viewers_and_strangers_cannot_import_into_a_workspace(cast: Cast) -> None:
    with pytest.raises(Forbidden):
        uploaded(cast.viewer, b"Cats purr", cast.workspace)
    with pytest.raises(NotFound):
        uploaded(cast.stranger, b"Cats purr", cast.workspace)


def test_import_fails_once_its_user_may_no_longer_write(cast: Cast) -> None:
    first, second = (uploaded(cast.editor, b"Cats purr", cast.workspace) for _ in range(2))
    membership = Membership.objects.filter(user=cast.editor, workspace=cast.workspace)
    membership.update(role=Role.VIEWER)
    for imported in (first, second):
        import_jobs.start(imported, now=timezone.now())
        assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.FAILED
        imported.refresh_from_db()
        assert imported.status == ImportStatus.FAILED and imported.error
        assert not Memory.objects.exists()
        membership.delete()


def test_only_an_owners_import_speaks_for_others(cast: Cast) -> None:
    lines = [
        chat(created_by="olive"),
        message(author="olive"),
        memory(
            "Tea",
            author="olive",
            revisions=[{"action": "create", "by": "olive", "at": "2025-01-01T00:00:00Z"}],
        ),
    ]
    imported_whole(cast.editor, file_of(*lines), cast.workspace)
    assert Chat.objects.get().created_by == cast.editor
    assert Message.objects.get().author is None
    tea = Memory.objects.get()
    assert (tea.author, tea.source_details) == (None, {"author": "olive"})
    assert tea.revisions.get().by is None
    other = make_workspace(owner=cast.owner)
    imported_whole(cast.owner, file_of(*lines), other)
    assert other.memories.get().author == cast.owner and other.chats.get().created_by == cast.owner


@pytest.mark.parametrize("what", ["chats", "memories"])
def test_what_a_file_brings_takes_the_room_of_who_brings_it(cast: Cast, settings: Any, what: str) -> None:
    """Rows count against the importer's quota even if they name others: anyone may create a workspace and add people to
    it.
    """
    settings.QUOTAS = settings.QUOTAS | {what: 3}
    mine = make_workspace(owner=cast.stranger)
    Membership.objects.create(workspace=mine, user=cast.owner, role=Role.VIEWER)
    words = ("Tea", "A harbour at night", "Nine green lamps", "Olive trees")

    def brought(numbers: range, by: User = cast.stranger) -> tuple[import_jobs.JobResult, int, int]:
        names = ("olive", "somebody who is not here")
        chats = [chat(number, created_by=names[number % 2]) for number in numbers]
        memories = [memory(words[number], author=names[number % 2]) for number in numbers]
        imported = uploaded(by, file_of(*(chats if what == "chats" else memories)), mine)
        import_jobs.start(imported, now=timezone.now())
        outcome = import_jobs.advance(imported.pk, seconds=60)
        return outcome, quota_of(cast.stranger, what).used, quota_of(cast.owner, what).used

    assert brought(range(3)) == (import_jobs.JobResult.DONE, 3, 0)
    assert brought(range(3, 4)) == (import_jobs.JobResult.FULL, 3, 0)
    require_room(what, cast.owner, 3)
    cast.stranger.delete()
    assert quota_of(cast.owner, what).used == 0, "nor once they are gone"


def test_a_private_chat_and_a_personal_memory_are_the_importers_whoever_is_named(cast: Cast) -> None:
    lines = [
        chat(created_by="eddie", is_private=True),
        memory("I sing", scope="user", owner="eddie", author="eddie"),
    ]
    imported_whole(cast.owner, file_of(*lines), cast.workspace)
    assert Chat.objects.get().created_by == cast.owner
    sings = Memory.objects.get()
    assert (sings.owner, sings.author, sings.workspace) == (
        cast.owner,
        cast.owner,
        default_workspace(cast.owner),
    )


def test_nobody_adds_words_to_a_chat_of_somebody_else(cast: Cast) -> None:
    theirs = make_chat(cast.owner, cast.workspace, title="Shared")
    private = make_chat(cast.owner, cast.workspace, is_private=True)
    lines = [message(1, of=theirs.public_id), message(2, of=private.public_id, role="assistant")]
    imported = imported_whole(cast.editor, file_of(*lines), cast.workspace)
    assert imported.outcomes["message"]["refused"] == 2
    assert not Message.objects.exists()


def test_nobody_says_what_an_answer_in_a_chat_of_somebody_else_recalled(cast: Cast) -> None:
    room = make_chat(cast.owner, cast.workspace)
    question = make_message(room, "What did we say?")
    answer = make_message(room, "This.", "assistant", reply_to=question)
    known = make_memory("Cats purr", cast.editor, cast.workspace)
    item = {"memory": known.public_id, "position": 0, "score": 1.0, "content": "The owner lies", "used": True}
    place = {"workspace": WS, "chat": room.public_id, "message": answer.public_id}
    line = {"type": "receipt", **place, "ranking": "hybrid", "threshold": 0.5, "items": [item]}
    for importer, refused in ((cast.editor, 1), (cast.owner, 0)):
        done = imported_whole(importer, file_of(line), cast.workspace)
        assert done.outcomes["receipt"]["refused"] == refused
        assert Receipt.objects.filter(message_id=answer.public_id).count() == 1 - refused


def test_source_ids_never_lead_into_what_the_importer_may_not_see(cast: Cast) -> None:
    private = make_chat(cast.owner, cast.workspace, is_private=True)
    secret = make_message(private, "My salary is 5")
    shared = make_message(make_chat(cast.owner, cast.workspace), "The launch is in May")
    gone = {"source_chat_id": "chat_" + "G" * 24, "source_message_id": "msg_" + "G" * 24}
    lines = [
        memory("One", source_chat_id=private.public_id, source_message_id=secret.public_id),
        memory("Two", source_chat_id=shared.chat.public_id, source_message_id=shared.public_id),
        memory("Three", **gone),
        memory("Four", source_chat_id=shared.chat.public_id, source_message_id=secret.public_id),
    ]
    imported_whole(cast.editor, file_of(*lines), cast.workspace)
    sources = dict(Memory.objects.values_list("content", "source_message_id"))
    assert secret.public_id not in sources.values()
    assert sources["Two"] == shared.public_id
    assert sources["Three"] == gone["source_message_id"]
    assert Memory.objects.get(content="One").source_chat_id != private.public_id


def test_a_copy_within_one_installation_gets_ids_of_its_own_and_its_links_stay_inside(cast: Cast) -> None:
    a_rich_workspace(cast)
    data = exported(cast.owner, cast.workspace)
    copy = make_workspace(owner=cast.owner, name="Copy")
    imported_whole(cast.owner, data, copy)
    newer = copy.memories.get(content="The deadline is March 15")
    assert newer.public_id not in data.decode()
    assert newer.may_replace is not None and newer.may_replace.workspace == copy
    source = Message.objects.get(public_id=newer.source_message_id)
    assert source.chat.workspace == copy and source.content.startswith("When is the deadline?")
    answer = source.answers.first()
    assert answer is not None and answer.chat == source.chat
    assert Chat.objects.get(pk=source.chat_id).agent in copy.agents.all()
    before = everything()
    imported_whole(cast.owner, data, copy)
    assert everything() == before


def test_what_is_here_already_is_told_with_what_it_is(cast: Cast) -> None:
    same = make_memory("Cats purr", cast.owner, cast.workspace)
    keyed = make_memory("Tea", cast.owner, cast.workspace, key="drink")
    lines = [memory("cats purr!"), memory("Coffee", key="drink"), memory("Dogs bark"), memory("Dogs bark")]
    imported = imported_whole(cast.owner, file_of(*lines), cast.workspace)
    rows = {row.number: (row.outcome, row.duplicate_of) for row in imported.rows.filter(kind="memory")}
    assert rows == {
        3: ("duplicate", same.public_id),
        4: ("duplicate", keyed.public_id),
        5: ("new", ""),
        6: ("new", ""),  # an export repeats what it holds twice
    }
    assert imported.outcomes == imported.foreseen
    keyed.refresh_from_db()
    assert keyed.content == "Tea"


def test_what_was_forgotten_for_good_does_not_come_back_in_a_file(cast: Cast) -> None:
    forgotten = make_memory("I was ill in May", cast.owner, cast.workspace)
    data = exported(cast.owner, cast.workspace)
    delete_memory(forgotten, by=cast.owner, now=timezone.now())
    forget_memories([forgotten], by=cast.owner, now=timezone.now())
    for file in (data, b"I was ill in May\n"):
        imported = imported_whole(cast.owner, file, cast.workspace)
        assert imported.foreseen["memory"]["refused"] == imported.outcomes["memory"]["refused"] == 1
        assert imported.rows.get(outcome="refused").reason == "it was forgotten for good here"
    assert not Memory.objects.exists()


AT = "2025-01-01T00:00:00Z"
REFUSED = {
    "a secret": memory(f"The key is {SECRET}"),
    "a secret beside its label": memory("AbC123def456GHI789jkl012", key="api_key"),
    "a secret in the details": memory("Fine", source_details={"a": [{"password": "hunter2hunter2hunter2"}]}),
    "a secret in the history": memory(
        "Fine", revisions=[{"action": "edit", "at": AT, "before": {"content": SECRET}}]
    ),
    "a secret in an old excerpt": memory(
        "Fine", revisions=[{"action": "edit", "at": AT, "before": {"source_excerpt": SECRET}}]
    ),
    "no text": memory(None),
    "blank": memory("  "),
    "too long": memory("x" * 2001),
    "a number": memory(5),
    "a NUL": memory("a\0b"),
    "half a pair": memory("a\ud800b"),
    "a NUL in the details": memory("Fine", source_details={"a": "\0"}),
    "a NUL in an id": memory("Fine", id="mem_\0"),
    "a wrong scope": memory("Fine", scope="everyone"),
    "a list as scope": memory("Fine", scope=["user"]),
    "an unknown assistant": memory("Fine", scope="agent", agent="agent_" + "A" * 24),
    "a wrong date": memory("Fine", created_at="yesterday"),
    "a date without a zone": memory("Fine", created_at="2025-01-01T00:00:00"),
    "a date before all": memory("Fine", created_at="0001-01-01T00:00:00+14:00"),
    "an importance of 7": memory("Fine", importance=7),
    "tags of objects": memory("Fine", tags=[{}]),
    "an unknown action": memory("Fine", revisions=[{"action": "steal", "at": AT}]),
    "an unknown field of the past": memory(
        "Fine", revisions=[{"action": "edit", "at": AT, "before": {"owner": 1}}]
    ),
    "an unknown workspace": memory("Fine", workspace="ws_" + "B" * 24),
    "a number as workspace": memory("Fine", workspace=7),
    "not a number": '{"type":"memory","workspace":"' + WS + '","content":"Fine","importance":NaN}',
    "an infinite number": '{"type":"memory","workspace":"' + WS + '","content":"Fine","importance":1e999}',
    "an infinite detail": '{"type":"memory","workspace":"'
    + WS
    + '","content":"Fine","source_details":{"a":1e999}}',
    "no JSON": "{nothing",
    "nested too deeply": '{"type":"memory","content":' + "[" * 100_000 + "]" * 100_000 + "}",
    "no object": "[1]",
    "an unknown type": {"type": "user", "username": "root"},
    "a second header": HEADER,
    "a chat of no workspace": chat(2, workspace="ws_" + "B" * 24),
    "a chat with a title too long": chat(2, title="x" * 201),
    "a chat with a NUL": chat(2, title="a\0b"),
    "a chat with a wrong flag": chat(2, is_private="yes"),
    "a message of a system": message(2, role="system"),
    "a message of another chat": message(2, of="chat_" + "Z" * 24),
    "a message too long": message(2, content="x" * 32_001),
    "an answer with a NUL": message(2, role="assistant", content="a\0"),
    "a message by a list": message(2, author=["olive"]),
    "a receipt of nothing": {
        "type": "receipt",
        "workspace": WS,
        "chat": "chat_1",
        "message": "msg_1",
        "items": [1],
    },
    "an assistant without a name": {"type": "agent", "id": "agent_1", "workspace": WS},
}


def test_invalid_lines_are_refused_and_the_others_are_stored(cast: Cast) -> None:
    before = (chat(), message())
    imported = imported_whole(cast.owner, file_of(*before, *REFUSED.values(), memory("Cats purr")))
    rows = {row.number: row for row in imported.rows.filter(outcome="refused")}
    numbers = dict(enumerate(REFUSED, start=3 + len(before)))  # after the header and the workspace
    assert {numbers.get(number, number) for number in rows} == set(REFUSED)
    assert all(row.reason and SECRET not in row.reason for row in rows.values())
    assert sum(of["refused"] for of in imported.outcomes.values()) == len(REFUSED)
    assert [m.content for m in Memory.objects.all()] == ["Cats purr"]
    assert (Chat.objects.count(), Message.objects.count()) == (1, 1)


def test_of_a_receipt_only_what_is_here_and_holds_no_secret_is_kept(cast: Cast) -> None:
    item = {"memory": "mem_" + "A" * 24, "position": 1, "score": 0.5, "content": "Cats purr", "used": True}
    receipt = {"type": "receipt", "workspace": WS, "chat": f"chat_{1:024}", "message": f"msg_{2:024}"}
    receipt |= {"ranking": "hybrid", "threshold": 0.5}
    answer = message(2, role="assistant", reply_to=f"msg_{1:024}")
    lines = [chat(), message(), answer, memory(id="mem_" + "A" * 24)]
    elsewhere = {**item, "memory": "mem_" + "B" * 24}
    imported_whole(cast.owner, file_of(*lines, {**receipt, "items": [item, elsewhere]}), cast.workspace)
    from memories.models import ReceiptItem

    assert [kept.memory.content for kept in ReceiptItem.objects.all()] == ["Cats purr"]
    other = make_workspace(owner=cast.owner)
    leaky = file_of(*lines, {**receipt, "items": [{**item, "content": SECRET}]})
    assert imported_whole(cast.owner, leaky, other).outcomes["receipt"]["refused"] == 1


def test_without_a_target_workspaces_are_found_again_or_made(cast: Cast) -> None:
    a_rich_workspace(cast)
    data = exported(cast.owner)
    names = set(Workspace.objects.visible_to(cast.owner).values_list("public_id", flat=True))
    imported_whole(cast.owner, data)
    assert set(Workspace.objects.visible_to(cast.owner).values_list("public_id", flat=True)) == names
    imported_whole(cast.stranger, data)  # into another workspace, the importer's own
    made = Workspace.objects.visible_to(cast.stranger).get(default_of=None)
    assert made.name == "Shared" and made != cast.workspace and made.memories.exists()
    assert made.role == Role.OWNER  # type: ignore[attr-defined]
    assert set(made.memories.values_list("author", flat=True)) == {None}, "nobody of the file is in it"
    named = {memory.source_details.get("author") for memory in made.memories.all()}
    assert named == {"olive", "eddie"}


def test_an_import_puts_no_words_under_the_name_of_who_is_not_a_member(cast: Cast) -> None:
    revision = {"action": "create", "by": "sam", "at": "2025-03-01T09:30:15Z", "before": {}}
    lines = [
        {"type": "agent", "id": "agent_1", "workspace": WS, "name": "Ada", "created_by": "sam"},
        chat(created_by="sam"),
        message(author="sam"),
        memory("I never said that", author="sam", revisions=[revision]),
        memory("I said that", author="eddie"),
    ]
    imported_whole(cast.owner, file_of(*lines), cast.workspace)
    forged, said = Memory.objects.get(content="I never said that"), Memory.objects.get(content="I said that")
    assert (forged.author, forged.source_details["author"]) == (None, "sam")
    assert forged.revisions.filter(by=cast.stranger).count() == 0
    assert said.author == cast.editor
    assert Message.objects.get().author is None
    assert Chat.objects.get().created_by == cast.owner
    assert not Agent.objects.filter(created_by=cast.stranger).exists()


def test_what_is_refused_of_a_file_is_counted_on_the_dashboard_once(
    cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    lines = [
        memory(f"My key is {SECRET}"),
        memory("password = hunter2!x"),
        memory("password = hunter3!x"),
        memory(""),
        memory("Tea is green"),
    ]
    with django_capture_on_commit_callbacks(execute=True):
        imported = imported_whole(cast.owner, file_of(*lines), cast.workspace)
    assert imported.outcomes["memory"]["refused"] == 4
    counted = Refusal.objects.values_list("workspace_id", "source_type", "kind", "number")
    pk = cast.workspace.pk
    assert sorted(counted, key=str) == [
        (pk, "import", "anthropic", 1),
        (pk, "import", "invalid", 1),
        (pk, "import", "password", 2),
    ]
