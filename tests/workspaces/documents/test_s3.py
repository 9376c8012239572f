"""Documents in an S3-compatible store: the whole way of a file, on a real server of another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from memoryhub import events
from memoryhub.backup import databases
from memoryhub.backup.addresses import place_of
from memoryhub.backup.making import make_backup
from memoryhub.backup.places import BackupError
from memoryhub.document_store import document_store
from memoryhub.environment import Environment
from memoryhub.errors import Conflict, Forbidden, Unavailable
from tests.api import API, Api
from tests.conftest import Cast
from tests.factories import make_document, make_user
from tests.fakes import object_store
from tests.fakes.object_store import empty_bucket, running_store
from tests.stack import free_port
from tests.workspaces.documents.samples import SAMPLES, SENTENCE
from workspaces.actions.workspaces import update_workspace
from workspaces.documents import documents, files, forgetting, reading_jobs, versions
from workspaces.models import Document

BUCKET = "papers"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running_store() as found:
        yield found


def store_at(endpoint: str, **more: str) -> tuple[dict[str, Any], bool]:
    given = {"BUCKET": BUCKET, "ENDPOINT_URL": endpoint, "REGION": "us-east-1", "PREFIX": "hub"} | more
    keys = {"ACCESS_KEY": object_store.KEY, "SECRET_KEY": object_store.SECRET}
    source = {f"MEMORYHUB_S3_{name}": value for name, value in (keys | given).items()}
    return document_store(Environment("MEMORYHUB_", source), Path("/nowhere"))


@pytest.fixture
def bucket(address: str, settings: Any) -> Any:
    """Empty, and where the files of documents lie."""
    client = empty_bucket(address, BUCKET)
    store, settings.DOCUMENTS_STAY_HERE = store_at(address)
    settings.STORAGES = settings.STORAGES | {"documents": store}
    return client


def keys_in(client: Any) -> list[str]:
    return object_store.keys_in(client, BUCKET)


@pytest.mark.django_db
def test_a_file_goes_its_whole_way_through_the_store(
    bucket: Any, cast: Cast, settings: Any, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    api, list_ = Api(cast.editor), f"workspaces/{cast.workspace.public_id}/documents"
    content = SAMPLES["keys.pdf"][0]
    without, settings.QUOTAS = settings.QUOTAS, settings.QUOTAS | {"bytes": len(content) + 10}
    made = api.client.post(f"{API}/{list_}", {"file": SimpleUploadedFile("keys.pdf", content)})
    assert made.status_code == 201
    document = Document.objects.get()
    place = f"hub/{document.file_name[:2]}/{document.file_name}"
    assert keys_in(bucket) == [place]
    assert bucket.get_object(Bucket=BUCKET, Key=place)["Body"].read() == content
    assert reading_jobs.read(document.pk, now=timezone.now()) == "2 passages"
    assert document.passages.filter(text__contains=SENTENCE).exists()
    path = f"{list_}/{document.public_id}"
    assert b"".join(api.get(f"{path}/content")) == content
    full = api.client.post(f"{API}/{list_}", {"file": SimpleUploadedFile("b.txt", b"x" * 100)})
    assert full.json()["error"]["code"] == "quota" and keys_in(bucket) == [place]
    settings.QUOTAS = without
    again = api.client.post(f"{API}/{list_}", {"file": SimpleUploadedFile("again.pdf", content)})
    assert again.status_code == 200 and keys_in(bucket) == [place]  # the second copy went

    newer = versions.rewrite(document, text="# Keys", by=cast.editor, now=timezone.now()).document
    assert len(keys_in(bucket)) == 2
    assert b"".join(api.get(f"{path}/content", version=1)) == content
    files.remove("ff" + "0" * 30)  # what is not there is no trouble
    with django_capture_on_commit_callbacks(execute=True):
        forgetting.forget_document(newer, by=cast.editor)
    assert keys_in(bucket) == []


@pytest.mark.django_db
def test_orphans_are_swept_and_what_is_missing_is_404(bucket: Any, cast: Cast) -> None:
    document = make_document(cast.editor, cast.workspace, embedded=False)
    folder = document.file_name[:2]
    bucket.put_object(Bucket=BUCKET, Key=f"hub/{folder}/{folder}00", Body=b"of no row")
    hours = int(timezone.now().timestamp() / 3600)
    turn = timedelta(hours=256 + (int(folder, 16) - hours) % 256)
    assert files.sweep(now=timezone.now() + turn) == 1
    place = f"hub/{folder}/{document.file_name}"
    assert keys_in(bucket) == [place]
    bucket.delete_object(Bucket=BUCKET, Key=place)
    path = f"workspaces/{cast.workspace.public_id}/documents/{document.public_id}/content"
    assert Api(cast.viewer).get(path).status_code == 404


@pytest.mark.django_db
def test_a_store_that_does_not_answer_is_said_and_nothing_is_half_done(
    cast: Cast, settings: Any, tmp_path: Path, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    document = make_document(cast.editor, cast.workspace, embedded=False)
    gone, _ = store_at(f"http://127.0.0.1:{free_port()}")
    gone["OPTIONS"]["client_config"].retries = {"total_max_attempts": 1}
    settings.STORAGES = settings.STORAGES | {"documents": gone}
    path = f"workspaces/{cast.workspace.public_id}/documents"
    api = Api(cast.editor)
    assert api.post(path, {"title": "One", "text": "one"}).status_code == 503
    assert Document.objects.count() == 1
    assert api.get(f"{path}/{document.public_id}/content").status_code == 503
    with pytest.raises(Unavailable):
        files.open_document(document)
    with django_capture_on_commit_callbacks(execute=True):
        forgetting.forget_document(document, by=cast.editor)  # the row goes, whatever the store does
    with pytest.raises(BackupError, match="does not answer"):
        make_backup(place_of(tmp_path / "one.zip"), "", lambda _: None)
    assert not list(tmp_path.glob("*.zip"))


@pytest.mark.django_db(transaction=True)
def test_a_backup_takes_them_along_and_a_restore_puts_them_where_the_settings_say(
    bucket: Any, settings: Any, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path / "data"
    events.close()
    with connection.cursor() as cursor:  # what threads of tests before left open
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )
    document = make_document(make_user("ada"), None, "In the store", embedded=False)
    [place] = keys_in(bucket)
    call_command("backup", str(tmp_path / "one.zip"), verbosity=0)
    with transaction.atomic():
        Document.objects.all().delete()
    assert keys_in(bucket) == []
    try:
        call_command("restore", str(tmp_path / "one.zip"), "--replace", verbosity=0)
        assert keys_in(bucket) == [place]
        with files.open_document(Document.objects.get(pk=document.pk)) as file:
            assert file.read() == b"In the store"
        bucket.delete_object(Bucket=BUCKET, Key=place)
        folder = {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "f"},
        }
        settings.STORAGES = settings.STORAGES | {"documents": folder}
        call_command("restore", str(tmp_path / "one.zip"), "--replace", verbosity=0)
        assert keys_in(bucket) == []
        assert storages["documents"].exists(place.removeprefix("hub/"))
    finally:
        databases.drop(databases.own_name() + databases.REPLACED)


@pytest.mark.django_db
def test_what_never_leaves_this_machine_lies_in_no_store_elsewhere(
    bucket: Any, cast: Cast, settings: Any
) -> None:
    document = make_document(cast.owner, cast.workspace, embedded=False)
    assert settings.DOCUMENTS_STAY_HERE  # 127.0.0.1
    settings.DOCUMENTS_STAY_HERE = False
    with pytest.raises(Conflict):
        update_workspace(cast.workspace, by=cast.owner, local_only=True)
    type(cast.workspace).objects.filter(pk=cast.workspace.pk).update(local_only=True)
    document.workspace.refresh_from_db()
    for bring in (
        lambda: documents.write(document.workspace, title="T", text="x", by=cast.owner, now=timezone.now()),
        lambda: versions.rewrite(document, text="y", by=cast.owner, now=timezone.now()),
    ):
        with pytest.raises(Forbidden):
            bring()
    assert len(keys_in(bucket)) == 1


def test_a_store_on_this_machine_is_asked_through_no_proxy() -> None:
    """Not even one that the environment names."""
    for endpoint, through in (("http://127.0.0.1:1", {}), ("https://s3.example", None)):
        assert store_at(endpoint)[0]["OPTIONS"]["client_config"].proxies == through


def test_the_settings_of_a_store_go_together() -> None:
    assert store_at("https://s3.example.org")[1] is False
    assert store_at("https://s3.example.org", LOCAL="yes")[1] is True
    with pytest.raises(ImproperlyConfigured, match="BUCKET"):
        store_at("https://s3.example.org", BUCKET="")
    with pytest.raises(ImproperlyConfigured, match="go together"):
        store_at("https://s3.example.org", SECRET_KEY="")
