"""Exports of other programs as they occur: empty parts, shells, nulls, missing fields, other encodings."""

import copy
import json
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from chat.import_export.import_jobs import refusals
from chat.models import Chat, Message
from chat.models.imports import ImportKind
from memories.models import Memory
from tests.chat.import_export.test_exchange import imported_whole, uploaded
from tests.chat.import_export.test_exchange_foreign import (
    as_json,
    claude_conversation,
    gpt_conversation,
    gpt_node,
    zipped,
)
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
CASES = Path(__file__).parent / "cases"


def imported_case(cast: Cast, name: str) -> list[tuple[str, str]]:
    imported_whole(cast.editor, (CASES / name).read_bytes(), cast.workspace, name)
    return [(each.content, each.model) for each in Message.objects.order_by("pk")]


def test_reported_exports_are_read(cast: Cast) -> None:
    assert ("My ox is Tom", "") in imported_case(cast, "meta_missing.json")
    assert Message.objects.get(role="assistant").model == "gpt-5-thinking"
    assert ("My ram is Vic", "") in imported_case(cast, "no_current.json")
    assert Chat.objects.count() == 2
    said = [text for text, _ in imported_case(cast, "claude_paste.json")]
    assert said[-2:] == ["The mooring fee at Howth is 310 euros a month.", "Thanks for the text."]
    assert not Memory.objects.filter(content__contains="Howth").exists()  # not the person's own words
    imported_case(cast, "empty_first_shard.zip")
    assert Chat.objects.count() == 5


def test_first_entry_decides_nothing_and_what_is_left_out_is_counted_by_reason(
    cast: Cast, client: Client
) -> None:
    shell = {"conversation_id": "c-9", "title": "Shell"}
    odd = [None, {}, shell, gpt_conversation(conversation_id="c-8", mapping={}), {"x": 1}, gpt_conversation()]
    imported = uploaded(cast.editor, as_json(odd), cast.workspace, "conversations.json")
    assert imported.kind == ImportKind.CHATGPT
    assert imported.foreseen["chat"]["new"] == 1 and imported.foreseen["chat"]["refused"] == 2
    assert {(each["kind"], each["reason"], each["count"]) for each in refusals(imported)} == {
        ("chat", "the chat has no messages", 2),
        ("other", "the entry is empty", 2),
        ("other", "entries of this kind are not known here", 1),
    }
    client.force_login(cast.editor)
    page = client.get(reverse("exchange:import", args=[imported.public_id])).content.decode()
    assert "the chat has no messages (2)" in page


def test_chat_without_current_node_takes_its_longest_branch(cast: Cast) -> None:
    conversation = gpt_conversation()
    del conversation["current_node"]
    late = gpt_node("late", "sys", "user", "A short branch that is newer", 1_800_000_000.0)
    conversation["mapping"]["late"] = late
    imported_whole(cast.editor, as_json([conversation]), cast.workspace)
    assert [each.content for each in Message.objects.order_by("pk")][-1] == "A pumpkin."


def test_branch_that_leads_round_in_a_circle_ends(cast: Cast) -> None:
    conversation = copy.deepcopy(gpt_conversation(current_node=None))
    conversation["mapping"]["root"]["parent"] = "a2"
    imported_whole(cast.editor, as_json([conversation]), cast.workspace)
    assert Message.objects.filter(content="A pumpkin.").exists()


def test_claudes_attachments_come_along(cast: Cast) -> None:
    conversation = claude_conversation()
    conversation["chat_messages"][0] |= {
        "attachments": [{"file_name": "lease.txt", "extracted_content": "The rent is 900 euros."}],
        "files": [{"file_name": "photo.png"}],
    }
    imported_whole(cast.editor, as_json([conversation]), cast.workspace)
    first = Message.objects.order_by("pk")[0]
    assert first.content == "My name is Mona.\n\nlease.txt\nThe rent is 900 euros.\n\nphoto.png"


def test_lists_and_json_in_other_encodings_are_read(cast: Cast) -> None:
    text = "José lives in Málaga and has a café\nThe roof over the kitchen leaks\n"
    for code in ("utf-16", "utf-16-le", "latin-1", "utf-8-sig"):
        imported_whole(cast.editor, text.encode(code), cast.workspace, "list.txt")
        assert set(Memory.objects.values_list("content", flat=True)) == set(text.splitlines()), code
        Memory.objects.all().delete()
    imported_whole(cast.editor, json.dumps([gpt_conversation()]).encode("utf-16"), cast.workspace)
    assert Chat.objects.get().title == "Dinner"


def test_headings_and_numbers_are_no_memories(cast: Cast) -> None:
    text = "# About me\n\n1. Olive lives in Lisbon\n2.\nMy pets:\n- Rufus weighs 12 kilos\n---\n"
    imported = imported_whole(cast.editor, text.encode(), cast.workspace, "list.txt")
    assert set(Memory.objects.values_list("content", flat=True)) == {
        "Olive lives in Lisbon",
        "Rufus weighs 12 kilos",
    }
    assert imported.foreseen["other"]["refused"] == 4


def test_statements_and_objects_around_do_not_hide_conversations(cast: Cast) -> None:
    """A list may begin with a string, or be wrapped in an object."""
    for given in (["note", {"content": None}, gpt_conversation()], {"conversations": [gpt_conversation()]}):
        imported = uploaded(cast.editor, as_json(given), cast.workspace, "conversations.json")
        assert (imported.kind, imported.foreseen["chat"]["new"]) == (ImportKind.CHATGPT, 1)


def test_odd_parts_of_an_archive_are_read(cast: Cast) -> None:
    def part(number: int, code: str) -> bytes:
        chat = gpt_conversation(conversation_id=f"c-{number}", title=f"Café {code}")
        return json.dumps([chat], ensure_ascii=False).encode(code)

    files = {
        "conversations-000.json": b"",
        "conversations-001.json": b"null",
        "__MACOSX/conversations.json": b"\0\5\26\7",
        "../../etc/passwd": b"never looked at",
        "a/Conversations (1).json": part(1, "utf-8-sig"),
        "b/conversations_2.json": part(2, "utf-16"),
        "c/conversations.json": part(3, "latin-1"),
    }
    imported_whole(cast.editor, zipped(**files), cast.workspace, "chatgpt.zip")
    titles = set(Chat.objects.values_list("title", flat=True))
    assert titles == {"Café utf-8-sig", "Café utf-16", "Café latin-1"}


def test_tree_that_names_children_alone_or_ends_at_its_root_is_read(cast: Cast) -> None:
    rooted, childish = gpt_conversation(current_node="root"), copy.deepcopy(gpt_conversation())
    childish |= {"conversation_id": "c-2", "current_node": None}
    for name, node in childish["mapping"].items():
        if node["parent"]:
            childish["mapping"][node["parent"]]["children"].append(name)
    for node in childish["mapping"].values():
        del node["parent"]
    imported_whole(cast.editor, as_json([rooted, childish]), cast.workspace)
    assert [chat.messages.count() for chat in Chat.objects.all()] == [4, 4]


def test_names_of_attached_files_and_other_forms_of_messages_come_along(cast: Cast) -> None:
    asked = gpt_conversation()
    asked["mapping"]["q1"]["message"]["metadata"] = {"attachments": [{"name": "lease.pdf"}, None]}
    imported_whole(cast.editor, as_json([asked]), cast.workspace)
    assert Message.objects.order_by("pk")[0].content.endswith("lease.pdf")
    answered = claude_conversation()
    answered["chat_messages"][0] |= {"sender": "user", "content": "I row at Derry.", "text": ""}
    imported_whole(cast.editor, as_json([answered]), cast.workspace)
    assert Message.objects.filter(content="I row at Derry.", role="user").exists()


def test_lists_of_other_programs_are_read(cast: Cast) -> None:
    given = [{"memory": "Mona likes tea"}, {"text": "(2) Ann has a boat"}, "II.", "[x] Olive has a cat"]
    imported_whole(cast.editor, as_json(given), cast.workspace, "list.json")
    assert set(Memory.objects.values_list("content", flat=True)) == {
        "Mona likes tea",
        "Ann has a boat",
        "Olive has a cat",
    }
    memory = {"conversations_memory": None, "project_memories": [{"content": "Apollo ships in May."}]}
    imported_whole(cast.viewer, as_json([memory]), None, "memories.json")
    assert Memory.objects.filter(owner=cast.viewer, content="Apollo ships in May.").exists()
