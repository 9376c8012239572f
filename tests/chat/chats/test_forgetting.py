"""Permanent deletion of a chat, a workspace and an account: what is deleted and what stays."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from chat import tasks
from chat.chats.services import delete_chat, forget_chat, restore_chat
from chat.models import Chat, Compaction, Import, Message, ShortTermMemory, ToolCall
from chat.turns import turn
from chat.turns.services import begin_turn
from memories.forgetting.for_good import forget_memories
from memories.models import Extraction, Memory, Receipt, Tombstone
from memoryhub.errors import Conflict, Forbidden, NotFound
from tests.conftest import Cast
from tests.factories import make_chat, make_key_text, make_memory, make_message, make_user, make_workspace
from tests.fakes.openai_server import HOLD, Answer, ScriptedOpenAI
from tests.raw_search import places_with
from workspaces.access import default_workspace
from workspaces.accounts.account_changes import delete_account, foresee_leaving
from workspaces.actions.workspaces import delete_workspace
from workspaces.models import (
    AuditEvent,
    CommonWord,
    Membership,
    PassageWord,
    PlaceStatistics,
    Role,
    User,
    Workspace,
)

TEXT = "The hull is made of larch"
pytestmark = pytest.mark.django_db


def talk(cast: Cast, by: User | None = None, **fields: Any) -> Chat:
    """Create a chat that has the text in its title, messages, a memory with its excerpt, a receipt and an
    extraction.
    """
    by = by or cast.owner
    chat = make_chat(by, cast.workspace, title=TEXT, **fields)
    question = make_message(chat, TEXT)
    answer = make_message(chat, f"So: {TEXT}", "assistant", reply_to=question)
    remembered = make_memory(
        "Larch is a wood",
        by,
        cast.workspace,
        source_chat_id=chat.public_id,
        source_message_id=question.public_id,
        source_excerpt=f"olive: {TEXT}",
    )
    receipt = Receipt.objects.create(
        message_id=answer.public_id, workspace=cast.workspace, user=by, ranking="hybrid", threshold=0.3
    )
    call = ToolCall.objects.create(message=answer, name="note", arguments={"query": TEXT}, output=TEXT)
    Compaction.objects.create(chat=chat, upto=answer, summary=f"They said: {TEXT}")
    ShortTermMemory.objects.create(
        chat=chat, summary=TEXT, touched_at=timezone.now(), expires_at=timezone.now() + timedelta(hours=1)
    )
    receipt.items.create(memory=remembered, position=1, score=0.5, content=f"Larch: {TEXT}", used=True)
    for noted_under, source_type in ((answer, "auto_chat"), (call, "model")):
        Extraction.objects.create(
            workspace=cast.workspace,
            user=by,
            chat_id=chat.public_id,
            message_id=noted_under.public_id,
            source_type=source_type,
            next_attempt_at=timezone.now(),
        )
    return chat


def test_a_chat_goes_with_all_that_was_noted_of_it_and_its_memories_stay(cast: Cast) -> None:
    chat = talk(cast)
    assert len(places_with(TEXT)) == 7
    report = forget_chat(chat, by=cast.owner, now=timezone.now())
    assert places_with(TEXT) == []
    assert not Extraction.objects.exists()
    memory = Memory.objects.get()
    assert (memory.content, memory.source_chat_id, memory.source_message_id) == ("Larch is a wood", "", "")
    assert not PassageWord.objects.filter(lexeme="hull").exists()
    assert report.removed == {
        "chats": 1, "messages": 2, "receipts": 1, "receipt items": 1, "extractions": 2, "source excerpts": 1,
        "tool calls": 1, "compactions": 1, "short-term memories": 1,
    }  # fmt: skip
    event = AuditEvent.objects.get(verb="chat_forgotten")
    assert (event.target, event.details["messages"]) == (chat.public_id, 2)


def test_its_memories_go_too_where_they_are_ones_own(cast: Cast) -> None:
    chat = talk(cast, cast.editor)
    of_another = make_memory("Said by the owner", cast.owner, cast.workspace, source_chat_id=chat.public_id)
    report = forget_chat(chat, by=cast.editor, now=timezone.now(), memories=True)
    assert list(Memory.objects.all()) == [of_another]
    assert (report.removed["memories"], report.found) == (1, 0)
    assert Tombstone.objects.count() == 1
    chat = talk(cast, cast.editor)
    forget_chat(chat, by=cast.owner, now=timezone.now(), memories=True)
    assert Memory.objects.count() == 1, "an owner of the workspace may forget everybody's"


def test_whose_chat_it_is_not_forgets_nothing(cast: Cast) -> None:
    chat = talk(cast, cast.owner)
    with pytest.raises(Forbidden):
        forget_chat(chat, by=cast.editor, now=timezone.now())
    assert Chat.objects.exists()


def test_a_deleted_chat_is_forgotten_too_and_comes_back_no_more(cast: Cast) -> None:
    now = timezone.now()
    chat = talk(cast)
    delete_chat(chat, by=cast.owner, now=now)
    forget_chat(chat, by=cast.owner, now=now)
    for act in (
        lambda: restore_chat(chat, by=cast.owner, now=now),
        lambda: forget_chat(chat, by=cast.owner, now=now),
        lambda: begin_turn(chat, content="Hello", by=cast.owner, now=now),
    ):
        with pytest.raises((NotFound, Conflict)):
            act()
    assert not Message.objects.exists()


def test_the_purge_reads_deleted_chats_alone(cast: Cast) -> None:
    kept = [Chat(workspace=cast.workspace, created_by=cast.owner) for _ in range(3000)]
    Chat.objects.bulk_create(kept)
    Chat.objects.filter(pk__in=[chat.pk for chat in kept[:20]]).update(deleted_at=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE chat_chat")
    due = Chat.objects.filter(deleted_at__lt=timezone.now()).order_by("deleted_at")
    assert "chat_deleted" in due.select_for_update(skip_locked=True, of=("self",)).explain()


def test_deleted_chats_are_purged_after_their_days(cast: Cast, settings: Any) -> None:
    now = timezone.now()
    old, young = talk(cast), make_chat(cast.owner, cast.workspace)
    delete_chat(old, by=cast.owner, now=now - timedelta(days=31))
    delete_chat(young, by=cast.owner, now=now - timedelta(days=29))
    settings.PURGE_AFTER_DAYS = 0
    assert "0 chats purged" in tasks.sweep()
    settings.PURGE_AFTER_DAYS = 30
    assert "1 chats purged" in tasks.sweep()
    assert list(Chat.objects.all()) == [young]
    assert old.pk not in Chat.objects.values_list("pk", flat=True)
    assert places_with(TEXT) == []
    assert Memory.objects.count() == 1
    assert not Tombstone.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_answer_being_written_leaves_nothing_when_its_chat_is_forgotten(
    scripted_model: ScriptedOpenAI,
) -> None:
    person = make_user(memory_default=True)
    chat = make_chat(person)
    scripted_model.script(Answer("So: ", TEXT, HOLD, " and oak"))
    begin_turn(chat, content=TEXT, by=person, now=timezone.now())
    assert scripted_model.wait_for_requests(1)
    forget_chat(Chat.objects.get(), by=person, now=timezone.now())
    assert turn.wait_until_idle(10)
    assert not Message.objects.exists()
    assert not Extraction.objects.exists()
    assert places_with(TEXT) == []


# A workspace


def test_a_workspace_goes_with_everything_and_says_what(cast: Cast) -> None:
    talk(cast)
    gone = make_memory(TEXT, cast.editor, cast.workspace)
    make_memory(TEXT, cast.editor)
    forget_memories([gone], by=cast.owner, now=timezone.now())
    place = cast.workspace.pk
    PlaceStatistics.objects.create(place=place, kind=1, passage_count=5, counted_at=timezone.now())
    CommonWord.objects.create(place=place, lexeme="larch", kind=1, passage_count=5)
    removed = delete_workspace(cast.workspace, by=cast.owner)
    assert (removed["memories"], removed["chats"], removed["messages"], removed["workspaces"]) == (1, 1, 2, 1)
    assert removed["memory words"] > 2
    assert removed["tombstones"] == 1
    for table in (PlaceStatistics, CommonWord, PassageWord):
        assert not table.objects.filter(place=place).exists()
    assert places_with("Larch is a wood") == []
    assert Memory.objects.get().content == TEXT, "the editor's own memory, in their own workspace, stays"


def test_a_workspace_that_goes_tells_its_owner_nothing_of_what_others_kept_for_themselves(cast: Cast) -> None:
    """A private or temporary chat is not counted either, nor one whose member lets their own memories be used in it."""
    for person, alone in (
        (cast.owner, "is_private"),
        (cast.editor, "is_private"),
        (cast.viewer, "is_temporary"),
    ):
        make_message(make_chat(person, cast.workspace, **{alone: True}), "Nobody else reads this")
    shared = talk(cast, cast.editor)
    memory = make_memory("All read this", cast.owner, cast.workspace)
    for number, person in enumerate((cast.owner, cast.editor, cast.editor)):
        message_id = f"msg_{number:024}"
        receipt = Receipt.objects.create(
            message_id=message_id, workspace=cast.workspace, user=person, ranking="hybrid", threshold=0.3
        )
        receipt.items.create(memory=memory, position=1, score=0.5, content=memory.content, used=True)
        make_key_text(person, cast.workspace)
        Import.objects.create(user=person, workspace=cast.workspace, size=1)
    shared.personal_of.add(cast.editor, cast.viewer)
    other = make_chat(cast.editor, cast.workspace)
    other.personal_of.add(cast.editor, cast.viewer)
    assert set(forget_chat(other, by=cast.owner, now=timezone.now()).removed) == {"chats"}
    assert set(AuditEvent.objects.get(verb="chat_forgotten").details) == {"chats"}

    removed = delete_workspace(cast.workspace, by=cast.owner)
    assert {name: removed[name] for name in ("chats", "messages", "receipts", "receipt items")} == {
        "chats": 2, "messages": 3, "receipts": 1, "receipt items": 1,
    }  # fmt: skip
    assert {name: number for name, number in removed.items() if "API keys" in name or "imports" in name} == {
        "API keys": 1, "imports": 1,
    }  # fmt: skip
    assert not {"extractions", "chat-user relationships"} & set(removed)
    assert not (Chat.objects.exists() or Receipt.objects.exists() or Import.objects.exists())


# An account


def test_what_is_ones_own_goes_and_what_was_shared_stays_without_a_name(cast: Cast) -> None:
    person, home = cast.editor, default_workspace(cast.editor)
    make_memory("Lives at home", person)
    make_memory("Only mine", person, cast.workspace, scope="user")
    shared = make_memory(TEXT, person, cast.workspace)
    alone = make_workspace(owner=person, name="Alone")
    make_memory("In a workspace of one", person, alone)
    shared_chat, private = (
        make_chat(person, cast.workspace),
        make_chat(person, cast.workspace, is_private=True),
    )
    make_message(shared_chat, "Said among others")
    make_message(private, "Said to nobody else")
    plan = foresee_leaving(person)
    assert (set(plan.removed), plan.left, plan.orphaned) == ({home, alone}, [cast.workspace], [])

    removed = delete_account(person)

    assert not User.objects.filter(username="eddie").exists()
    assert set(Workspace.objects.all()) == {cast.workspace}
    for text in ("Lives at home", "Only mine", "In a workspace of one", "Said to nobody else"):
        assert places_with(text) == []
    shared.refresh_from_db()
    assert (shared.content, shared.author) == (TEXT, None)
    shared_chat.refresh_from_db()
    assert shared_chat.created_by == cast.owner
    assert shared_chat.messages.get().author is None
    assert (removed["memories"], removed["workspaces"], removed["users"]) == (3, 2, 1)
    event = AuditEvent.objects.get(verb="account_deleted")
    assert event.target.startswith("usr_")


def test_nobody_leaves_others_without_an_owner(cast: Cast) -> None:
    with pytest.raises(Conflict) as refused:
        delete_account(cast.owner)
    assert refused.value.code == "last_owner"
    assert "Shared" in refused.value.message
    home = default_workspace(cast.owner)
    Membership.objects.create(workspace=home, user=cast.viewer, role=Role.OWNER)
    theirs = make_memory("Said in another's home", cast.viewer, home)
    assert User.objects.filter(username="olive").exists()
    Membership.objects.filter(user=cast.editor).update(role=Role.OWNER)
    delete_account(cast.owner)
    assert Workspace.objects.filter(pk=cast.workspace.pk).exists()
    theirs.refresh_from_db()
    home.refresh_from_db()
    assert (theirs.workspace, home.default_of, home.name) == (home, None, "Formerly personal")
