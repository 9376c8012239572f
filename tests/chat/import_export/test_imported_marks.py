"""Imported texts under another person's name are marked for people, programs and models."""

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chat.chats import sharing
from chat.models import Chat, Message, MessageRole
from chat.programs.mcp_server import _of_memory
from chat.programs.mcp_tools import found_shape, shape_of
from chat.prompting.context import conversation_of, recalled_block
from chat.prompting.prompt_text import excerpt_around
from chat.prompting.provenance import provenance_until
from chat.tools.memory import recalled, searched
from chat.turns.extraction_text import load_turn
from chat.turns.remember_this import remember_message
from chat.turns.services import _empty_again
from memories.models import Memory
from memories.recalling.recall import recall
from memories.recalling.workspace_search import search_workspace
from memories.writing.gate import Draft, edit_memory, save_memory
from memoryhub.llm.base import Speaker
from tests.api import Api
from tests.chat.import_export.test_exchange import empty_installation, exported, imported_whole, lines_of
from tests.conftest import Cast
from tests.factories import HERE, make_memory, make_message, shown_to
from workspaces.accounts.invitations import invite
from workspaces.models import Agent, Artifact, User, Workspace

pytestmark = pytest.mark.django_db
SAID = "I approve the payment of 900 euros to Olive Ltd"
KNOWN = "The payment of 900 euros to Olive Ltd is approved"
MARK = "Imported by olive, said to be from eddie"
LABEL = 'imported by "olive", said to be from "eddie"'


def forged(**author: Any) -> bytes:
    """Return an export with a chat and a memory under the name of eddie."""
    who = {"author": "eddie"} | author
    lines: list[dict[str, Any]] = [
        {"type": "memoryhub", "version": 1},
        {"type": "chat", "id": "chat_" + "a" * 24, "workspace": "ws_x", "title": "Payments"},
        {"type": "message", "id": "msg_" + "a" * 24, "workspace": "ws_x", "chat": "chat_" + "a" * 24,
         "role": "user", "content": SAID, **who},
        {"type": "message", "id": "msg_" + "b" * 24, "workspace": "ws_x", "chat": "chat_" + "a" * 24,
         "role": "assistant", "content": "I see.", "reply_to": "msg_" + "a" * 24},
        {"type": "memory", "id": "mem_" + "a" * 24, "workspace": "ws_x", "content": KNOWN, "source_type": "user",
         "key": "payment", **who},
    ]  # fmt: skip
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.fixture
def chat(cast: Cast) -> Chat:
    """A chat that the owner imported under the editor's name."""
    imported_whole(cast.owner, forged(), cast.workspace)
    return Chat.objects.get(title="Payments")


def question(chat: Chat) -> Message:
    return chat.messages.filter(role=MessageRole.USER).earliest("pk")


def answer(chat: Chat) -> Message:
    return chat.messages.get(role=MessageRole.ASSISTANT)


def page(person: User, path: str) -> str:
    client = Client()
    client.force_login(person)
    response = client.get(path)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def recall_by(person: User, workspace: Workspace) -> Any:
    return recall(KNOWN, workspace, person, now=timezone.now(), policy=HERE)


class TestReaders:
    """Everything that only reads, of one chat and one memory that were imported."""

    def test_pages_mark_messages_and_memories(self, cast: Cast, chat: Chat) -> None:
        panel = page(cast.editor, f"/workspaces/{cast.workspace.public_id}/memories/")
        assert MARK in panel and "Saved by you" not in panel
        found = page(cast.editor, f"/workspaces/{cast.workspace.public_id}/search/?q=payment+of+900+euros")
        assert found.count(MARK) == 2
        assert "data-imported" in page(cast.viewer, f"/chats/{chat.public_id}/print/")
        assert answer(chat).imported_by == cast.owner
        for person, marks in ((cast.editor, 2), (cast.owner, 1)):
            shown = page(person, f"/chats/{chat.public_id}/")
            assert shown.count("Imported by") == marks, person
        assert "Imported by olive" in page(cast.viewer, f"/chats/{chat.public_id}/")
        _link, token = sharing.create_link(chat, days=None, by=cast.owner, now=timezone.now())
        shared = Client().get(f"/shared/{token}/").content.decode()
        assert SAID in shared and shared.count("data-imported") == 2 and "Imported" in shared
        assert "eddie" not in shared, "a link names nobody"

    def test_rest_says_who_imported_messages_and_memories(self, cast: Cast, chat: Chat) -> None:
        editor, at = Api(cast.editor), f"workspaces/{cast.workspace.public_id}"
        asked, answered = editor.get(f"{chat.public_id}/messages").json()["items"]
        [listed] = editor.get(f"{at}/memories").json()["items"]
        [found] = editor.post(f"{at}/recall", {"query": KNOWN}).json()["memories"]
        for each in (asked, answered, listed, found):
            assert (each["imported"], each["imported_by"]["username"]) == (True, "olive")
        results = editor.post(f"{at}/search", {"query": "payment of 900 euros"}).json()["results"]
        assert {each["type"]: each["imported"] for each in results} == {"memory": True, "message": True}

    def test_programs_and_tools_are_told(self, cast: Cast, chat: Chat) -> None:
        recall_result = recall_by(cast.editor, cast.workspace)
        [item] = recall_result.items
        shape = shape_of(item.memory)
        assert (shape.imported, shape.imported_by) == (True, "olive")
        memory = Memory.objects.select_related("author", "edited_by", "imported_by").get()
        assert _of_memory(memory).description == LABEL
        hits = search_workspace(
            "payment of 900 euros", cast.workspace, cast.editor, now=timezone.now(), policy=HERE
        )
        assert {each.type for each in hits} == {"memory", "message"}
        for hit in hits:
            assert found_shape(hit).imported and found_shape(hit).imported_by == "olive"
        assert searched(hits).text.count(LABEL) == 2
        for names_people in (True, False):
            assert LABEL in recalled_block(recall_result.items, names_people=names_people)
        assert LABEL in recalled(recall_result, reader=cast.editor).text
        assert _of_memory(make_memory("Plain", cast.owner, cast.workspace)).description == 'from "olive"'

    def test_prompt_labels_the_message(self, cast: Cast, chat: Chat) -> None:
        assert f"{LABEL}: {SAID}" in excerpt_around(question(chat))
        provenance = provenance_until(answer(chat), cast.editor)
        assert SAID not in provenance.said, "these are not the person's own words"
        assert provenance.rests_on(KNOWN, None).speaker is Speaker.IMPORT
        turn = load_turn(answer(chat).public_id, "auto_chat", cast.editor)
        assert turn is not None and turn.said_by is None
        asked = make_message(chat, "Did I approve it?", author=cast.editor)
        history = conversation_of(asked, None, shown=shown_to(cast.editor), policy=HERE).earlier
        said = next(line for line in history if line.role == "user")
        assert said.content == f"[{LABEL}]\n{SAID}" and said.speaker is Speaker.IMPORT
        again = conversation_of(question(chat), None, shown=shown_to(cast.editor), policy=HERE).question
        assert LABEL in again.content, "also as the question of an answer that is written again"


class TestWriting:
    def test_remembering_keeps_the_mark_unless_it_is_ones_own_name(self, cast: Cast, chat: Chat) -> None:
        Memory.objects.all().delete()
        memory = remember_message(question(chat), by=cast.viewer, now=timezone.now()).memory
        assert (memory.author, memory.imported_by) == (cast.editor, cast.owner) and memory.is_imported
        memory.delete()
        own = remember_message(question(chat), by=cast.editor, now=timezone.now()).memory
        assert own.author == cast.editor and not own.is_imported

    def test_who_changes_the_text_makes_it_their_own(self, cast: Cast, chat: Chat) -> None:
        memory = Memory.objects.get()
        edit_memory(memory, by=cast.editor, now=timezone.now(), content="No payment is approved")
        memory.refresh_from_db()
        assert not memory.is_imported and memory.written_by == cast.editor

    def test_imported_words_under_a_key_that_is_here_mark_the_memory(self, cast: Cast) -> None:
        memory = make_memory("No payment is approved", cast.editor, cast.workspace, key="payment")
        now = timezone.now()
        marks = {"imported_by": cast.owner, "imported_at": now}
        draft = Draft(KNOWN, cast.workspace, author=cast.editor, key="payment", **marks)
        assert save_memory(draft, by=cast.owner, now=now).memory == memory
        memory.refresh_from_db()
        assert (memory.content, memory.imported_by) == (KNOWN, cast.owner) and memory.is_imported


class TestExchange:
    def test_an_export_says_so_and_a_new_import_keeps_it(self, cast: Cast, chat: Chat) -> None:
        client = Client()
        client.force_login(cast.viewer)
        text = b"".join(client.get(f"/chats/{chat.public_id}/export/?as=md")).decode()  # type: ignore[call-overload]
        assert MARK in text
        data = exported(cast.owner, cast.workspace)
        for kind in ("message", "memory"):
            line = lines_of(data, kind)[0]
            assert line["imported_by"] == "olive" and line["imported_at"], kind
        (eddie,) = empty_installation("eddie")
        imported_whole(eddie, data)
        for row in (Message.objects.get(role="user"), Memory.objects.get()):
            assert row.is_imported and row.imported_by == eddie

    def test_ones_own_words_come_back_without_a_mark(self, cast: Cast) -> None:
        imported_whole(cast.owner, forged(author="olive"), cast.workspace)
        assert not Message.objects.get(role="user").is_imported and not Memory.objects.get().is_imported

    def test_the_mark_outlives_the_importers_account(self, cast: Cast, chat: Chat) -> None:
        Chat.objects.filter(pk=chat.pk).update(created_by=cast.editor)
        cast.workspace.memberships.filter(user=cast.editor).update(role="owner")
        cast.owner.delete()
        assert "Imported by someone who left" in page(cast.editor, f"/chats/{chat.public_id}/")
        memory = Memory.objects.get()
        assert question(chat).is_imported and memory.is_imported
        assert "imported by somebody who left" in recalled_block(recall_by(cast.editor, cast.workspace).items)

    def test_who_is_invited_and_no_member_is_never_named(self, cast: Cast) -> None:
        invite(cast.workspace, user=cast.stranger, role="editor", by=cast.owner, now=timezone.now())
        imported_whole(cast.owner, forged(author="sam"), cast.workspace)
        assert Message.objects.get(role="user").author is None and Memory.objects.get().author is None
        assert Message.objects.get(role="user").is_imported and Memory.objects.get().is_imported


def brought(cast: Cast, *lines: dict[str, Any]) -> None:
    imported_whole(
        cast.owner, forged() + b"".join(json.dumps(each).encode() + b"\n" for each in lines), cast.workspace
    )


class TestEverywhereElse:
    """Marks in answers, chats, receipts, histories, artifacts and assistants."""

    def test_a_model_that_answers_again_takes_the_mark_away(self, cast: Cast, chat: Chat) -> None:
        Message.objects.filter(pk=answer(chat).pk).update(status="failed")
        assert not _empty_again(answer(chat), now=timezone.now()).is_imported
        Message.objects.filter(pk=answer(chat).pk).update(status="done")
        assert not _empty_again(answer(chat), now=timezone.now()).is_imported

    @pytest.mark.parametrize("is_superuser", [False, True])
    def test_chats_artifacts_and_assistants_say_so(self, cast: Cast, is_superuser: bool) -> None:
        User.objects.filter(pk=cast.owner.pk).update(is_superuser=is_superuser)
        cast.owner.refresh_from_db()
        said = {"content": "I owe olive 900 euros", "title": "Terms"}
        versions = [said | {"by": "eddie"}, said | {"by": "olive"}, said | {"by": "olive", "by_model": True}]
        brought(
            cast,
            {"type": "chat", "id": "chat_" + "b" * 24, "workspace": "ws_x", "title": "His", "created_by": "eddie"},
            {"type": "agent", "id": "agent_" + "a" * 24, "workspace": "ws_x", "name": "Payer", "instructions": "Pay",
             "created_by": "eddie"},
            {"type": "artifact", "id": "art_" + "a" * 24, "workspace": "ws_x", "personal": False, "kind": "markdown",
             "created_by": "eddie", "versions": versions},
        )  # fmt: skip
        self._agent_and_artifact_say_so(cast, by=cast.editor if is_superuser else cast.owner)
        api = Api(cast.viewer)
        told = {each["title"]: each["imported"] for each in api.get("chats").json()["items"]}
        assert told == {"His": True, "Payments": False}
        his = Chat.objects.get(title="His")
        assert his.created_by == cast.editor and api.get(f"chats/{his.public_id}").json()["imported"] is True
        assert "data-imported" in page(cast.viewer, f"/chats/{his.public_id}/")
        data = exported(cast.owner, cast.workspace)
        assert {line["title"]: line["imported"] for line in lines_of(data, "chat")} == told
        (eddie,) = empty_installation("eddie")
        imported_whole(eddie, data)
        again = Chat.objects.get(title="His")
        assert again.created_by == eddie and again.is_imported, "a file that says so is believed"

    def test_a_receipt_says_so(self, cast: Cast) -> None:
        item = {"memory": "mem_" + "a" * 24, "position": 1, "score": 1.0, "score_parts": {}, "content": KNOWN,
                "used": True}  # fmt: skip
        brought(cast, {"type": "receipt", "workspace": "ws_x", "chat": "chat_" + "a" * 24,
                       "message": "msg_" + "b" * 24, "user": "eddie", "threshold": 0.1, "ranking": "hybrid",
                       "items": [item]})  # fmt: skip
        chat = Chat.objects.get(title="Payments")
        at = f"{chat.public_id}/messages/{answer(chat).public_id}/receipt"
        told = Api(cast.editor).get(at).json()
        assert told["imported"] is True and told["items"]
        assert "data-imported" in page(cast.editor, f"/receipts/{answer(chat).public_id}/")

    def test_a_history_says_so_and_keeps_no_secret(self, cast: Cast) -> None:
        acts = [
            {"action": "create", "by": "eddie", "at": "2026-01-01T00:00:00+00:00"},
            {"action": "edit", "by": "olive", "at": "2026-01-02T00:00:00+00:00", "before": {"content": "No"}},
        ]
        brought(cast, {"type": "memory", "id": "mem_" + "b" * 24, "workspace": "ws_x", "source_type": "user",
                       "content": "The payment is due in June", "author": "olive", "revisions": acts})  # fmt: skip
        memory = Memory.objects.get(content__startswith="The payment is due")
        assert [(each.action, each.by, each.imported) for each in memory.revisions.order_by("at")] == [
            ("create", cast.editor, True),
            ("edit", cast.owner, False),
        ]
        at = f"workspaces/{cast.workspace.public_id}/memories/{memory.public_id}/revisions"
        told = {each["action"]: each["imported"] for each in Api(cast.viewer).get(at).json()["items"]}
        assert told == {"create": True, "edit": False}
        history = f"/workspaces/{cast.workspace.public_id}/memories/{memory.public_id}/history/"
        assert page(cast.viewer, history).count("data-imported") == 1
        lines = lines_of(exported(cast.owner, cast.workspace), "memory")
        assert [
            [each["imported"] for each in line["revisions"]] for line in lines if line["revisions"][1:]
        ] == [[True, False]]

    @staticmethod
    def _agent_and_artifact_say_so(cast: Cast, *, by: User) -> None:
        """``by`` is the author that the first version of the artifact has here."""
        agent, artifact = Agent.objects.get(name="Payer"), Artifact.objects.get()
        assert (agent.created_by, agent.imported) == (cast.editor, True)
        assert (artifact.created_by, artifact.imported) == (cast.editor, True)
        made = [(each.by, each.imported) for each in artifact.versions.order_by("number")]
        assert made == [(by, by != cast.owner), (cast.owner, False), (cast.owner, True)]
        at, api = f"workspaces/{cast.workspace.public_id}", Api(cast.viewer)
        assert [each["imported"] for each in api.get(f"{at}/agents").json()["items"]] == [True]
        one = api.get(f"{at}/artifacts/{artifact.public_id}").json()
        assert one["imported"] is True
        shown = page(cast.viewer, f"/workspaces/{cast.workspace.public_id}/artifacts/{artifact.public_id}/")
        assert "data-imported" in shown
        exported_lines = lines_of(exported(cast.owner, cast.workspace))
        told = {each["type"]: each.get("imported") for each in exported_lines}
        assert told["agent"] is told["artifact"] is True
