"""A document is ready with its last vector; until then words find it, and page and REST show the progress."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.api import Api
from tests.conftest import Cast
from tests.factories import make_document
from workspaces import tasks
from workspaces.documents import documents, reading_jobs
from workspaces.models import Document, WebhookEvent
from workspaces.models.documents import DOCUMENT

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("files_are_read_here")]
LONG = "\n\n".join(
    f"# Depot {n}\n\n" + f"The keeper of depot {n} is called Rhiannon. " * 10 for n in range(5)
)


@pytest.fixture(autouse=True)
def ready_documents(settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the documents of webhook events."""
    settings.FILES_DIR = tmp_path
    found: list[str] = []

    def emit(workspace: int, event: str, ids: list[str], *, action: str) -> None:
        assert event == WebhookEvent.DOCUMENT_READY
        found.extend(ids)

    monkeypatch.setattr(reading_jobs, "emit", emit)
    yield found


def test_ready_comes_with_the_last_vector(cast: Cast, client: Client, ready_documents: list[str]) -> None:
    made = make_document(cast.owner, cast.workspace, LONG, embedded=False)
    one = f"workspaces/{cast.workspace.public_id}/documents/{made.public_id}"
    refs = list(made.passages.order_by("number").values_list("pk", flat=True))
    assert len(refs) >= 5
    client.force_login(cast.viewer)
    shares = []
    for ref in refs:
        told_now = Api(cast.viewer).get(one).json()
        listed = Api(cast.viewer).get(f"workspaces/{cast.workspace.public_id}/documents").json()["items"]
        assert told_now == listed[0] and told_now["status"] == "indexing"
        shares.append(told_now["found_by_meaning"])
        for page in ("", f"{made.public_id}/"):
            shown = client.get(f"/workspaces/{cast.workspace.public_id}/documents/{page}").content.decode()
            assert f"So far {round(100 * shares[-1])} % can be found by meaning" in shown
        assert ready_documents == []
        tasks.embed_passages(kind=DOCUMENT, refs=[ref])
    assert shares == pytest.approx([n / len(refs) for n in range(len(refs))])
    ready = Api(cast.viewer).get(one).json()
    assert (ready["status"], ready["found_by_meaning"], ready_documents) == ("ready", 1.0, [made.public_id])
    tasks.embed_passages(kind=DOCUMENT, refs=refs)
    assert ready_documents == [made.public_id], "told once"


def test_what_needs_no_vectors_is_ready_at_once(
    cast: Cast, ready_documents: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unsettled = make_document(cast.owner, cast.workspace, "The oven is off.", embedded=False)
    monkeypatch.setattr(reading_jobs, "get_embedder", lambda: None)
    made = make_document(cast.owner, cast.workspace, LONG, embedded=False)
    one = f"workspaces/{cast.workspace.public_id}/documents/{made.public_id}"
    found = Api(cast.viewer).get(one).json()
    assert (found["status"], found["found_by_meaning"]) == ("ready", None)
    reading_jobs.complete_all()  # the embedder was removed
    unsettled.refresh_from_db()
    assert unsettled.status == "ready" and ready_documents == [made.public_id, unsettled.public_id]


def test_an_own_document_becomes_ready_and_no_webhook_hears_of_it(
    cast: Cast, ready_documents: list[str]
) -> None:
    made = make_document(cast.editor, cast.workspace, personal=True)
    assert (made.status, ready_documents) == ("ready", [])


def test_a_new_version_is_indexed_anew(cast: Cast) -> None:
    made = make_document(cast.owner, cast.workspace, LONG)
    assert made.status == "ready"
    api = Api(cast.owner)
    path = f"workspaces/{cast.workspace.public_id}/documents/{made.public_id}"
    changed = LONG.replace("depot 2 is called Rhiannon", "depot 2 is called Morag")
    assert api.post(f"{path}/versions", {"text": changed}).status_code == 201
    reading_jobs.read(made.pk, now=timezone.now())
    found = api.get(path).json()
    assert found["status"] == "indexing" and 0 < found["found_by_meaning"] < 1


def test_a_draft_is_indexed_when_its_message_is_sent(cast: Cast) -> None:
    now = timezone.now()
    made = documents.add_document(
        cast.workspace, name="a.md", content=[LONG.encode()], by=cast.editor, now=now, draft=True
    ).document
    reading_jobs.read(made.pk, now=now)
    made.refresh_from_db()
    assert made.status == "ready", "read; nothing finds a draft"
    sent = documents.publish(made, cast.workspace, None, by=cast.editor, now=timezone.now())
    assert Document.objects.get(pk=sent.pk).status == "indexing"
