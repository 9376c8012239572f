"""Files in a composer: private to their user until the message is sent."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from chat.models import Chat
from tests.api import Api
from tests.conftest import Cast
from tests.factories import HERE, make_chat, make_document, make_workspace
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from workspaces import tasks
from workspaces.access import default_workspace
from workspaces.documents import documents, reading_jobs
from workspaces.documents.search import find_passages
from workspaces.models import (
    AuditEvent,
    Document,
    DocumentPassage,
    Membership,
    PassageWord,
    User,
    Workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("files_are_read_here")]
TEXT = "The merger with Rowan Foods is signed on the ninth of May."
ASKED = "When is the merger with Rowan Foods signed?"


@pytest.fixture(autouse=True)
def kept(settings: Any, tmp_path: Path) -> Path:
    settings.FILES_DIR = tmp_path
    return tmp_path


def upload(person: User, workspace: Workspace, text: str = TEXT, **fields: str) -> Any:
    client = Client()
    client.force_login(person)
    body = {"file": SimpleUploadedFile("merger.md", text.encode()), **fields}
    return client.post(f"/chat/api/workspaces/{workspace.public_id}/documents", body)


def draft(person: User, workspace: Workspace, text: str = TEXT) -> Document:
    made = upload(person, workspace, text, draft="true")
    assert made.status_code == 201 and made.json()["draft"] is True
    document = Document.objects.get(public_id=made.json()["id"])
    reading_jobs.read(document.pk, now=timezone.now())
    document.refresh_from_db()
    return document


def send(person: User, chat: Chat, *ids: str) -> Any:
    said = {"content": ASKED, "documents": list(ids), "stream": False}
    return Api(person).post(f"{chat.public_id}/messages", said)


def found_by(person: User, workspace: Workspace) -> list[str]:
    found = find_passages(ASKED, workspace, person, limit=5, policy=HERE)
    return [each.passage.document.public_id for each in found]


def places_showing(person: User, workspace: Workspace, document: Document) -> list[str]:
    """Return each place of the product that shows this user the document."""
    api, client = Api(person), Client()
    client.force_login(person)
    at, page = f"workspaces/{workspace.public_id}", f"/workspaces/{workspace.public_id}"
    one, word = f"{at}/documents/{document.public_id}", "merger"
    texts = {
        "REST list": api.get(f"{at}/documents"),
        "REST search": api.post(f"{at}/search", {"query": ASKED}),
        "REST": api.get(one),
        "REST content": api.get(f"{one}/content"),
        "page list": client.get(f"{page}/documents/"),
        "page": client.get(f"{page}/documents/{document.public_id}/"),
        "choices": client.get(f"{page}/documents/choices/"),
        "search page": client.get(f"{page}/search/", {"q": "Rowan Foods"}),
        "palette": client.get(f"{page}/palette/", {"q": word}),
        "activity": client.get(f"{page}/activity/"),
    }
    seen = [
        name
        for name, answer in texts.items()
        if answer.status_code == 200
        and (
            answer.streaming
            or any(each in answer.content.decode() for each in (document.public_id, "ninth of May"))
        )
    ]
    return seen + (["search"] if document.public_id in found_by(person, workspace) else [])


def test_a_file_in_a_composer_is_known_to_its_person_alone(cast: Cast) -> None:
    waits = draft(cast.editor, cast.workspace)
    assert (
        waits.passage_count and not PassageWord.objects.filter(ref__in=waits.passages.values("pk")).exists()
    )
    assert places_showing(cast.owner, cast.workspace, waits) == []
    assert places_showing(cast.viewer, cast.workspace, waits) == []
    assert places_showing(cast.editor, cast.workspace, waits) == [
        "REST"
    ]  # where the composer reads its state
    own = default_workspace(cast.editor)
    assert places_showing(cast.editor, own, waits) == []
    for path, body in (("restore", {}), ("forget", {}), ("versions", {"text": "x"})):
        at = f"workspaces/{cast.workspace.public_id}/documents/{waits.public_id}/{path}"
        assert Api(cast.editor).post(at, body).status_code in (403, 404)
    assert not AuditEvent.objects.filter(target=waits.public_id).exists()


def test_nobody_else_sends_or_removes_a_draft(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    waits = draft(cast.editor, cast.workspace)
    at = f"workspaces/{cast.workspace.public_id}/documents/{waits.public_id}"
    assert Api(cast.owner).delete(at).status_code == 404
    chat = make_chat(cast.owner, cast.workspace)
    assert send(cast.owner, chat, waits.public_id).status_code == 422
    elsewhere = make_chat(cast.editor, make_workspace(owner=cast.editor))
    assert send(cast.editor, elsewhere, waits.public_id).status_code == 422
    temporary = make_chat(cast.editor, cast.workspace, is_temporary=True)
    assert send(cast.editor, temporary, waits.public_id).status_code == 422
    Membership.objects.filter(workspace=cast.workspace, user=cast.editor).update(role="viewer")
    assert send(cast.editor, make_chat(cast.editor, cast.workspace), waits.public_id).status_code == 403
    waits.refresh_from_db()
    assert waits.is_draft and waits.owner == cast.editor


def test_taking_a_file_out_removes_row_bytes_and_passages(
    cast: Cast, kept: Path, django_capture_on_commit_callbacks: Any
) -> None:
    before = [each for each in kept.rglob("*") if each.is_file()]
    waits = draft(cast.editor, cast.workspace)
    assert len([each for each in kept.rglob("*") if each.is_file()]) == len(before) + 1
    with django_capture_on_commit_callbacks(execute=True):
        at = f"workspaces/{cast.workspace.public_id}/documents/{waits.public_id}"
        assert Api(cast.editor).delete(at).status_code == 204
    assert not Document.objects.filter(pk=waits.pk).exists()
    assert not DocumentPassage.objects.filter(document=waits.pk).exists()
    assert [each for each in kept.rglob("*") if each.is_file()] == before


@pytest.mark.django_db(transaction=True)
def test_sending_makes_it_the_workspaces_and_the_answer_draws_on_it(
    cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.respond = lambda request: Answer("On the ninth of May [1].")
    waits = draft(cast.editor, cast.workspace)
    answered = send(cast.editor, make_chat(cast.editor, cast.workspace), waits.public_id)
    assert answered.status_code in (200, 201), answered.content
    assert "ninth of May" in str(scripted_model.requests[-1])
    everywhere = (
        "REST list, REST search, REST, REST content, page list, page, choices, search page, palette, activity"
    )
    assert [*places_showing(cast.owner, cast.workspace, waits)] == [*everywhere.split(", "), "search"]
    waits.refresh_from_db()
    assert (waits.owner, waits.is_draft, waits.deleted_at) == (None, False, None)


@pytest.mark.django_db(transaction=True)
def test_sending_in_a_private_chat_keeps_it_for_its_person(
    cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.respond = lambda request: Answer("On the ninth of May [1].")
    waits = draft(cast.editor, cast.workspace)
    chat = make_chat(cast.editor, cast.workspace, is_private=True)
    assert send(cast.editor, chat, waits.public_id).status_code in (200, 201)
    assert places_showing(cast.owner, cast.workspace, waits) == []
    assert "REST list" in places_showing(cast.editor, default_workspace(cast.editor), waits)


def test_the_same_content_twice_is_one_document(cast: Cast) -> None:
    waits = draft(cast.editor, cast.workspace)
    known = make_document(cast.owner, cast.workspace, TEXT)
    sent = documents.publish(waits, cast.workspace, None, by=cast.editor, now=timezone.now())
    assert sent == known and not Document.objects.filter(pk=waits.pk).exists()
    again = upload(cast.editor, cast.workspace, draft="true")
    assert (again.status_code, again.json()["id"], again.json()["draft"]) == (200, known.public_id, False)


def test_drafts_are_removed_after_a_day_and_nothing_else(cast: Cast, settings: Any) -> None:
    settings.PURGE_AFTER_DAYS = 0
    old, new = draft(cast.editor, cast.workspace), draft(cast.editor, cast.workspace, "Another one.")
    deleted = make_document(cast.editor, cast.workspace)
    documents.delete(deleted, by=cast.editor, now=timezone.now() - timedelta(days=9))
    ago = timezone.now() - timedelta(days=1, minutes=1)
    Document.objects.filter(pk=old.pk).update(drafted_at=ago, deleted_at=ago)
    tasks.sweep()
    assert {*Document.objects.values_list("pk", flat=True)} == {new.pk, deleted.pk}
