"""Documents of a workspace: uploaded, read in the background, found beside memories, deleted and restored."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from chat.models import AnswerSource
from chat.tools.base import READ_AT_ONCE, ToolCaller, ToolTrouble
from chat.tools.memory import ToSearch
from chat.tools.memory import search as search_tool
from chat.turns.sources import sources_for_reader
from memories.recalling.workspace_search import search_workspace
from memoryhub.errors import Forbidden, NotFound
from memoryhub.llm.registry import get_embedder
from tests.api import API, Api
from tests.conftest import Cast
from tests.factories import HERE, make_chat, make_document, make_memory, make_message, make_user
from tests.races import Work
from tests.workspaces.documents.samples import SAMPLES, SENTENCE
from workspaces import tasks
from workspaces.actions.workspaces import delete_workspace
from workspaces.documents import documents, files, reading_jobs
from workspaces.documents.reading.parent_process import Read, read_file
from workspaces.documents.search import DOCUMENTS, find_passages
from workspaces.index import hybrid_search, scores
from workspaces.index.hybrid_search import search_area
from workspaces.index.reembedding import embed_passages
from workspaces.models import (
    AuditEvent,
    Document,
    DocumentPassage,
    Membership,
    PassageVector,
    PassageWord,
    Role,
    User,
    Workspace,
)
from workspaces.models.documents import DOCUMENT

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("files_are_read_here")]
LONG = "\n\n".join(
    f"## Rule {n}\n\nRule number {n} is about thing {n}. It says that thing {n} is kept." for n in range(160)
)


@pytest.fixture(autouse=True)
def kept(settings: Any, tmp_path: Any) -> None:
    settings.FILES_DIR = tmp_path


def found(cast: Cast, query: str, by: User | None = None, **body: Any) -> list[dict[str, Any]]:
    answer = Api(by or cast.viewer).post(
        f"workspaces/{cast.workspace.public_id}/search", {"query": query, **body}
    )
    assert answer.status_code == 200
    return answer.json()["results"]


def test_a_file_is_brought_read_found_and_taken_back(
    cast: Cast, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    api, list_ = Api(cast.editor), f"workspaces/{cast.workspace.public_id}/documents"
    content = SAMPLES["keys.pdf"][0]
    with django_capture_on_commit_callbacks(execute=True):
        made = api.client.post(f"{API}/{list_}", {"file": SimpleUploadedFile("keys.pdf", content)})
    assert made.status_code == 201
    shown = made.json()
    assert (shown["title"], shown["media_type"], shown["status"]) == (
        "keys.pdf",
        "application/pdf",
        "waiting",
    )
    job = OrmQ.objects.latest("pk")
    assert job.func() == "workspaces.tasks.read_document"
    with django_capture_on_commit_callbacks(execute=True):
        assert tasks.read_document(**job.task["kwargs"]) == "2 passages"
    assert tasks.read_document(**job.task["kwargs"]) == "nothing to read"  # a job may run twice
    best = found(cast, "where is the spare key")[0]  # by its words, before it is embedded
    assert (best["type"], best["id"], best["title"]) == ("document", shown["id"], "keys.pdf")
    assert best["place"]["page"] == 2 and best["text"] == SENTENCE
    page, soon = (
        f"/workspaces/{cast.workspace.public_id}/documents/",
        "So far 0 % can be found by meaning, all of it by words.",
    )
    shown_as_read = api.client.get(page).content.decode()
    assert soon in shown_as_read and "every 2s" in shown_as_read  # it polls
    told = api.get(f"{list_}/{shown['id']}").json()
    assert (told["status"], told["found_by_meaning"]) == ("indexing", 0.0)
    embeds = OrmQ.objects.latest("pk").task["kwargs"]
    assert [tasks.embed_passages(**embeds) for _ in range(2)] == [2, 0]  # nothing is embedded twice
    shown_as_embedded = api.client.get(page).content.decode()
    assert soon not in shown_as_embedded and "every 2s" not in shown_as_embedded
    assert found(cast, "which pot hides the extra key?")[0]["id"] == shown["id"]

    one = f"{list_}/{shown['id']}"
    ready = api.get(one).json()
    assert (ready["status"], ready["pages"], ready["passages"], ready["error"]) == ("ready", 2, 2, "")
    assert ready["found_by_meaning"] == 1.0
    assert b"".join(api.get(f"{one}/content")) == content
    again = api.client.post(f"{API}/{list_}", {"file": SimpleUploadedFile("same.pdf", content)})
    assert (again.status_code, again.json()["id"], again.json()["duplicate"]) == (200, shown["id"], True)

    assert [api.delete(one).status_code for _ in range(2)] == [204, 404]
    assert api.get(one).status_code == 404 and api.get(list_).json()["items"] == []
    assert found(cast, "where is the spare key") == []
    assert not PassageWord.objects.filter(kind=DOCUMENT).exists()
    assert not PassageVector.objects.filter(kind=DOCUMENT, live=True).exists()
    assert api.post(f"{one}/restore").json()["status"] == "ready"
    assert found(cast, "where is the spare key")[0]["id"] == shown["id"]


def test_memories_and_documents_are_one_ranked_list_with_a_floor(cast: Cast) -> None:
    memory = make_memory("The spare key lies at Mona's", cast.owner, cast.workspace)
    document = make_document(
        cast.owner, cast.workspace, f"# Keys\n\n{SENTENCE}.\n\n# Bins\n\nBlue on Mondays."
    )
    both = found(cast, "where does the spare key lie?")
    assert {each["id"] for each in both} == {memory.public_id, document.public_id}
    assert [each["score"] for each in both] == sorted((each["score"] for each in both), reverse=True)
    assert {each["type"] for each in found(cast, "spare key", types=["document"])} == {"document"}
    assert found(cast, "quarterly revenue of the airline") == []
    assert len(found(cast, "spare key", limit=1)) == 1 and found(cast, " ") == []


@pytest.mark.django_db(transaction=True)
def test_an_index_is_asked_in_a_transaction(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    make_document(cast.owner, cast.workspace, SENTENCE)
    where, asked = search_area(cast.workspace.pk, cast.owner.pk), []
    assert where is not None
    indexed = replace(where, indexed=frozenset({(cast.workspace.pk, DOCUMENT, "model", 3)}))
    monkeypatch.setattr(hybrid_search, "search_area", lambda *_: indexed)
    found = lambda *_, **__: asked.append(connection.in_atomic_block) or []  # noqa: E731
    monkeypatch.setattr(scores, "find_candidates", found)
    find_passages("key", cast.workspace, cast.viewer, limit=5, policy=HERE)
    assert asked == [True]


def test_a_passage_is_embedded_under_its_heading_and_no_word_of_it_twice(cast: Cast) -> None:
    document = make_document(cast.owner, cast.workspace, f"# Keys\n\n{SENTENCE}.", embedded=False)
    [passage] = document.passages.all()
    assert DOCUMENTS.text_of(passage) == (f"Keys\n{passage.text}", "")


def test_nobody_else_finds_or_reads_it(cast: Cast) -> None:
    document = make_document(cast.owner, cast.workspace, SENTENCE)
    elsewhere = make_document(cast.stranger, None, f"{SENTENCE} elsewhere")
    assert [each["id"] for each in found(cast, "spare key")] == [document.public_id]
    with pytest.raises(NotFound):
        find_passages("key", cast.workspace, cast.stranger, limit=5, policy=HERE)
    caller = ToolCaller(cast.viewer, cast.workspace, Role.VIEWER, HERE, timezone.now())
    assert SENTENCE in search_tool(caller, ToSearch(query=document.public_id)).text
    for unknown in (elsewhere.public_id, "doc_" + "x" * 24, "doc_", "doc_' OR 1=1"):
        with pytest.raises(ToolTrouble, match="no document"):
            search_tool(caller, ToSearch(query=unknown))
    with pytest.raises(NotFound):
        documents.get_document(cast.viewer, elsewhere.public_id)


def test_the_tool_reads_a_long_one_to_its_end(cast: Cast) -> None:
    document = make_document(cast.owner, cast.workspace, LONG + "\n<b>Obey</b>", embedded=False)
    caller = ToolCaller(cast.viewer, cast.workspace, Role.VIEWER, HERE, timezone.now())
    at, whole = 0, ""
    while at < document.characters:
        said = search_tool(caller, ToSearch(**{"query": document.public_id, "from": at})).text
        whole += said
        at += READ_AT_ONCE
    assert "Rule number 0 " in whole and "Rule number 159 " in whole
    assert "<b>" not in whole
    found_one = search_workspace(
        "what is rule 117 about", cast.workspace, cast.viewer, now=timezone.now(), policy=HERE
    )
    best = next(each for each in found_one[:3] if "thing 117 " in each.text)  # or the one beside it
    assert best.place is not None and best.place.heading == "Rule 117"


def test_what_cannot_be_read_says_why_and_is_read_again(
    cast: Cast, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    now = timezone.now()
    made = documents.add_document(
        cast.workspace, name="a.pdf", content=[b"%PDF-1.4 no"], by=cast.editor, now=now
    ).document
    assert reading_jobs.read(made.pk, now=now) == "broken"
    made.refresh_from_db()
    assert made.status == "failed" and made.error.startswith("The file is damaged")
    documents.retry_reading(made, by=cast.editor, now=now)
    made.refresh_from_db()
    assert (made.status, made.error) == ("waiting", "")
    # A job that was killed while reading: taken over once its heartbeat has expired, and not before.
    Document.objects.update(status="reading", reading_since=now, heartbeat_at=now, updated_at=now)
    assert reading_jobs.read(made.pk, now=now + timedelta(seconds=19)) == "another job reads it"
    with django_capture_on_commit_callbacks(execute=True):
        assert reading_jobs.sweep(now=now + timedelta(seconds=19)) == 0
        assert reading_jobs.sweep(now=now + timedelta(seconds=21)) == 1
    assert OrmQ.objects.count() >= 1
    assert reading_jobs.read(made.pk, now=now + timedelta(seconds=21)) == "broken"


def test_what_has_no_text_is_not_offered_to_be_read_again(cast: Cast, client: Client) -> None:
    now = timezone.now()
    client.force_login(cast.editor)
    for name, content, offered in (("a.txt", b"  ", False), ("a.pdf", b"%PDF-1.4 no", True)):
        made = documents.add_document(
            cast.workspace, name=name, content=[content], by=cast.editor, now=now
        ).document
        reading_jobs.read(made.pk, now=now)
        html = client.get(f"/workspaces/{cast.workspace.public_id}/documents/").content.decode()
        assert "There is no text in it." in html, name
        assert (f"{made.public_id}/retry/" in html) is offered, name


def test_a_dead_reader_that_wakes_up_stores_nothing_and_its_job_can_be_delivered_twice(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    made = documents.add_document(
        cast.workspace, name="a.txt", content=[b"Bins go out on Mondays"], by=cast.editor, now=now
    ).document

    def stalled(*given: Any) -> Read:
        Document.objects.update(heartbeat_at=now - timedelta(minutes=1))
        assert reading_jobs.sweep(now=now) == 1
        monkeypatch.setattr(reading_jobs, "read_file", read_file)
        assert reading_jobs.read(made.pk, now=now + timedelta(seconds=1)) == "1 passages"
        return Read([])

    monkeypatch.setattr(reading_jobs, "read_file", stalled)
    assert reading_jobs.read(made.pk, now=now) == "deleted meanwhile"
    made.refresh_from_db()
    assert (made.status, made.passage_count, made.heartbeat_at) == ("indexing", 1, None)


def test_a_document_whose_job_was_lost_is_queued_again_and_not_each_minute(cast: Cast) -> None:
    now = timezone.now()
    documents.add_document(cast.workspace, name="a.txt", content=[b"Bins"], by=cast.editor, now=now)
    swept = [reading_jobs.sweep(now=now + timedelta(minutes=minute)) for minute in range(4, 12)]
    assert swept == [0, 0, 1, 0, 0, 0, 0, 0] and reading_jobs.sweep(now=now + timedelta(minutes=12)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_long_reading_has_a_heartbeat(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    now = timezone.now() - timedelta(minutes=10)
    made = documents.add_document(
        cast.workspace, name="a.txt", content=[b"Bins go out on Mondays"], by=cast.editor, now=now
    ).document

    def slow(*given: Any) -> Read:
        eventually(lambda: Document.objects.get().heartbeat_at > timezone.now() - timedelta(seconds=10))
        assert reading_jobs.read(made.pk, now=timezone.now()) == "another job reads it"
        return read_file(*given)

    monkeypatch.setattr(reading_jobs, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(reading_jobs, "read_file", slow)
    assert reading_jobs.read(made.pk, now=now) == "1 passages"


def test_files_and_texts_are_brought_on_the_page_and_what_is_wrong_with_one_is_said(
    cast: Cast, client: Client
) -> None:
    client.force_login(cast.editor)
    address = f"/workspaces/{cast.workspace.public_id}/documents/"
    files = [SimpleUploadedFile(name, SAMPLES[name][0]) for name in ("keys.md", "keys.csv")]
    files.append(SimpleUploadedFile("nothing.txt", b""))
    shown = client.post(
        address, {"file": files, "text": "Bins go out on Mondays"}, follow=True
    ).content.decode()
    assert "3 documents are being read" in shown and "nothing.txt" in shown and "keys.csv" in shown
    assert "every 2s" in shown and Document.objects.count() == 3
    for each in Document.objects.all():
        reading_jobs.read(each.pk, now=timezone.now())
        tasks.embed_passages(kind=DOCUMENT, refs=list(each.passages.values_list("pk", flat=True)))
    rows = client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "every 2s" not in rows and "Bins go out on Mondays" in rows
    document = Document.objects.get(title="keys.md")
    removed = client.post(f"{address}{document.public_id}/delete/", follow=True).content.decode()
    assert f"{address}{document.public_id}/restore/" in removed
    assert client.get(f"{address}{document.public_id}/").status_code == 404
    client.post(f"{address}{document.public_id}/restore/")
    assert SENTENCE in client.get(f"{address}{document.public_id}/").content.decode()


def chapters(**texts: str) -> str:
    """Return a text of several passages, with a long common part after the first sentence."""
    said = (
        f"# {name}\n\n{text}\n\n" + "\n\n".join(f"Of {name} point {n} holds as well. " * 12 for n in range(5))
        for name, text in texts.items()
    )
    return "\n\n".join(said)


def test_a_newer_file_takes_its_place_and_only_what_changed_is_read_anew(
    cast: Cast, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    first = chapters(Oven="Boil it.", Bins="On Mondays.", Floor="Sweep it.")
    newer = chapters(Oven="Boil it.", Bins="On Tuesdays.", Lawn="Mow it.", Floor="Sweep it.")
    document = make_document(cast.owner, cast.workspace, first, embedded=False)
    before = {each.pk: each for each in document.passages.all()}
    last = document.passages.order_by("number").last()
    answer = make_message(make_chat(cast.owner, cast.workspace), "Swept [1].", role="assistant")
    cites = {"message": answer, "document": document, "score": 0.5}
    AnswerSource.objects.create(number=1, passage=last, **cites)
    AnswerSource.objects.create(number=2, passage=document.passages.get(text__contains="Mondays"), **cites)
    api, path = Api(cast.editor), f"workspaces/{cast.workspace.public_id}/documents/{document.public_id}"
    made = api.post(f"{path}/versions", {"text": newer})
    assert (made.status_code, made.json()["version"], made.json()["status"]) == (201, 2, "waiting")
    assert found(cast, "floor sweep")[0]["id"] == document.public_id  # the old text until it is read
    with django_capture_on_commit_callbacks(execute=True):
        reading_jobs.read(document.pk, now=timezone.now())
    now_there = {each.pk: each for each in document.passages.all()}
    kept = before.keys() & now_there.keys()
    assert all(before[pk].text == now_there[pk].text for pk in kept) and len(kept) > len(before) / 2
    whole = "".join(each.text for each in document.passages.order_by("number"))
    assert whole.split() == newer.split()
    embedded = OrmQ.objects.latest("pk").task["kwargs"]["refs"]
    assert set(embedded) == now_there.keys() - kept
    assert not PassageWord.objects.filter(kind=DOCUMENT).exclude(ref__in=now_there).exists()
    source, gone = sources_for_reader([answer.pk], cast.viewer)[answer.pk]
    assert last is not None and source.passage_number == len(now_there) - 1 > last.number
    assert source.get_absolute_url().endswith(
        f"?passage={source.passage_number}#passage-{source.passage_number}"
    )
    # A removed passage leads to the document, not to another passage.
    assert gone.passage_number is None and gone.get_absolute_url() == f"/{path}/"

    assert [each["version"] for each in api.get(f"{path}/versions").json()["items"]] == [1]
    assert b"".join(api.get(f"{path}/content", version=1)) == first.encode()
    assert b"".join(api.get(f"{path}/content")) == newer.strip().encode()
    assert api.get(f"{path}/content", version=9).status_code == 404
    again = api.post(f"{path}/versions", {"text": newer})
    assert (again.status_code, again.json()["duplicate"], again.json()["version"]) == (200, True, 2)
    make_document(cast.owner, cast.workspace, "Another one", embedded=False)
    assert api.post(f"{path}/versions", {"text": "Another one"}).status_code == 409
    for wrong in ({}, {"text": " "}, {"text": 1}):
        assert api.post(f"{path}/versions", wrong).status_code == 422


def test_a_text_is_edited_on_its_page_reads_anew_what_changed_and_is_taken_back(
    cast: Cast, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [f"Rule {n} says that thing {n} stands on shelf {n}, and nowhere else. " * 5 for n in range(9)]
    text = "\n\n".join([*rules[:4], "On Mondays the bins go out.", *rules[4:]])
    document = make_document(cast.owner, cast.workspace, text)
    page = f"/workspaces/{cast.workspace.public_id}/documents/{document.public_id}/"
    client.force_login(cast.editor)
    assert "On Mondays" in client.get(f"{page}edit/").content.decode()
    sent = {"text": text.replace("Mondays", "Tuesdays").replace("\n", "\r\n"), "version": "1"}
    assert client.post(f"{page}edit/", sent).status_code == 302
    document.refresh_from_db()
    assert (document.version, document.version_by, document.media_type) == (2, cast.editor, "text/markdown")

    embedder, read = get_embedder(), list[str]()
    assert embedder is not None
    embed = type(embedder).embed
    monkeypatch.setattr(
        type(embedder), "embed", lambda self, texts: (read.extend(texts), embed(self, texts))[1]
    )
    reading_jobs.read(document.pk, now=timezone.now())
    missing = document.passages.exclude(pk__in=PassageVector.objects.filter(kind=DOCUMENT).values("ref"))
    embed_passages(DOCUMENTS, list(missing.values_list("pk", flat=True)))
    number = document.passages.count()
    # The changed passage and its two neighbours, each with its context.
    assert 0 < len(read) <= 2 * 3 < number
    assert "Tuesdays" in "".join(read) and found(cast, "bins on Tuesdays")[0]["id"] == document.public_id

    # The second of two concurrent edits
    late = client.post(f"{page}edit/", {"text": "Burn it.", "version": "1"})
    shown = late.content.decode()
    assert late.status_code == 409 and "Burn it." in shown and "On Tuesdays" in shown
    blank = client.post(f"{page}edit/", {"text": " \r\n", "version": "2"})
    assert blank.status_code == 422 and Document.objects.get(pk=document.pk).version == 2
    assert "/back/1/" in client.get(page).content.decode()
    assert client.post(f"{page}back/1/", headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    content = Api(cast.viewer).get(
        f"workspaces/{cast.workspace.public_id}/documents/{document.public_id}/content"
    )
    assert b"".join(content) == text.encode()
    assert Document.objects.get(pk=document.pk).version == 3
    assert client.post(f"{page}back/9/").status_code == 404
    now = timezone.now()
    pdf = documents.add_document(
        cast.workspace, name="x.pdf", content=[b"%PDF-1.4"], by=cast.owner, now=now
    ).document
    for method in (client.get, client.post):
        assert (
            method(f"/workspaces/{cast.workspace.public_id}/documents/{pdf.public_id}/edit/").status_code
            == 409
        )


def test_forgotten_for_good_nothing_of_it_is_left(
    cast: Cast, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    document = make_document(cast.editor, cast.workspace, f"# Keys\n\n{SENTENCE}.")
    other = make_document(cast.owner, cast.workspace, "The oven is turned off at night.")
    documents.replace_text(document, text=f"# Keys\n\n{SENTENCE} no more.", by=cast.owner, now=timezone.now())
    answer = make_message(make_chat(cast.owner, cast.workspace), "There [1].", role="assistant")
    AnswerSource.objects.create(message=answer, document=document, number=1, score=0.5)
    names = [Document.objects.get(pk=document.pk).file_name, document.versions.get().file_name]
    assert all(storages["documents"].exists(f"{name[:2]}/{name}") for name in names)
    with pytest.raises(Forbidden):
        documents.forget_document(other, by=cast.editor)
    documents.delete(document, by=cast.editor, now=timezone.now())
    with django_capture_on_commit_callbacks(execute=True):
        removed = documents.forget_document(document, by=cast.editor)
    assert {
        "documents",
        "document passages",
        "document versions",
        "passage vectors",
    } <= set(removed)
    assert "answer sources" not in removed  # others' questions count in private chats as well
    assert not any(storages["documents"].exists(f"{name[:2]}/{name}") for name in names)
    left = {"kind": DOCUMENT, "place": cast.workspace.pk}
    refs = set(other.passages.values_list("pk", flat=True))
    assert set(PassageVector.objects.filter(**left).values_list("ref", flat=True)) == refs
    assert set(PassageWord.objects.filter(**left).values_list("ref", flat=True)) == refs
    assert not AnswerSource.objects.exists() and found(cast, "where is the spare key") == []
    event = AuditEvent.objects.latest("pk")
    assert event.verb == "document_forgotten" and SENTENCE not in str(event.details)
    with pytest.raises(NotFound):
        documents.forget_document(document, by=cast.owner)


@pytest.mark.django_db(transaction=True)
def test_who_stops_being_an_editor_meanwhile_forgets_nothing(cast: Cast) -> None:
    document = make_document(cast.editor, cast.workspace, embedded=False)
    with transaction.atomic():
        Membership.objects.filter(user=cast.editor, workspace=cast.workspace).update(role=Role.VIEWER)
        forgets = Work(lambda: documents.forget_document(document, by=cast.editor))
        assert forgets.waits_for_a_lock()
    assert isinstance(forgets.end(), Forbidden)
    assert Document.objects.filter(pk=document.pk).exists()


def test_what_was_deleted_long_ago_is_purged(cast: Cast, settings: Any) -> None:
    settings.PURGE_AFTER_DAYS = 30
    now = timezone.now()
    long_ago, lately, live = (make_document(cast.owner, None, f"Rule {n}", embedded=False) for n in range(3))
    documents.delete(long_ago, by=cast.owner, now=now - timedelta(days=31))
    documents.delete(lately, by=cast.owner, now=now - timedelta(days=29))
    assert documents.purge(now=now, seconds=9) == 1
    assert set(Document.objects.all()) == {lately, live}


def test_with_its_workspace_everything_of_it_goes(
    cast: Cast, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    document = make_document(cast.owner, cast.workspace)
    name = f"{document.file_name[:2]}/{document.file_name}"
    assert storages["documents"].exists(name)
    with django_capture_on_commit_callbacks(execute=True):
        delete_workspace(cast.workspace, by=cast.owner)
    assert not storages["documents"].exists(name)
    assert not DocumentPassage.objects.exists()
    assert not PassageVector.objects.filter(kind=DOCUMENT).exists()
    assert not PassageWord.objects.filter(kind=DOCUMENT).exists()


def test_who_was_let_out_meanwhile_brings_nothing(cast: Cast) -> None:
    person, workspace = make_user("gone"), Workspace.objects.get(pk=cast.workspace.pk)
    membership = Membership.objects.create(workspace=workspace, user=person, role=Role.EDITOR)
    membership.delete()
    with pytest.raises(NotFound):
        documents.write(workspace, title="Late", text="Too late", by=person, now=timezone.now())
    assert not Document.objects.exists() and not list(storages["documents"].listdir("")[1])


def test_a_wrong_body_is_named(cast: Cast) -> None:
    for body in (
        {},
        {"title": "T"},
        {"text": "x"},
        {"title": " ", "text": "x"},
        {"title": "T", "text": " "},
        {"title": "T" * 201, "text": "x"},
    ):
        refused = Api(cast.editor).post(f"workspaces/{cast.workspace.public_id}/documents", body)
        assert refused.status_code == 422 and refused.json()["error"]["fields"]
        assert not Document.objects.exists()


def test_files_without_a_row_are_swept_and_no_others(cast: Cast, tmp_path: Any) -> None:
    document = make_document(cast.owner, cast.workspace)
    folder = tmp_path / "documents" / document.file_name[:2]
    orphan = folder / f"{document.file_name[:2]}00"
    orphan.write_bytes(b"of a document that a restore took away")
    hour = datetime.fromtimestamp(3600 * int(document.file_name[:2], 16), tz=UTC)
    late = hour + timedelta(hours=256 * (int(timezone.now().timestamp() / 3600 / 256) + 1))
    assert files.sweep(now=timezone.now().replace(year=2000)) == 0
    assert files.sweep(now=late + timedelta(hours=1)) == 0, "another folder's turn"
    assert files.sweep(now=late) == 1
    assert [path.name for path in folder.iterdir()] == [document.file_name]
