"""Backups in an S3-compatible store: a real server in another process, PostgreSQL's own programs."""

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.response import StreamingBody
from django.conf import settings as present
from django.core.management import CommandError
from smart_open.s3 import MultipartWriter
from urllib3.exceptions import ProtocolError

from memories.models import Memory
from memoryhub import pubsub
from memoryhub.backup import archive, dump, storage
from memoryhub.backup.archive import Reader
from memoryhub.backup.storage import BackupError, place_of
from tests.factories import make_asset, make_memory, make_user
from tests.fakes.object_store import KEY, SECRET, empty_bucket, keys_in, running_store
from tests.memoryhub.test_backup import _end_other_sessions, changed, contents, run
from tests.stack import free_port
from workspaces.models import User

pytestmark = pytest.mark.django_db(transaction=True)
BUCKET, FOLDER = "backups", "s3://backups/hub/"
LARGE = os.urandom(8_000_000)  # two of them make four parts


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running_store() as found:
        yield found


@pytest.fixture
def store(address: str, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty store, configured by boto3's own variables; documents are in a folder."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setattr(storage, "PART", 5 * 1024 * 1024)  # S3's minimum
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    settings.EMBEDDED_DATABASE = False  # no cluster is in that folder, and none has to start
    storage._client_for.cache_clear()
    pubsub.listener.stop()  # left open by earlier tests
    _end_other_sessions()
    yield empty_bucket(address, BUCKET)
    storage._client_for.cache_clear()
    dump.drop(dump.own_name() + dump.REPLACED)


def test_it_is_written_in_parts_tried_and_put_back_from_there(store: Any) -> None:
    olive = make_user("olive")
    memory = make_memory("The deadline is March 15", olive)
    names = {make_asset(memory, content).file_name: content for content in (LARGE, LARGE[::-1])}
    said = run("backup", FOLDER)
    [key] = keys_in(store, BUCKET)
    assert key.startswith("hub/memoryhub-2") and f"s3://backups/{key}: " in said
    assert store.head_object(Bucket=BUCKET, Key=key)["ETag"].strip('"').endswith("-4")
    assert {each.name for each in present.DATA_DIR.iterdir()} <= {"assets", "logs", "postgres", "run"}
    Memory.objects.all().delete()
    make_memory("Of after the backup", olive)
    shutil.rmtree(present.DATA_DIR / "assets")
    assert "as they were counted" in run("restore", f"s3://backups/{key}", drill=True)
    assert contents() == {"Of after the backup"}

    run("restore", f"s3://backups/{key}", replace=True)

    assert contents() == {"The deadline is March 15"}
    stored = [path for path in (present.DATA_DIR / "assets").rglob("*") if path.is_file()]
    assert {path.name: path.read_bytes() for path in stored} == names


def test_the_store_of_the_documents_is_asked_as_the_settings_say(
    store: Any, settings: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.workspaces.documents.test_s3 import BUCKET as PAPERS
    from tests.workspaces.documents.test_s3 import store_at

    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    empty_bucket(address, PAPERS)
    settings.STORAGES = settings.STORAGES | store_at(address)[0]
    run("backup", f"{FOLDER}one.zip")
    assert keys_in(store, BUCKET) == ["hub/one.zip"]


def test_keep_counts_the_installations_own(store: Any, tmp_path: Path) -> None:
    run("backup", tmp_path / "own.zip")
    changed(tmp_path / "own.zip", tmp_path / "other.zip", {"installation": "another"})
    for day, name in enumerate(("other", "own", "own", "own", "other"), start=1):
        store.upload_file(str(tmp_path / f"{name}.zip"), BUCKET, f"hub/memoryhub-2020010{day}-000000.zip")
    for key in ("hub/mine.zip", "hub/deeper/memoryhub-20200101-000000.zip", "memoryhub-20200101-000000.zip"):
        store.upload_file(str(tmp_path / "own.zip"), BUCKET, key)
    store.put_object(Bucket=BUCKET, Key="hub/memoryhub-20200101-111111.zip", Body=b"nobody knows whose")
    before = set(keys_in(store, BUCKET))
    said = run("backup", FOLDER, keep=2)
    gone = before - set(keys_in(store, BUCKET))
    assert gone == {f"hub/memoryhub-2020010{day}-000000.zip" for day in (2, 3)}
    assert said.count("removed") == 2
    assert len(keys_in(store, BUCKET)) == len(before) - 1


def test_what_is_cut_short_is_not_there_and_leaves_no_parts(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_asset(make_memory("The deadline is March 15", make_user("olive")), LARGE)
    for error in (BackupError("The store of files does not answer."), KeyboardInterrupt()):
        monkeypatch.setattr(archive, "_add_files", Mock(side_effect=error))
        with pytest.raises((CommandError, KeyboardInterrupt)):
            run("backup", FOLDER)
        assert keys_in(store, BUCKET) == []
        assert "Uploads" not in store.list_multipart_uploads(Bucket=BUCKET)


def test_what_cannot_be_aborted_is_not_completed_later(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is away when the upload is aborted, and back when Python frees the writer, which closes it."""

    def away(_upload: MultipartWriter) -> None:
        raise EndpointConnectionError(endpoint_url="http://store")

    with monkeypatch.context() as patch, pytest.raises(ValueError, match="cut short"):
        patch.setattr(MultipartWriter, "terminate", away)
        with place_of(f"{FOLDER}one.zip").writing() as file:
            file.write(LARGE)
            raise ValueError("cut short")
    del file
    gc.collect()
    assert keys_in(store, BUCKET) == []
    [upload] = store.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
    store.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"])


def test_what_is_there_is_not_written_over_and_what_is_no_whole_backup_is_refused(store: Any) -> None:
    make_user("olive")
    run("backup", f"{FOLDER}one.zip")
    whole = store.get_object(Bucket=BUCKET, Key="hub/one.zip")["Body"].read()
    with pytest.raises(CommandError, match="is there already"):
        run("backup", f"{FOLDER}one.zip")
    for name, content in {"cut": whole[: len(whole) // 2], "empty": b"", "other": b"hello" * 100}.items():
        store.put_object(Bucket=BUCKET, Key=f"hub/{name}.zip", Body=content)
        with pytest.raises(CommandError, match="no whole backup"):
            run("restore", f"{FOLDER}{name}.zip", replace=True)
    at = whole.index(b"PGDMP") + 500
    store.put_object(
        Bucket=BUCKET, Key="hub/bit.zip", Body=whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    )
    with pytest.raises(CommandError, match=r"Damaged: database\.dump"):
        run("restore", f"{FOLDER}bit.zip", replace=True)
    assert User.objects.get().username == "olive"


def test_what_the_store_refuses_is_said_in_a_sentence(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for command, where, why in (
        ("backup", "s3://nowhere/one.zip", "there is no bucket nowhere"),
        ("backup", "s3:///one.zip", "names no bucket"),
        ("backup", "s3://Not A Bucket/one.zip", "could not be"),
        ("restore", "s3://backups/none.zip", "there is no such file"),
        ("restore", FOLDER, "there is no such file"),
    ):
        with pytest.raises(CommandError, match=why):
            run(command, where)
    with pytest.raises(CommandError, match="--keep"):
        run("backup", f"{FOLDER}one.zip", keep=2)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{free_port()}")
    storage._client_for.cache_clear()
    with pytest.raises(CommandError, match="the store does not answer"):
        run("backup", f"{FOLDER}one.zip")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    storage._client_for.cache_clear()
    with pytest.raises(CommandError, match="there are no keys for the store"):
        run("backup", f"{FOLDER}one.zip")


def test_where_a_connection_breaks_another_goes_on(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make_asset(make_memory("The deadline is March 15", make_user("olive")), LARGE)
    run("backup", f"{FOLDER}one.zip")
    usual, asked = StreamingBody.read, []
    monkeypatch.setattr("time.sleep", asked.append)

    def breaks(self: Any, *wanted: int) -> bytes:
        asked.append(wanted)
        if len(asked) % 3 == 0:
            raise ProtocolError("Connection broken")
        return usual(self, *wanted)

    monkeypatch.setattr(StreamingBody, "read", breaks)
    with Reader(place_of(f"{FOLDER}one.zip")) as archive:
        archive.verify()
    assert len(asked) > 9
    monkeypatch.setattr(StreamingBody, "read", Mock(side_effect=ProtocolError("Connection broken")))
    with pytest.raises(BackupError, match="the store does not answer"):
        Reader(place_of(f"{FOLDER}one.zip"))


def test_another_backup_under_the_name_is_not_taken_for_the_one_that_was_checked(store: Any) -> None:
    make_asset(make_memory("The deadline is March 15", make_user("olive")), LARGE)
    run("backup", f"{FOLDER}one.zip")
    with Reader(place_of(f"{FOLDER}one.zip")) as archive:
        archive.verify()
        store.put_object(Bucket=BUCKET, Key="hub/one.zip", Body=b"x" * 2_000_000)
        with pytest.raises(BackupError, match="PreconditionFailed"):
            archive.verify()
