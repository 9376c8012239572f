"""Quotas of one person: by every route, in background work, in imports; charged to the creator."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from django.utils.functional import Promise

from chat.chats.services import create_chat, delete_chat
from chat.import_export import import_jobs, upload_formats
from chat.models import Chat, ToolCall, ToolOutcome
from chat.models.imports import Import, ImportStatus
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memories import assets, tasks
from memories.models import Asset, Memory
from memories.writing import changing, gate
from memories.writing.extraction_jobs import queue_extraction
from memoryhub.localization import NUMBER, SENTENCES_END
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import (
    make_asset,
    make_chat,
    make_document,
    make_memory,
    make_message,
    make_user,
)
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from tests.rollback import rolled_back
from workspaces.access import default_workspace
from workspaces.actions.workspaces import create_workspace
from workspaces.documents import documents
from workspaces.models import Membership, Role, User, Workspace
from workspaces.quotas import SENTENCES, QuotaReached, charge, quota_of, require_room

pytestmark = pytest.mark.django_db
NOW = timezone.now
NAMES = ("Anna", "Boris", "Clara", "Dmitri", "Elena", "Farid", "Greta", "Hugo")


@pytest.fixture(autouse=True)
def _few(settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path
    settings.QUOTAS = {"workspaces": 2, "chats": 2, "memories": 2, "bytes": 100}


def say(number: int) -> str:
    return f"{NAMES[number]} owns a boat"


def fill(person: User, workspace: Workspace) -> None:
    """Create as much of everything as one person may have."""
    for number in range(2):
        create_workspace(name=f"Place {number}", by=person)
        create_chat(workspace=workspace, by=person, now=NOW())
        memory = make_memory(say(number), person, workspace)
    make_asset(memory, b"x" * 100)


DOORS: dict[str, tuple[str, dict[str, Any], type]] = {
    "a workspace's page": ("/workspaces/", {"name": "One more"}, Workspace),
    "the REST door of workspaces": ("/chat/api/workspaces", {"name": "One more"}, Workspace),
    "a chat's page": ("/workspaces/{ws}/chats/", {"content": "Hello"}, Chat),
    "the REST door of chats": ("/chat/api/chats", {"workspace_id": "{ws}"}, Chat),
    "a memory's page": ("/workspaces/{ws}/memories/add/", {"new-content": say(3)}, Memory),
    "the REST door of memories": ("/chat/api/workspaces/{ws}/memories", {"content": say(3)}, Memory),
    "the second REST door of memories": (
        "/api/v1/memories",
        {"key": "boat", "value": say(3)},
        Memory,
    ),
    "a file's page": ("/workspaces/{ws}/memories/{mem}/assets/", {}, Asset),
    "an import's page": ("/imports/", {}, Import),
}


def test_the_sentence_names_the_limit_and_what_to_do(cast: Cast) -> None:
    fill(cast.editor, cast.workspace)
    said = {}
    for what in ("workspaces", "chats", "memories", "bytes"):
        with pytest.raises(QuotaReached) as refused:
            require_room(what, cast.editor)
        assert (refused.value.status, refused.value.code) == (409, "quota")
        said[what] = refused.value.message
    assert said["workspaces"] == (
        "You have made 2 of the 2 workspaces allowed here. Delete one you no longer need, or ask your "
        "administrator for more."
    )
    assert "You have 2 of the 2 chats" in said["chats"]
    assert "You have 2 of the 2 memories" in said["memories"] and "Forget some for good" in said["memories"]
    assert "take up 100\xa0bytes of the 100\xa0bytes allowed" in said["bytes"]
    # A stopped import stores its sentence in English, which is translated for the reader.
    sentences = {NUMBER.sub("%s", each) for text in said.values() for each in SENTENCES_END.split(text)}
    marked = [text for pair in SENTENCES.values() for text in pair]
    assert all(isinstance(text, Promise) for text in marked)
    assert sentences <= {str(text) for text in marked}


def test_whoever_made_it_is_charged_and_nobody_else(cast: Cast) -> None:
    """A workspace's owner is not charged, nor one added as owner: others could exhaust their quota."""
    default_workspace(cast.editor)
    assert quota_of(cast.editor, "workspaces").used == 0
    fill(cast.editor, cast.workspace)
    for place in Workspace.objects.filter(made_by=cast.editor):
        Membership.objects.create(workspace=place, user=cast.owner, role=Role.OWNER)
    for what in ("workspaces", "chats", "memories", "bytes"):
        require_room(what, cast.owner)
        require_room(what, None)
        assert quota_of(cast.owner, what).used == 0
    assert quota_of(cast.editor, "bytes").in_words() == "100\xa0bytes of 100\xa0bytes in files"
    # Imported under somebody's name, it counts against who imports it.
    assert charge("memories", cast.owner, cast.editor) == cast.owner.pk
    with pytest.raises(QuotaReached):
        charge("memories", cast.editor, cast.owner)


def test_what_is_deleted_counts_until_it_is_gone(cast: Cast) -> None:
    fill(cast.editor, cast.workspace)
    chat, memory = Chat.objects.first(), Memory.objects.first()
    assert chat and memory
    delete_chat(chat, by=cast.editor, now=NOW())
    gate.delete_memory(memory, by=cast.editor, now=NOW())
    for what in ("chats", "memories"):
        with pytest.raises(QuotaReached):
            require_room(what, cast.editor)
    changing.restore_memory(memory, by=cast.editor, now=NOW())
    chat.delete()
    memory.delete()
    create_chat(workspace=cast.workspace, by=cast.editor, now=NOW())
    make_memory(say(5), cast.editor, cast.workspace)


def test_nought_is_no_limit_and_superusers_have_none(cast: Cast, settings: Any) -> None:
    root = make_user("root", is_superuser=True)
    fill(cast.editor, cast.workspace)
    for number in range(4):
        create_workspace(name=f"Place {number}", by=root)
    settings.QUOTAS = dict.fromkeys(settings.QUOTAS, 0)
    create_workspace(name="One more", by=cast.editor)
    make_memory(say(4), cast.editor, cast.workspace)
    assert quota_of(cast.editor, "workspaces").in_words() == "3 workspaces, no limit"


def test_who_is_full_can_still_change_what_is_there(cast: Cast) -> None:
    make_memory(say(0), cast.editor, cast.workspace, key="boat")
    make_memory(say(1), cast.editor, cast.workspace)

    def save(content: str, **fields: Any) -> gate.Saved:
        draft = gate.Draft(content=content, workspace=cast.workspace, author=cast.editor, **fields)
        return gate.save_memory(draft, by=cast.editor, now=NOW())

    assert not save(say(2), key="boat").created
    assert save(say(1)).duplicate
    with pytest.raises(QuotaReached):
        save(say(3))
    with pytest.raises(QuotaReached):  # a proposal is a row as well
        save(say(3), for_review=True)


def test_every_door_says_so_and_stores_nothing(cast: Cast) -> None:
    fill(cast.editor, cast.workspace)
    memory = Memory.objects.latest("pk")
    for door, (path, body, table) in rolled_back(DOORS.items()):
        path = path.format(ws=cast.workspace.public_id, mem=memory.public_id)
        body = {name: value.format(ws=cast.workspace.public_id) for name, value in body.items()}
        if table in (Asset, Import):
            body["file"] = SimpleUploadedFile("note.txt", b"Anna owns a boat")
        default_workspace(cast.editor)  # created on the first visit, and charged to no one
        before = table._default_manager.count()
        client = Client()
        client.force_login(cast.editor)
        if "/api/" in path:
            answer = client.post(path, json.dumps(body), content_type="application/json")
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (409, "quota"), error
            said = error["message"]
        else:
            answer = client.post(path, body)
            assert answer.status_code in (409, 422), door
            said = answer.content.decode()
        assert "allowed here" in said and "ask your administrator" in said, door
        assert table._default_manager.count() == before, door
        assert list(upload_formats.stored_imports()) == [], door


def test_a_file_that_no_longer_fits_leaves_nothing_behind(cast: Cast) -> None:
    memory = make_memory(say(0), cast.editor, cast.workspace)
    make_asset(memory, b"x" * 60)
    with pytest.raises(QuotaReached):
        make_asset(memory, b"y" * 41)
    assert len(list(assets.ASSET_FILES.names())) == 1
    make_asset(memory, b"y" * 40)
    assert quota_of(cast.editor, "bytes").used == 100


def test_an_upload_counts_while_it_lies_there(cast: Cast) -> None:
    def upload(size: int) -> Import:
        pieces = [b'["' + b"x" * (size - 4) + b'"]']
        return import_jobs.begin(cast.editor, workspace=None, filename="some.json", pieces=pieces, now=NOW())

    first = upload(80)
    with pytest.raises(QuotaReached):
        upload(21)
    assert list(upload_formats.stored_imports()) == [first.public_id]
    import_jobs.delete(first)
    assert upload(21).size == 21


def test_what_is_noticed_in_a_chat_over_the_limit_is_not_stored(cast: Cast) -> None:
    """The job ends without an error, so that it is not retried."""
    fill(cast.editor, cast.workspace)
    chat = Chat.objects.latest("pk")
    question = make_message(chat, "My project deadline is March 15 and I am vegetarian.")
    answer = make_message(chat, "Noted.", "assistant", reply_to=question)
    extraction = queue_extraction(
        workspace=chat.workspace, user=cast.editor, chat_id=chat.public_id, message_id=answer.public_id,
        source_type="auto_chat", now=NOW(),
    )  # fmt: skip
    tasks.extract_turn(extraction_id=extraction.pk)
    extraction.refresh_from_db()
    assert (extraction.status, extraction.stored_count, extraction.refused_count) == ("done", 0, 2)
    assert Memory.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_turn_goes_on_whose_tool_could_not_save(scripted_model: ScriptedOpenAI) -> None:
    chat = make_chat(make_user("olive", memory_default=True))
    for number in range(2):
        make_memory(say(number), chat.created_by)
    scripted_model.script(Answer(calls=[Call("x_save_memory", {"content": say(3)})]), Answer("I could not."))
    turn = begin_turn(chat, content="Keep this", by=chat.created_by, now=NOW())
    assert wait_until_idle(20)
    turn.answer.refresh_from_db()
    assert turn.answer.content == "I could not."
    assert ToolCall.objects.get().outcome == ToolOutcome.REFUSED
    assert "of the 2 memories" in scripted_model.chat_requests[-1].tool_results[0]
    assert Memory.objects.count() == 2


def test_many_at_once_are_stored_as_far_as_there_is_room(cast: Cast, settings: Any) -> None:
    drafts = [gate.Draft(content=say(n), workspace=cast.workspace, author=cast.editor) for n in range(3)]
    with pytest.raises(QuotaReached):
        save_memories(drafts, by=cast.editor, now=NOW())
    assert Memory.objects.count() == 0, "a batch is stored whole or not at all"
    assert [saved.created for saved in save_memories(drafts[:2], by=cast.editor, now=NOW())] == [True] * 2
    assert [saved.duplicate for saved in save_memories(drafts[:2], by=cast.editor, now=NOW())] == [True] * 2


@pytest.fixture
def importing(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Create an import of eight statements that was previewed and started."""
    monkeypatch.setattr(import_jobs, "_queue", lambda imported: None)
    content = json.dumps([say(number) for number in range(8)]).encode()
    imported = import_jobs.begin(
        cast.editor, workspace=cast.workspace, filename="", pieces=[content], now=NOW()
    )
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.CHECKED
    imported.refresh_from_db()
    return import_jobs.start(imported, now=NOW())


@pytest.fixture
def roomy(settings: Any) -> None:
    settings.QUOTAS = settings.QUOTAS | {"bytes": 10_000}


def test_an_import_stops_says_why_and_goes_on_when_there_is_room(
    roomy: None, importing: Import, settings: Any
) -> None:
    assert import_jobs.advance(importing.pk, seconds=60) == import_jobs.JobResult.FULL
    importing.refresh_from_db()
    assert importing.status == ImportStatus.STOPPED
    assert "of the 2 memories allowed here" in importing.error
    assert list(upload_formats.stored_imports()) == [importing.public_id]
    assert not Memory.objects.exists()
    settings.QUOTAS = settings.QUOTAS | {"memories": 8}
    assert (
        import_jobs.advance(import_jobs.resume(importing, now=NOW()).pk, seconds=60)
        == import_jobs.JobResult.DONE
    )
    assert Memory.objects.count() == 8


def test_an_imported_archive_is_charged_for_its_chats_and_workspaces(cast: Cast, monkeypatch: pytest.MonkeyPatch,
                                                                     settings: Any) -> None:  # fmt: skip
    settings.QUOTAS = settings.QUOTAS | {"bytes": 100_000}
    monkeypatch.setattr(import_jobs, "_queue", lambda imported: None)
    for what, lines in (
        ("workspaces", [{"type": "workspace", "id": f"w{n}", "name": f"Place {n}"} for n in range(3)]),
        (
            "chats",
            [{"type": "chat", "id": f"c{n}", "title": f"Chat {n}", "workspace": "w0"} for n in range(3)],
        ),
    ):
        place = [] if what == "workspaces" else [{"type": "workspace", "id": "w0", "name": "Place"}]
        records = [{"type": "memoryhub", "version": 1}, *place, *lines]
        content = "\n".join(json.dumps(record) for record in records).encode()
        person = make_user()
        imported = import_jobs.begin(person, workspace=None, filename="", pieces=[content], now=NOW())
        import_jobs.advance(imported.pk, seconds=60)
        imported.refresh_from_db()
        import_jobs.start(imported, now=NOW())
        assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.FULL, what
        imported.refresh_from_db()
        assert f"2 {what} allowed here" in imported.error
        settings.QUOTAS = settings.QUOTAS | {what: 3}
        assert (
            import_jobs.advance(import_jobs.resume(imported, now=NOW()).pk, seconds=60)
            == import_jobs.JobResult.DONE
        ), what


def test_one_question_to_the_database_and_none_without_a_limit(
    cast: Cast, settings: Any, django_assert_num_queries: Any
) -> None:
    for what, queries in (("workspaces", 1), ("chats", 1), ("memories", 1), ("bytes", 5)):
        with django_assert_num_queries(queries):
            require_room(what, cast.editor)
    settings.QUOTAS = dict.fromkeys(settings.QUOTAS, 0)
    with django_assert_num_queries(0):
        require_room("memories", cast.editor)


def test_who_is_far_from_the_limit_is_counted_now_and_then(
    cast: Cast, settings: Any, django_assert_num_queries: Any
) -> None:
    """A sixteenth of the remaining quota passes uncounted; near the limit every one is counted."""
    settings.QUOTAS = settings.QUOTAS | {"memories": 40}
    with django_assert_num_queries(1):  # room for 39 more: two pass
        for _ in range(3):
            require_room("memories", cast.editor)
    with django_assert_num_queries(1):
        require_room("memories", cast.editor)
    for number in range(4):
        make_memory(say(number), cast.editor, cast.workspace)
    settings.QUOTAS = settings.QUOTAS | {"memories": 19}  # room for 15: none passes
    with django_assert_num_queries(0):
        require_room("memories", cast.editor)  # the allowance left from the last count
    for _ in range(3):
        with django_assert_num_queries(1):
            require_room("memories", cast.editor)


def test_who_brings_a_newer_file_is_charged_for_it(cast: Cast, settings: Any) -> None:
    settings.QUOTAS = settings.QUOTAS | {"bytes": 1000}
    document = make_document(cast.owner, cast.workspace, "x" * 10, embedded=False)
    for who, size in ((cast.editor, 600), (cast.editor, 300)):
        documents.replace_text(document, text="y" * size, by=who, now=NOW())
    assert [quota_of(who, "bytes").used for who in (cast.owner, cast.editor)] == [10, 900]
    with pytest.raises(QuotaReached):
        documents.replace_text(document, text="z" * 101, by=cast.editor, now=NOW())
