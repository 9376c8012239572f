"""Files of documents and memories in an S3-compatible store: their life cycle, on a real server in another process."""

import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from chat.import_export import personal_copy
from memories.assets import ASSET_FILES, open_file
from memories.forgetting.for_good import forget_memories
from memories.models import Asset
from memoryhub import pubsub
from memoryhub.backup import dump
from memoryhub.backup.archive import make_backup
from memoryhub.backup.storage import BackupError, place_of
from memoryhub.environment import Environment
from memoryhub.errors import Conflict, Forbidden, Unavailable
from memoryhub.management.commands import doctor
from memoryhub.stored_files import file_stores
from tests.api import API, V1, Api
from tests.conftest import Cast
from tests.factories import make_asset, make_document, make_key_text, make_memory, make_user, make_workspace
from tests.fakes import object_store
from tests.fakes.object_store import empty_bucket, running_store
from tests.stack import free_port
from tests.workspaces.documents.samples import SAMPLES, SENTENCE
from workspaces.actions.workspaces import update_workspace
from workspaces.documents import documents, files, reading_jobs
from workspaces.models import Document, Workspace

BUCKET = "papers"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running_store() as found:
        yield found


def store_at(endpoint: str, **more: str) -> tuple[dict[str, dict[str, Any]], bool]:
    given = {"BUCKET": BUCKET, "ENDPOINT_URL": endpoint, "REGION": "us-east-1", "PREFIX": "hub"} | more
    keys = {"ACCESS_KEY": object_store.KEY, "SECRET_KEY": object_store.SECRET}
    source = {f"MEMORYHUB_S3_{name}": value for name, value in (keys | given).items()}
    return file_stores(Environment("MEMORYHUB_", source))


@pytest.fixture
def bucket(address: str, settings: Any, tmp_path: Path) -> Any:
    """An empty bucket as file storage, on a host whose folder is empty."""
    client = empty_bucket(address, BUCKET)
    stores, settings.FILES_STAY_HERE = store_at(address)
    settings.STORAGES = settings.STORAGES | stores
    settings.FILES_DIR = tmp_path / "files"
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
    assert again.status_code == 200 and keys_in(bucket) == [place]  # the second copy was removed

    newer = documents.replace_text(document, text="# Keys", by=cast.editor, now=timezone.now()).document
    assert len(keys_in(bucket)) == 2
    assert b"".join(api.get(f"{path}/content", version=1)) == content
    files.remove("ff" + "0" * 30)  # a missing file is no error
    with django_capture_on_commit_callbacks(execute=True):
        documents.forget_document(newer, by=cast.editor)
    assert keys_in(bucket) == []


@pytest.mark.django_db
def test_a_file_of_a_memory_goes_its_whole_way_and_nothing_lies_in_the_folder(
    bucket: Any, cast: Cast, settings: Any, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    memory = make_memory("The plan is ready", cast.owner, cast.workspace)
    key = make_key_text(cast.editor, cast.workspace)
    api, path = Api(base=V1, key=key), f"{V1}/memories/{memory.public_id}/assets"
    content = b"\x89PNG\r\n\x1a\n" + bytes(200_000)
    settings.QUOTAS = settings.QUOTAS | {"bytes": len(content) + 10}
    made = api.client.post(path, {"file": SimpleUploadedFile("plan.png", content)})
    assert (made.status_code, made.json()["contentType"]) == (201, "image/png")
    asset = Asset.objects.get()
    place = f"hub/assets/{asset.file_name[:2]}/{asset.file_name}"
    assert keys_in(bucket) == [place]
    assert b"".join(Api(base=V1, key=key).get(f"assets/{asset.public_id}")) == content
    full = api.client.post(path, {"file": SimpleUploadedFile("b.txt", b"x" * 100)})
    assert full.json()["error"]["code"] == "quota" and keys_in(bucket) == [place]
    copy = dict(personal_copy._parts(cast.editor, timezone.now()))
    assert b"".join(copy[f"files/{asset.public_id}-plan.png"]) == content
    with django_capture_on_commit_callbacks(execute=True):
        forget_memories([memory], by=cast.owner, now=timezone.now())
    assert keys_in(bucket) == [] and not settings.FILES_DIR.exists()


@pytest.mark.django_db
def test_orphans_are_swept_and_what_is_missing_is_404(bucket: Any, cast: Cast) -> None:
    for kind in ["documents", "assets"]:
        if kind == "documents":
            made, kept = make_document(cast.editor, cast.workspace, embedded=False), files.DOCUMENT_FILES
            api, path = (
                Api(cast.viewer),
                f"workspaces/{cast.workspace.public_id}/documents/{made.public_id}/content",
            )
        else:
            made, kept = make_asset(make_memory("A plan", cast.owner, cast.workspace)), ASSET_FILES
            api = Api(base=V1, key=make_key_text(cast.editor, cast.workspace))
            path = f"assets/{made.public_id}"
        [place] = keys_in(bucket)
        folder = made.file_name[:2]
        bucket.put_object(Bucket=BUCKET, Key=f"{place[:-30]}00", Body=b"of no row")
        hours = int(timezone.now().timestamp() / 3600)
        turn = timedelta(hours=256 + (int(folder, 16) - hours) % 256)
        assert kept.sweep(now=timezone.now() + turn) == 1, kind
        assert keys_in(bucket) == [place], kind
        bucket.delete_object(Bucket=BUCKET, Key=place)
        assert api.get(path).status_code == 404, kind


@pytest.mark.django_db
def test_what_lies_in_the_folder_is_read_there_until_it_is_moved(
    bucket: Any, cast: Cast, settings: Any, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    """A store is configured where files exist already. Files of local_only workspaces are not moved."""
    stores, settings.STORAGES = settings.STORAGES, settings.STORAGES | file_stores(Environment("X_", {}))[0]
    memory = make_memory("A plan", cast.owner, cast.workspace)
    gone, asset = make_asset(memory, b"one"), make_asset(memory, b"two")
    document = make_document(cast.editor, cast.workspace, "three", embedded=False)
    stays = make_asset(make_memory("A secret plan", cast.owner, make_workspace(owner=cast.owner)), b"four")
    Workspace.objects.filter(pk=stays.memory.workspace_id).update(local_only=True)
    orphan = make_asset(memory, b"five")  # its owner is unknown
    Asset.objects.filter(pk=orphan.pk).delete()
    settings.STORAGES, settings.FILES_STAY_HERE = stores, False

    def read() -> list[bytes]:
        with open_file(asset) as two, files.open_document(document) as three, open_file(stays) as four:
            return [two.read(), three.read(), four.read()]

    assert read() == [b"two", b"three", b"four"] and keys_in(bucket) == []
    with django_capture_on_commit_callbacks(execute=True):
        gone.delete()
    assert files_in_folder(settings) == {each.file_name for each in (asset, document, stays, orphan)}
    assert len(_said_by_doctor()) == 2
    out = StringIO()
    call_command("move_files", stdout=out)
    assert _said_by_doctor() == []
    assert "2 files moved" in out.getvalue() and "2 stay there" in out.getvalue()
    assert files_in_folder(settings) == {stays.file_name, orphan.file_name}
    assert {key.rpartition("/")[2] for key in keys_in(bucket)} == {asset.file_name, document.file_name}
    assert read() == [b"two", b"three", b"four"]
    settings.STORAGES = settings.STORAGES | file_stores(Environment("X_", {}))[0]
    with pytest.raises(CommandError, match="No store is named here"):
        call_command("move_files")


def files_in_folder(settings: Any) -> set[str]:
    """Return the files in the folder."""
    return {path.name for path in settings.FILES_DIR.rglob("*") if path.is_file()}


@pytest.mark.django_db
def test_what_is_forgotten_while_it_is_moved_is_nowhere(
    bucket: Any, cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores, settings.STORAGES = settings.STORAGES, settings.STORAGES | file_stores(Environment("X_", {}))[0]
    asset = make_asset(make_memory("A plan", cast.owner, cast.workspace), b"one")
    settings.STORAGES, put_back = stores, ASSET_FILES.put_back

    def forgotten_meanwhile(name: str, content: Any) -> Any:
        Asset.objects.filter(pk=asset.pk).delete()
        ASSET_FILES.remove(name)
        return put_back(name, content)

    monkeypatch.setattr(ASSET_FILES, "put_back", forgotten_meanwhile)
    for stay_here in (True, False):
        settings.FILES_STAY_HERE = stay_here
        list(ASSET_FILES.move())
    assert (keys_in(bucket), files_in_folder(settings)) == ([], set())


def _said_by_doctor() -> list[str]:
    return [said for said in doctor.troubles() if "move_files" in said]


@pytest.mark.django_db
def test_a_store_that_does_not_answer_is_said_and_nothing_is_half_done(
    cast: Cast, settings: Any, tmp_path: Path, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    document = make_document(cast.editor, cast.workspace, embedded=False)
    gone, _ = store_at(f"http://127.0.0.1:{free_port()}")
    for each in gone.values():
        each["OPTIONS"]["client_config"].retries = {"total_max_attempts": 1}
    settings.STORAGES = settings.STORAGES | gone
    path = f"workspaces/{cast.workspace.public_id}/documents"
    api = Api(cast.editor)
    assert api.post(path, {"title": "One", "text": "one"}).status_code == 503
    assert Document.objects.count() == 1
    assert api.get(f"{path}/{document.public_id}/content").status_code == 503
    with pytest.raises(Unavailable):
        files.open_document(document)
    with pytest.raises(Unavailable):
        make_asset(make_memory("A plan", cast.owner, cast.workspace))
    assert not Asset.objects.exists()
    with django_capture_on_commit_callbacks(execute=True):
        documents.forget_document(document, by=cast.editor)  # the row is deleted even if the store fails
    with pytest.raises(BackupError, match="does not answer"):
        make_backup(place_of(tmp_path / "one.zip"), "", lambda _: None)
    assert not list(tmp_path.glob("*.zip"))


@pytest.mark.django_db(transaction=True)
def test_a_backup_takes_them_along_and_a_restore_puts_them_where_the_settings_say(
    bucket: Any, settings: Any, tmp_path: Path
) -> None:
    settings.DATA_DIR, settings.EMBEDDED_DATABASE = tmp_path / "data", False
    pubsub.listener.stop()
    with connection.cursor() as cursor:  # left open by threads of earlier tests
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )
    ada = make_user("ada")
    document = make_document(ada, None, "In the store", embedded=False)
    secret = make_memory("A secret plan", ada, make_workspace(owner=ada))
    Workspace.objects.filter(pk=secret.workspace_id).update(local_only=True)
    asset, stays = (
        make_asset(make_memory("A plan", ada), b"Also there"),
        make_asset(secret, b"Never elsewhere"),
    )
    bucket.put_object(Bucket=BUCKET, Key="hub/backups/backups-20200101.zip", Body=b"an earlier backup")
    places = keys_in(bucket)
    assert len(places) == 4
    call_command("backup", str(tmp_path / "one.zip"), verbosity=0)
    with zipfile.ZipFile(tmp_path / "one.zip") as backup:
        stored = {name for name in backup.namelist() if "/" in name}
    files_of = {"documents": [document], "assets": [asset, stays]}
    names = {
        f"{kind}/{each.file_name[:2]}/{each.file_name}" for kind, rows in files_of.items() for each in rows
    }
    assert stored == names
    with transaction.atomic():
        Document.objects.all().delete()
        Asset.objects.all().delete()
    assert keys_in(bucket) == [key for key in places if key.endswith(".zip")]
    try:
        call_command("restore", str(tmp_path / "one.zip"), "--replace", verbosity=0)
        assert keys_in(bucket) == places
        with files.open_document(Document.objects.get(pk=document.pk)) as file, open_file(asset) as other:
            assert (file.read(), other.read()) == (b"In the store", b"Also there")
        empty_bucket(settings.STORAGES["assets"]["OPTIONS"]["endpoint_url"], BUCKET)
        settings.FILES_STAY_HERE = False
        call_command("restore", str(tmp_path / "one.zip"), "--replace", verbosity=0)
        assert {key.rpartition("/")[2] for key in keys_in(bucket)} == {document.file_name, asset.file_name}
        with open_file(stays) as file:
            assert file.read() == b"Never elsewhere"
    finally:
        dump.drop(dump.own_name() + dump.REPLACED)


@pytest.mark.django_db
def test_what_never_leaves_this_machine_lies_in_no_store_elsewhere(
    bucket: Any, cast: Cast, settings: Any
) -> None:
    document = make_document(cast.owner, cast.workspace, embedded=False)
    assert settings.FILES_STAY_HERE  # 127.0.0.1
    settings.FILES_STAY_HERE = False
    with pytest.raises(Conflict):
        update_workspace(cast.workspace, by=cast.owner, local_only=True)
    type(cast.workspace).objects.filter(pk=cast.workspace.pk).update(local_only=True)
    document.workspace.refresh_from_db()
    for bring in (
        lambda: documents.write(document.workspace, title="T", text="x", by=cast.owner, now=timezone.now()),
        lambda: documents.replace_text(document, text="y", by=cast.owner, now=timezone.now()),
    ):
        with pytest.raises(Forbidden):
            bring()
    memory = make_memory("A plan", cast.owner, cast.workspace)  # as loaded before
    with pytest.raises(Forbidden):
        make_asset(memory)
    memory.workspace.refresh_from_db()
    with patch.object(storages["assets"], "save") as save, pytest.raises(Forbidden):
        make_asset(memory)
    assert not save.called and len(keys_in(bucket)) == 1


def test_a_store_on_this_machine_is_asked_through_no_proxy() -> None:
    """The environment's proxy is not used either."""
    for endpoint, through in (("http://127.0.0.1:1", {}), ("https://s3.example", None)):
        assert store_at(endpoint)[0]["assets"]["OPTIONS"]["client_config"].proxies == through


def test_the_settings_of_a_store_go_together() -> None:
    assert store_at("https://s3.example.org")[1] is False
    assert store_at("https://s3.example.org", LOCAL="yes")[1] is True
    with pytest.raises(ImproperlyConfigured, match="BUCKET"):
        store_at("https://s3.example.org", BUCKET="")
    with pytest.raises(ImproperlyConfigured, match="go together"):
        store_at("https://s3.example.org", SECRET_KEY="")
