"""Imports of ChatGPT, Claude and plain lists, and of hostile files."""

import io
import json
import zipfile
from datetime import UTC, datetime
from typing import Any

import pytest
from django.utils import timezone

from chat.import_export import import_jobs
from chat.models import Chat, Message
from chat.models.imports import (
    Import,
    ImportKind,
    ImportStatus,
    Outcome,
)
from memories.models import Memory, Scope
from memories.writing.gate import delete_memory
from memoryhub.errors import DomainError, Invalid, TooLarge
from tests.chat.import_export.test_exchange import imported_whole, uploaded
from tests.conftest import Cast
from tests.factories import make_memory
from workspaces.access import default_workspace

pytestmark = pytest.mark.django_db
SECRET = "sk-ant-api03-" + "Ab1" * 30


def gpt_node(
    name: str, parent: str | None, role: str, text: Any, at: float | None = 1_700_000_000.5, **more: Any
) -> Any:
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    message = {
        "id": name,
        "author": {"role": role},
        "create_time": at,
        "content": content,
        "recipient": "all",
    }
    return {"id": name, "parent": parent, "children": [], "message": message | {"metadata": {}} | more}


def gpt_conversation(**more: Any) -> dict[str, Any]:
    """Return a tree with a system root, an edited question (two branches), a tool call and a hidden message."""
    nodes = [
        {"id": "root", "parent": None, "children": ["sys"], "message": None},
        gpt_node("sys", "root", "system", "You are ChatGPT"),
        gpt_node("old", "sys", "user", "An abandoned question"),
        gpt_node("q1", "sys", "user", "I am vegetarian and my project deadline is March 15. What can I cook?"),
        gpt_node("hid", "q1", "assistant", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        gpt_node("call", "hid", "assistant", {"content_type": "code", "text": "search()"}, recipient="browser"),
        gpt_node("tool", "call", "tool", "results"),
        gpt_node("a1", "tool", "assistant", "A lentil stew.", 1_700_000_010.0, metadata={"model_slug": "gpt-4o"}),
        gpt_node(
            "q2", "a1", "user",
            {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "And this?"]}, None,
        ),
        gpt_node("a2", "q2", "assistant", "A pumpkin."),
    ]  # fmt: skip
    mapping = {node["id"]: node for node in nodes}
    given = {
        "conversation_id": "c-1",
        "title": "Dinner",
        "create_time": 1_700_000_000.0,
        "update_time": 1_700_000_100.0,
    }
    return given | {"mapping": mapping, "current_node": "a2"} | more


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def zipped(**files: Any) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, bytes) else as_json(content))
    return out.getvalue()


def test_a_chatgpt_conversation_becomes_a_private_chat_and_proposes_what_was_said_of_oneself(
    cast: Cast,
) -> None:
    imported = imported_whole(
        cast.editor, as_json([gpt_conversation()]), cast.workspace, "conversations.json"
    )
    assert imported.kind == ImportKind.CHATGPT
    chat = Chat.objects.get()
    assert (chat.title, chat.is_private, chat.created_by, chat.workspace) == (
        "Dinner",
        True,
        cast.editor,
        cast.workspace,
    )
    assert chat.created_at == datetime.fromtimestamp(1_700_000_000, UTC)
    said = [(m.role, m.content, m.model, m.author) for m in chat.messages.all()]
    assert said == [
        ("user", "I am vegetarian and my project deadline is March 15. What can I cook?", "", cast.editor),
        ("assistant", "A lentil stew.", "gpt-4o", None),
        ("user", "And this?", "", cast.editor),
        ("assistant", "A pumpkin.", "", None),
    ]
    first, answer = chat.messages.all()[:2]
    assert answer.reply_to == first and answer.created_at == datetime.fromtimestamp(1_700_000_010, UTC)
    memories = Memory.objects.order_by("pk")
    assert [m.content for m in memories] == ["I am vegetarian", "My project deadline is March 15"]
    memory = memories[0]
    assert (memory.scope, memory.owner, memory.workspace) == (
        Scope.USER,
        cast.editor,
        default_workspace(cast.editor),
    )
    assert (memory.source_type, memory.source_message_id) == ("import", first.public_id)
    assert memory.created_at == first.created_at
    assert (
        not Memory.objects.visible_to(cast.owner).exists()
        and not Chat.objects.visible_to(cast.owner).exists()
    )


def test_a_later_export_adds_what_is_new_and_nothing_twice(cast: Cast) -> None:
    imported_whole(cast.editor, as_json([gpt_conversation()]), cast.workspace)
    delete_memory(Memory.objects.get(content="I am vegetarian"), by=cast.editor, now=timezone.now())
    longer = gpt_conversation(current_node="q3")
    longer["mapping"]["q3"] = gpt_node("q3", "a2", "user", "Thanks. My dog is called Rex.")
    for _ in range(2):
        imported_whole(cast.editor, as_json([longer]), cast.workspace)
    assert [m.content for m in Chat.objects.get().messages.all()][-2:] == [
        "A pumpkin.",
        "Thanks. My dog is called Rex.",
    ]
    assert Message.objects.count() == 5
    live = Memory.objects.live().order_by("pk").values_list("content", flat=True)
    assert list(live) == ["My project deadline is March 15", "My dog is called Rex"]


def claude_conversation() -> dict[str, Any]:
    def message(uuid: str, sender: str, text: str, parent: str = "", **more: Any) -> dict[str, Any]:
        at = "2025-05-01T10:00:00.123456Z"
        return {
            "uuid": uuid,
            "sender": sender,
            "text": text,
            "created_at": at,
            "parent_message_uuid": parent,
            **more,
        }

    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Hello Mona."},
        {"type": "tool_use"},
    ]
    return {
        "uuid": "conv-1",
        "name": "Greeting",
        "created_at": "2025-05-01T10:00:00Z",
        "updated_at": "2025-05-01T11:00:00Z",
        "chat_messages": [
            message("m1", "human", "My name is Mona.", "00000000-0000-4000-8000-000000000000"),
            message("m2", "assistant", "unsupported block", "m1", content=blocks),
            message("m3", "human", "An abandoned branch", "m2"),
            message("m4", "human", "I prefer tea", "m2", content=[]),
        ],
    }


def test_claudes_conversations_and_memories_are_read(cast: Cast) -> None:
    memory = {
        "conversations_memory": "**Work context**\n\nMona leads the Apollo project. She prefers short answers."
        "\n- Lives in Porto",
        "project_memories": {"p-1": "The launch is in May."},
        "account_uuid": "a-1",
    }
    data = zipped(
        **{"conversations.json": [claude_conversation()], "memories.json": [memory], "users.json": [{}]}
    )
    imported = imported_whole(cast.viewer, data, None, "claude.zip")
    assert imported.kind == ImportKind.CLAUDE
    chat = Chat.objects.get()
    assert chat.workspace == default_workspace(cast.viewer) and chat.is_private
    assert [m.content for m in chat.messages.all()] == ["My name is Mona.", "Hello Mona.", "I prefer tea"]
    contents = set(Memory.objects.filter(owner=cast.viewer).values_list("content", flat=True))
    assert contents >= {
        "Mona leads the Apollo project.",
        "She prefers short answers.",
        "Lives in Porto",
        "The launch is in May.",
    }


LIST = [
    "Olive lives in Lisbon",
    {
        "content": "Rufus weighs 12 kilos",
        "category": "fact",
        "tags": ["dog"],
        "importance": 0.8,
        "unknown": 1,
    },
    "olive lives in lisbon.",
    f"The key is {SECRET}",
    {"content": "x" * 2001},
    {"content": 5},
    "The roof leaks",
]


def rows_of(imported: Import) -> list[tuple[int, str, str]]:
    return list(imported.rows.values_list("number", "outcome", "reason"))


def test_a_list_is_previewed_before_anything_is_stored_and_then_becomes_what_was_said(cast: Cast) -> None:
    known = make_memory("The roof leaks", cast.owner, cast.workspace)
    imported = uploaded(cast.editor, as_json(LIST), cast.workspace, "list.json")
    assert list(Memory.objects.all()) == [known]
    assert imported.foreseen == {"memory": {"new": 2, "update": 0, "duplicate": 2, "refused": 3}}
    rows = {row.number: row for row in imported.rows.all()}
    assert rows[3].same_as == 1 and rows[7].duplicate_of == known.public_id
    assert rows[4].reason == "secret: content"
    assert "2,001" in rows[5].reason and "must be text" in rows[6].reason
    import_jobs.start(imported, now=timezone.now())
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.DONE
    imported.refresh_from_db()
    assert imported.outcomes == imported.foreseen
    made = Memory.objects.exclude(pk=known.pk).order_by("pk")
    assert [(m.content, m.source_type, m.author, m.scope) for m in made] == [
        ("Olive lives in Lisbon", "import", cast.editor, "workspace"),
        ("Rufus weighs 12 kilos", "import", cast.editor, "workspace"),
    ]
    assert (made[1].category, made[1].tags, made[1].importance) == ("fact", ["dog"], 0.8)


def test_lists_of_several_kinds(cast: Cast) -> None:
    for data in (
        b"\xef\xbb\xbf- Olive lives in Lisbon\n\n* Rufus weighs 12 kilos\n",
        b'{"content": "Olive lives in Lisbon"}\n{"content": "Rufus weighs 12 kilos"}\n',
        as_json(["Olive lives in Lisbon", "Rufus weighs 12 kilos"]),
    ):
        imported_whole(cast.editor, data, cast.workspace)
        assert set(Memory.objects.values_list("content", flat=True)) == {
            "Olive lives in Lisbon",
            "Rufus weighs 12 kilos",
        }
        imported_whole(cast.editor, data, cast.workspace)
        assert Memory.objects.count() == 2
        Memory.objects.all().delete()


def test_a_known_key_is_said_to_change_its_memory_and_does(cast: Cast) -> None:
    memory = make_memory("Tea", cast.owner, cast.workspace, key="drink")
    data = as_json([{"content": "Coffee", "key": "drink"}])
    imported = uploaded(cast.editor, data, cast.workspace)
    row = imported.rows.get()
    assert (row.outcome, row.duplicate_of) == (Outcome.UPDATE, memory.public_id)
    import_jobs.start(imported, now=timezone.now())
    import_jobs.advance(imported.pk, seconds=60)
    memory.refresh_from_db()
    assert memory.content == "Coffee" and Memory.objects.count() == 1


def bomb() -> bytes:
    return zipped(**{"conversations.json": b'[{"mapping": {}, "x": "' + b"0" * 6 * 2**20 + b'"}]'})


HOSTILE = {
    "nothing": b"",
    "blank": b"  \n\n",
    "binary": b"\x89PNG\r\n\x1a\n\x00\x00",
    "an empty array": b"[]",
    "another array": b"[1, 2]",
    "another object": b'{"a": 1}',
    "cut off": as_json([gpt_conversation()])[:-200],
    "nested": b'[{"mapping": ' + b"[" * 5000 + b"]" * 5000 + b"}]",
    "nested deeper": b"[" * 3_000_000,
    "a huge number": b'[{"content": ' + b"9" * 10_000 + b"}]",
    "a newer version": b'{"type": "memoryhub", "version": 2}\n',
    "a zip of others": zipped(**{"a.txt": b"x"}),
    "half a zip": zipped(**{"conversations.json": [gpt_conversation()]})[:200],
    "a zip bomb": bomb(),
}


def test_hostile_file_is_refused_with_a_reason_and_not_kept(cast: Cast, settings: Any, tmp_path: Any) -> None:
    for name, data in HOSTILE.items():
        settings.IMPORT_MAX_BYTES = 2**20 * (4 if name == "nested deeper" else 1)
        try:
            imported = uploaded(cast.editor, data, cast.workspace)
        except DomainError as error:
            assert isinstance(error, Invalid | TooLarge) and error.message, name
            assert not Import.objects.exists(), name
        else:
            assert imported.status == ImportStatus.FAILED and imported.error, name
            imported.delete()
        assert not Memory.objects.exists() and not Chat.objects.exists(), name
        assert list((tmp_path / "imports").iterdir()) == [], name
