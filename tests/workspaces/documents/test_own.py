"""Personal documents and artifacts: found by their owner in every workspace, and by no one else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from chat.chats.personal_memories import chats_with_personal_data_of, use_personal
from chat.chats.sharing import shareable
from chat.models import Chat, Message, MessageRole, ToolCall
from chat.tools.base import ToolCaller, ToolTrouble
from chat.tools.memory import ToSearch
from chat.tools.memory import search as search_tool
from chat.turns.sources import require_documents, sources_for, still_there
from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from memoryhub.llm.errors import ModelNotLocal
from tests.api import Api
from tests.conftest import Cast
from tests.factories import (
    HERE,
    make_artifact,
    make_chat,
    make_document,
    make_message,
    make_user,
    make_workspace,
)
from tests.workspaces.documents.samples import SAMPLES
from workspaces import artifacts
from workspaces.access import default_workspace
from workspaces.accounts.account_changes import delete_account
from workspaces.data_policy import DataPolicy
from workspaces.documents import documents, files
from workspaces.documents.reading_jobs import text_for_webhook
from workspaces.documents.search import find_passages
from workspaces.models import (
    Artifact,
    AuditEvent,
    Document,
    DocumentPassage,
    Membership,
    PassageVector,
    PassageWord,
    User,
    Workspace,
)
from workspaces.models.documents import ARTIFACT, DOCUMENT

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("files_are_read_here")]
TEXT = "The spare key lies under the blue pot."
ASKED = "Where does the spare key lie?"
Made = Document | Artifact


@pytest.fixture(autouse=True)
def kept(settings: Any, tmp_path: Path) -> None:
    settings.FILES_DIR = tmp_path


@pytest.fixture(params=["document", "artifact"])
def make(request: pytest.FixtureRequest) -> Callable[..., Made]:
    return make_document if request.param == "document" else make_artifact


def kind_of(made: Made) -> tuple[str, int]:
    return ("documents", DOCUMENT) if isinstance(made, Document) else ("artifacts", ARTIFACT)


def move(made: Made, to: Workspace | None, by: User) -> Made:
    if isinstance(made, Document):
        return documents.move(made, to, by=by, now=timezone.now())
    return artifacts.move(made, to, by=by)


def found(by: User, workspace: Workspace) -> list[str]:
    answer = Api(by).post(f"workspaces/{workspace.public_id}/search", {"query": ASKED})
    return [each["id"] for each in answer.json()["results"]]


def index_scopes(made: Made) -> set[int]:
    """Return the scopes under which the index has its words and vectors."""
    kind = kind_of(made)[1]
    rows = [
        model.objects.filter(kind=kind).values_list("place", flat=True)
        for model in (PassageWord, PassageVector)
    ]
    assert all(rows)
    return {place for each in rows for place in each}


def test_it_is_found_by_its_person_everywhere_and_by_nobody_else(
    cast: Cast, client: Client, make: Callable[..., Made]
) -> None:
    mine = make(cast.editor, cast.workspace, TEXT, title="Mine", personal=True)
    other = make_workspace(owner=cast.owner, editor=cast.editor)
    kind = kind_of(mine)[0]
    assert mine.workspace == default_workspace(cast.editor) and index_scopes(mine) == {-cast.editor.pk}
    for place in (cast.workspace, other, default_workspace(cast.editor)):
        assert found(cast.editor, place) == [mine.public_id]
        one = f"workspaces/{place.public_id}/{kind}/{mine.public_id}"
        shown = Api(cast.editor).get(one).json()
        assert (shown["personal"], shown["workspace_id"]) == (True, mine.workspace.public_id)
        assert [each["id"] for each in Api(cast.editor).get(one.rpartition("/")[0]).json()["items"]] == [
            shown["id"]
        ]
    client.force_login(cast.editor)
    page = f"/workspaces/{cast.workspace.public_id}/{kind}/"
    assert (
        b"Only you" in client.get(page).content
        and b"Only you" in client.get(f"{page}{mine.public_id}/").content
    )
    # A member of the owner's workspace may not see them either.
    Membership.objects.create(workspace=mine.workspace, user=cast.owner, role="owner")
    for person in (cast.owner, cast.viewer, cast.stranger):
        client.force_login(person)
        for place in (cast.workspace, mine.workspace):
            one = f"workspaces/{place.public_id}/{kind}/{mine.public_id}"
            answers = [Api(person).get(one), client.get(f"/{one}/"), Api(person).get(f"{one}/versions")]
            assert [each.status_code for each in answers] == [404] * 3
            for refused in (
                Api(person).delete(one),
                Api(person).patch(one, {"personal": False}),
                client.post(f"/{one}/whose/"),
            ):
                assert refused.status_code in ({403, 404} if person == cast.viewer else {404})
            if person != cast.stranger and not (person == cast.viewer and place == mine.workspace):
                assert Api(person).get(one.rpartition("/")[0]).json()["items"] == []
                assert b"Mine" not in client.get(f"/{one.rpartition('/')[0]}/").content
                assert found(person, place) == []
    told = AuditEvent.objects.filter(target=mine.public_id)
    assert told.exists() and not told.exclude(workspace_id="").exists()


def test_a_file_is_brought_for_oneself_over_every_door(cast: Cast, client: Client) -> None:
    address = f"workspaces/{cast.workspace.public_id}/documents"
    theirs = make_document(cast.owner, cast.workspace, TEXT)
    text = {"title": "Keys", "text": TEXT, "personal": True}
    made = Api(cast.editor).post(address, text)
    again = Api(cast.editor).post(address, text)
    assert (made.status_code, again.status_code, again.json()["id"]) == (201, 200, made.json()["id"])
    assert made.json()["personal"] and made.json()["id"] != theirs.public_id
    client.force_login(cast.editor)
    for door in (f"/chat/api/{address}", f"/{address}/"):
        name = "keys.md" if "api" in door else "keys.csv"
        upload = {"file": _file(name), "personal": "true" if "api" in door else "on"}
        assert client.post(door, upload).status_code in (201, 302)
    assert Document.objects.filter(owner=cast.editor).count() == 3
    assert (
        client.post(f"/chat/api/{address}", {"file": _file("keys.md"), "personal": "maybe"}).status_code
        == 422
    )
    refused = Api(cast.viewer).post(address, text)
    assert refused.status_code == 403 and not Document.objects.filter(owner=cast.viewer).exists()
    Workspace.objects.filter(pk=cast.workspace.pk).update(local_only=True)
    assert Api(cast.editor).post(address, text | {"text": "More."}).json()["error"]["code"] == "would_leave"
    mine = Document.objects.filter(owner=cast.editor).first()
    assert mine is not None and text_for_webhook(mine.workspace, mine.public_id) is None


def _file(name: str) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, SAMPLES[name][0])


def turn(chat: Chat, **said: Any) -> tuple[Message, Message]:
    question = make_message(chat, ASKED, **said)
    return question, make_message(chat, "Under it [1].", role=MessageRole.ASSISTANT, reply_to=question)


def given(chat: Chat, user: User, policy: DataPolicy = HERE, **said: Any) -> list[str]:
    question, answer = turn(chat, **said)
    return [
        each.passage.document.title for each in sources_for(answer, question, user, room=2000, policy=policy)
    ]


def test_a_turn_is_given_it_where_nobody_reads_along_or_its_person_let_it_in(
    cast: Cast, client: Client
) -> None:
    mine = make_document(cast.editor, None, TEXT, title="Mine", personal=True)
    chat, alone = (
        make_chat(cast.editor, cast.workspace),
        make_chat(cast.editor, cast.workspace, is_private=True),
    )
    aloud = replace(HERE, personal=False)
    assert given(alone, cast.editor) == ["Mine"] and given(
        alone, cast.editor, only_documents=[mine.public_id]
    )
    assert (
        given(chat, cast.editor, aloud)
        == []
        == given(chat, cast.editor, aloud, only_documents=[mine.public_id])
    )
    assert given(chat, cast.owner) == []
    with pytest.raises(Invalid) as refused:
        require_documents([mine.public_id], chat, cast.editor)
    assert "is personal" in refused.value.fields["documents"]
    with pytest.raises(Invalid) as unknown:
        require_documents([mine.public_id], chat, cast.owner)
    assert "is personal" not in unknown.value.fields["documents"]
    named = make_message(chat, ASKED, only_documents=[mine.public_id])
    assert still_there(named, cast.editor) == []
    use_personal(chat, allowed=True, by=cast.editor)
    require_documents([mine.public_id], chat, cast.editor)
    assert still_there(named, cast.editor) == [mine.public_id] and still_there(named, cast.owner) == []
    question, answer = turn(chat)
    assert len(sources_for(answer, question, cast.editor, room=2000, policy=HERE)) == 1
    path = f"/workspaces/{mine.workspace.public_id}/documents/{mine.public_id}/?passage=0#passage-0"
    for person, sees in ((cast.editor, True), (cast.owner, False), (cast.viewer, False)):
        client.force_login(person)
        html = client.get(f"/chats/{chat.public_id}/transcript/").content.decode()
        assert (escape(path) in html, "Mine" in html) == (sees, sees)
        items = Api(person).get(f"{chat.public_id}/messages").json()["items"]
        assert any(each["sources"] for each in items) is sees
    assert (
        answer.pk not in shareable(chat, chat.created_by).message_ids
        and shareable(chat, chat.created_by).personal == 1
    )
    assert [
        [*chats_with_personal_data_of(person, cast.workspace)] for person in (cast.editor, cast.owner)
    ] == [
        [chat],
        [],
    ]
    # A personal source is used in no one else's turn, nor where local_only forbids it.
    answer.attempt = 2
    assert sources_for(answer, question, cast.editor, room=2000, policy=HERE)
    assert sources_for(answer, question, cast.owner, room=2000, policy=HERE) == []
    assert sources_for(answer, question, cast.editor, room=2000, policy=aloud) == []
    away = replace(HERE, leaves=True)
    assert given(alone, cast.editor, away) == ["Mine"]
    Workspace.objects.filter(pk=mine.workspace_id).update(local_only=True)
    assert given(alone, cast.editor, away) == [] and given(alone, cast.editor) == ["Mine"]
    assert sources_for(answer, question, cast.editor, room=2000, policy=away) == []


def test_tools_and_searches_reach_it_as_far_as_the_chat_does(cast: Cast, make: Callable[..., Made]) -> None:
    mine = make(cast.editor, None, TEXT, personal=True)
    asked = [ToSearch(query=mine.public_id), ToSearch(query="spare key")]
    own = ToolCaller(cast.editor, cast.workspace, "editor", HERE, timezone.now())
    for each in asked:
        said = search_tool(own, each)
        assert "blue pot" in said.text and said.personal and said.count == (each is asked[0])
    Workspace.objects.filter(pk=mine.workspace_id).update(local_only=True)
    others = ToolCaller(cast.owner, cast.workspace, "owner", HERE, timezone.now())
    for caller in (
        others,
        replace(own, policy=replace(HERE, personal=False)),
        replace(own, policy=replace(HERE, leaves=True)),
    ):
        assert "blue pot" not in search_tool(caller, asked[1]).text
        with pytest.raises(ModelNotLocal if caller.policy.leaves else ToolTrouble):
            search_tool(caller, asked[0])
    chat = make_chat(cast.editor, cast.workspace)
    _question, answer = turn(chat)
    ToolCall.objects.create(message=answer, name="x_workspace_search", held_personal=True)
    assert answer.pk not in shareable(chat, chat.created_by).message_ids


def test_it_is_moved_to_oneself_and_to_a_workspace(cast: Cast, make: Callable[..., Made]) -> None:
    made = make(cast.editor, cast.workspace, TEXT)
    other = make_user("max")
    Membership.objects.create(workspace=cast.workspace, user=other, role="editor")
    for person, error in ((other, Forbidden), (cast.viewer, Forbidden), (cast.stranger, Forbidden)):
        with pytest.raises(error):
            move(made, None, person)
    assert found(cast.owner, cast.workspace) == [made.public_id] and index_scopes(made) == {cast.workspace.pk}
    mine = move(made, None, cast.editor)
    assert mine.owner == cast.editor and index_scopes(made) == {-cast.editor.pk}
    assert found(cast.editor, cast.workspace) == [made.public_id] and found(cast.owner, cast.workspace) == []
    with pytest.raises(NotFound):  # with the row as loaded before
        move(made, cast.workspace, cast.owner)
    assert move(mine, None, cast.editor).owner == cast.editor  # the second call changes nothing
    with pytest.raises(NotFound):
        move(mine, make_workspace(owner=cast.stranger), cast.editor)
    with pytest.raises(Forbidden):
        move(mine, make_workspace(owner=cast.owner, viewer=cast.editor), cast.editor)
    second = make_workspace(owner=cast.owner, editor=cast.editor)
    there = move(mine, second, cast.editor)
    assert (there.workspace, there.owner, index_scopes(made)) == (second, None, {second.pk})
    assert found(cast.owner, second) == [made.public_id] and found(cast.editor, cast.workspace) == []
    taken = move(there, None, cast.owner)  # an owner of the workspace may
    assert found(cast.editor, second) == [] and found(cast.owner, cast.workspace) == [made.public_id]
    Workspace.objects.filter(pk=taken.workspace_id).update(local_only=True)
    taken.workspace.refresh_from_db()
    with pytest.raises(Conflict, match="keeps everything on this machine"):
        move(taken, second, cast.owner)


def test_its_page_and_rest_move_it(cast: Cast, client: Client, make: Callable[..., Made]) -> None:
    made = make(cast.editor, cast.workspace, TEXT, title="Plan")
    one = f"workspaces/{cast.workspace.public_id}/{kind_of(made)[0]}/{made.public_id}"
    assert Api(cast.editor).patch(one, {"personal": True, "title": "My plan"}).json()["personal"] is True
    client.force_login(cast.editor)
    shown = client.get(f"/{one}/").content.decode()
    assert "My plan" in shown and f"Everyone in {cast.workspace.name}" in shown
    elsewhere = make_workspace(owner=cast.stranger).public_id
    for unknown in (elsewhere, "ws_", "ws_" + "x" * 24, "\x00"):
        assert client.post(f"/{one}/whose/", {"whose": unknown}).status_code in (400, 404)
    assert Api(cast.owner).get(one).status_code == 404
    moved = client.post(f"/{one}/whose/", {"whose": cast.workspace.public_id}, follow=True)
    assert f"Everyone in {cast.workspace.name} sees “My plan” now." in moved.content.decode()
    assert Api(cast.viewer).get(one).json()["personal"] is False
    for person, chooses in ((cast.owner, True), (cast.viewer, False)):
        client.force_login(person)
        assert (b'name="whose"' in client.get(f"/{one}/").content) is chooses
    assert Api(cast.owner).patch(one, {"personal": "yes"}).status_code == 422


def test_a_citation_of_what_was_taken_back_is_its_owners_alone(cast: Cast) -> None:
    document = make_document(cast.editor, cast.workspace, TEXT, title="Plan")
    chat = make_chat(cast.owner, cast.workspace)
    question, answer = turn(chat)
    assert sources_for(answer, question, cast.owner, room=2000, policy=HERE)
    documents.move(document, None, by=cast.editor, now=timezone.now())
    sees = {
        person.username: any(
            each["sources"] for each in Api(person).get(f"{chat.public_id}/messages").json()["items"]
        )
        for person in (cast.owner, cast.editor, cast.viewer)
    }
    assert sees == {cast.owner.username: False, cast.editor.username: True, cast.viewer.username: False}


def test_the_same_content_is_one_document_of_a_person_and_one_of_a_workspace(cast: Cast) -> None:
    shared, mine = (make_document(cast.editor, cast.workspace, TEXT, personal=own) for own in (False, True))
    assert shared != mine
    for made, to in ((shared, None), (mine, cast.workspace)):
        with pytest.raises(Conflict, match="same content"):
            documents.move(made, to, by=cast.editor, now=timezone.now())
    now = timezone.now()
    documents.delete(mine, by=cast.editor, now=now)
    documents.move(shared, None, by=cast.editor, now=now)
    with pytest.raises(Conflict):
        documents.restore(
            documents.get_document(cast.editor, mine.public_id, or_deleted=True), by=cast.editor, now=now
        )


def test_it_goes_with_its_owner_and_not_with_a_membership(
    cast: Cast, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    mine = make_document(cast.editor, cast.workspace, TEXT, personal=True)
    documents.replace_text(mine, text="Newer.", by=cast.editor, now=timezone.now())
    mine.refresh_from_db()
    drawn = make_artifact(cast.editor, cast.workspace, TEXT, personal=True)
    Membership.objects.get(user=cast.editor, workspace=cast.workspace).delete()
    assert (
        Api(cast.editor).get(f"workspaces/{mine.workspace.public_id}/documents/{mine.public_id}").status_code
        == 200
    )
    with pytest.raises(NotFound):
        find_passages(ASKED, cast.workspace, cast.editor, limit=5, policy=HERE)
    gone = make_document(cast.editor, None, f"{TEXT} Twice.", personal=True)
    assert documents.forget_document(gone, by=cast.editor)["document passages"] == 1
    assert index_scopes(drawn) == {-cast.editor.pk}
    names = [mine.file_name, *mine.versions.values_list("file_name", flat=True)]
    assert set(names) <= set(files.DOCUMENT_FILES.names()) and len(names) == 2
    with django_capture_on_commit_callbacks(execute=True):
        delete_account(cast.editor)
    assert (
        not Document.objects.exists()
        and not DocumentPassage.objects.exists()
        and not Artifact.objects.exists()
    )
    assert not PassageWord.objects.exists() and not PassageVector.objects.exists()
    assert not set(names) & set(files.DOCUMENT_FILES.names())
