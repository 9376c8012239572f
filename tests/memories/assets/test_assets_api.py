"""Files of memories over REST: storage, names, permissions, and deletion of the bytes."""

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from memories import assets, tasks
from memories.assets import download
from memories.forgetting.for_good import forget_memories
from memories.models import Asset, Memory, Scope
from memories.writing.changing import restore_memory
from memories.writing.gate import delete_memory
from memoryhub import stored_files
from memoryhub.errors import Invalid, NotFound, TooLarge
from memoryhub.stored_files import Folder
from tests.api import V1, Api, error_of, type_password_again
from tests.conftest import Cast
from tests.factories import make_asset, make_key_text, make_memory, make_workspace
from tests.memories.secret_samples import PROMISED

pytestmark = pytest.mark.django_db
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path / "assets"


@pytest.fixture
def api(cast: Cast) -> Api:
    """The editor's API key for the shared workspace."""
    return Api(base=V1, key=make_key_text(cast.editor, cast.workspace))


@pytest.fixture
def memory(cast: Cast) -> Memory:
    return make_memory("The plan is ready", cast.owner, cast.workspace)


def upload(api: Api, memory: Memory, content: bytes = b"Hello", name: str = "note.txt", **more: Any) -> Any:
    file = SimpleUploadedFile(name, content, content_type="text/html")
    return api.client.post(f"{V1}/memories/{memory.public_id}/assets", {"file": file, **more})


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def body_of(response: Any) -> bytes:
    return b"".join(response)


# Storing


def test_a_file_is_kept_and_comes_back_byte_by_byte(api: Api, memory: Memory, folder: Path) -> None:
    content = os.urandom(200_000)
    made = upload(api, memory, content, "données.bin")
    assert made.status_code == 201
    asset = made.json()
    assert asset.pop("id").startswith("asset_") and asset.pop("createdAt")
    assert asset == {
        "memoryId": memory.public_id,
        "name": "données.bin",
        "contentType": "application/octet-stream",
        "size": 200_000,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    listed = api.get(f"memories/{memory.public_id}/assets").json()["items"]
    assert [each["name"] for each in listed] == ["données.bin"]
    got = api.get(f"assets/{listed[0]['id']}")
    assert body_of(got) == content
    [path] = files(folder)
    assert path.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700
    assert Asset.objects.get().file_name == path.name and "bin" not in path.name


def test_what_a_file_is_its_bytes_say_and_it_is_a_download(api: Api, memory: Memory) -> None:
    for content, name, kind in (
        (PNG, "picture.png", "image/png"),
        (PNG, "page.html", "image/png"),
        (b"\xff\xd8\xff\xe0rest", "x.jpg", "image/jpeg"),
        (b"GIF89a...", "x.gif", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "x.webp", "image/webp"),
        (b"%PDF-1.7 \xff", "x.pdf", "application/pdf"),
        (b"PK\x03\x04\x14", "x.docx", "application/zip"),
        (SVG, "x.svg", "text/plain"),
        (b"<html><script>alert(1)</script>", "x.html", "text/plain"),
        ("Grüße".encode(), "x.txt", "text/plain"),
        ("Grüße".encode("latin-1"), "x.txt", "application/octet-stream"),
        (b"a\0b", "x.txt", "application/octet-stream"),
        (b"abc\xc3", "cut off.txt", "application/octet-stream"),
    ):
        assert make_asset(memory, content, name).content_type == kind, (content, name)
    for content, kind in ((PNG, "image/png"), (SVG, "text/plain")):
        got = api.get(f"assets/{upload(api, memory, content, '../../x.svg').json()['id']}")
        assert got["Content-Type"].split(";")[0] == kind
        assert got["Content-Disposition"] == 'attachment; filename="x.svg"'
        assert got["X-Content-Type-Options"] == "nosniff"
        policy = got["Content-Security-Policy"]
        assert "sandbox" in policy and "default-src 'none'" in policy
        assert got["Content-Length"] == str(len(content))
        assert body_of(got) == content


def test_file_names_are_cleaned() -> None:
    cases = [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("a\0b.txt", "a b.txt"),
        ("x" * 300 + ".txt", "x" * 146 + ".txt"),
        ("x" * 300, "x" * 150),
        ("\u202egnp.exe", "gnp.exe"),
        ("a\r\nSet-Cookie: x.txt", "a Set-Cookie_ x.txt"),
        ('a"b<c>.txt', "a_b_c_.txt"),
        ("...", "file"),
        ("", "file"),
        (".htaccess", "htaccess"),
        ("שלום.pdf", "שלום.pdf"),
        ("e\u0301.txt", "é.txt"),
        ("/", "file"),
        ("name." + "x" * 40, "name." + "x" * 40),
    ]
    for name, kept in cases:
        assert assets.clean_name(name) == kept, name
        assert len(kept) <= 150, name


# Validation


def test_an_empty_file_is_refused(api: Api, memory: Memory, folder: Path) -> None:
    refused = upload(api, memory, b"")
    assert (refused.status_code, list(error_of(refused)["fields"])) == (422, ["file"])
    with pytest.raises(Invalid):
        assets.attach(memory, name="x", content=[b"", b""], by=None, now=timezone.now())
    assert not files(folder) and not Asset.objects.exists()


def test_a_file_over_the_limit_is_too_large(api: Api, memory: Memory, folder: Path, settings: Any) -> None:
    settings.ASSET_MAX_BYTES = 1000
    assert upload(api, memory, b"x" * 1000).status_code == 201
    for size in (1001, 200_000):
        refused = upload(api, memory, b"x" * size)
        assert (refused.status_code, error_of(refused)["code"]) == (413, "too_large")
        assert "1,000\xa0bytes" in error_of(refused)["message"]
    assert len(files(folder)) == 1


def test_an_endless_upload_is_cut_at_the_limit(memory: Memory, folder: Path, settings: Any) -> None:
    settings.ASSET_MAX_BYTES = 1000
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 300

    with pytest.raises(TooLarge):
        assets.attach(memory, name="x", content=endless(), by=None, now=timezone.now())
    assert read == 4 and not files(folder)


def test_forms_that_are_wrong_are_refused(cast: Cast, api: Api, memory: Memory, folder: Path) -> None:
    path = f"memories/{memory.public_id}/assets"
    session = Api(cast.editor, base=V1)
    address = f"{path}?workspace_id={cast.workspace.public_id}"
    for by, at in ((api, path), (session, address)):
        boundary = "multipart/form-data; boundary=x"
        cut_off = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc'
        assert by.raw("POST", at, cut_off, boundary).status_code in {201, 400, 422}
        Asset.objects.all().delete()
        for content_type in ("multipart/form-data", "multipart/form-data; boundary=\xff"):
            refused = by.raw("POST", at, b"abc", content_type)
            assert (refused.status_code, error_of(refused)["code"]) == (400, "malformed"), content_type
        assert by.raw("POST", at, b"{}").status_code == 415
        assert by.raw("POST", at, b"abc", "text/plain").status_code == 415
        for form in ({}, {"file": "text"}, {"other": SimpleUploadedFile("a", b"b")}):
            refused = by.client.post(f"{V1}/{at}", form)
            assert refused.status_code == 422, form
            assert list(error_of(refused)["fields"]) in (["file"], ["other"])
        two = {"file": [SimpleUploadedFile("a", b"a"), SimpleUploadedFile("b", b"b")]}
        assert by.client.post(f"{V1}/{at}", two).status_code == 422
        refused = by.client.post(f"{V1}/{at}", {"file": SimpleUploadedFile("a", b"a"), "name": "x"})
        assert list(error_of(refused)["fields"]) == ["name"]
    assert not Asset.objects.exists()


def test_names_that_are_credentials_are_refused(api: Api, memory: Memory, folder: Path) -> None:
    refused = upload(api, memory, b"Hello", PROMISED["github personal"])
    assert error_of(refused)["code"] == "secret"
    assert not files(folder)


@pytest.mark.django_db(transaction=True)
def test_two_uploads_at_once_keep_to_the_number(cast: Cast, memory: Memory, folder: Path) -> None:
    for _ in range(assets.MOST_ASSETS - 1):
        make_asset(memory)
    keys = [make_key_text(cast.editor, cast.workspace) for _ in range(4)]
    statuses: list[int] = []

    def ask(key: str) -> None:
        statuses.append(upload(Api(base=V1, key=key), memory).status_code)
        connection.close()

    threads = [threading.Thread(target=ask, args=[key]) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201, 409, 409, 409]
    assert len(files(folder)) == assets.MOST_ASSETS == Asset.objects.count()


# Permissions


def test_a_file_is_for_those_who_see_its_memory(cast: Cast, folder: Path) -> None:
    personal = make_memory("Mine", cast.editor, scope=Scope.USER)
    shared = make_memory("Ours", cast.editor, cast.workspace)
    place = {"workspace_id": cast.workspace.public_id}
    own, ours = make_asset(personal), make_asset(shared)
    for person, of_own, of_ours in (
        (cast.editor, 200, 200),
        (cast.owner, 404, 200),
        (cast.viewer, 404, 200),
        (cast.stranger, 404, 404),
    ):
        api = Api(person, base=V1)
        assert api.get(f"assets/{own.public_id}", **place).status_code == of_own
        assert api.get(f"memories/{personal.public_id}/assets", **place).status_code == of_own
        assert api.get(f"assets/{ours.public_id}", **place).status_code == of_ours
    elsewhere = Api(base=V1, key=make_key_text(cast.editor, make_workspace(owner=cast.editor, name="Other")))
    assert elsewhere.get(f"assets/{ours.public_id}").status_code == 404
    assert (
        elsewhere.get(f"assets/{own.public_id}").status_code == 200
    )  # a global memory belongs to every workspace


def test_deleting_a_memory_hides_its_files_and_restoring_shows_them(
    api: Api, memory: Memory, folder: Path
) -> None:
    made = upload(api, memory).json()
    delete_memory(memory, by=None, now=timezone.now())
    assert api.get(f"assets/{made['id']}").status_code == 404
    assert api.get(f"memories/{memory.public_id}/assets").status_code == 404
    assert upload(api, memory).status_code == 404
    assert len(files(folder)) == 1
    restore_memory(memory, by=None, now=timezone.now())
    assert body_of(api.get(f"assets/{made['id']}")) == b"Hello"
    Memory.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert api.get(f"assets/{made['id']}").status_code == 404


def test_deleting_a_file_takes_a_session_whose_password_was_typed_again(
    cast: Cast,
    api: Api,
    memory: Memory,
    folder: Path,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    made = upload(api, memory).json()
    path = f"assets/{made['id']}?workspace_id={cast.workspace.public_id}"
    assert error_of(api.delete(path))["code"] == "session_only"
    person = Api(cast.editor, base=V1)
    assert error_of(person.delete(path))["code"] == "reauthenticate"
    viewer = Api(cast.viewer, base=V1)
    type_password_again(viewer.client)
    assert viewer.delete(path).status_code == 403
    type_password_again(person.client)
    with django_capture_on_commit_callbacks(execute=True):
        assert person.delete(path).status_code == 204
    assert person.delete(path).status_code == 404
    assert not files(folder) and Memory.objects.live().filter(pk=memory.pk).exists()


# Deletion of the bytes


def test_forgetting_for_good_takes_files_along(
    cast: Cast,
    memory: Memory,
    folder: Path,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    make_asset(memory)
    kept = make_asset(make_memory("Another one", cast.owner, cast.workspace))
    with django_capture_on_commit_callbacks(execute=True):
        forget_memories([memory], by=cast.owner, now=timezone.now())
    assert [path.name for path in files(folder)] == [kept.file_name]
    assert list(Asset.objects.all()) == [kept]


@pytest.mark.django_db(transaction=True)
def test_a_file_stays_until_the_removal_is_committed(memory: Memory, folder: Path) -> None:
    make_asset(memory)
    with transaction.atomic():
        Asset.objects.all().delete()
        transaction.set_rollback(True)
    assert len(files(folder)) == 1 and Asset.objects.exists()
    memory.workspace.delete()
    assert not files(folder) and not Asset.objects.exists()


def test_no_row_without_its_file_and_no_file_left_when_the_memory_is_gone(
    memory: Memory, folder: Path
) -> None:
    def deletes_meanwhile() -> Iterator[bytes]:
        yield b"Hello"
        delete_memory(memory, by=None, now=timezone.now())

    with (
        patch.object(Folder, "_save", autospec=True, side_effect=Folder._save) as save,
        pytest.raises(NotFound),
    ):
        assets.attach(memory, name="x", content=deletes_meanwhile(), by=None, now=timezone.now())
    assert save.called and not files(folder)


def test_an_upload_that_breaks_off_leaves_nothing(memory: Memory, folder: Path) -> None:
    def breaks() -> Iterator[bytes]:
        yield b"Hello"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        assets.attach(memory, name="x", content=breaks(), by=None, now=timezone.now())
    assert not files(folder) and not Asset.objects.exists()


def test_the_sweep_removes_old_files_without_a_row(
    memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    assert tasks.sweep_files() == "0 files without a row removed"  # before there is a folder
    turn = f"{int(now.timestamp() / 3600) % 256:02x}"  # the folder that is swept in this hour
    monkeypatch.setattr(stored_files.secrets, "token_hex", lambda number: turn * number)
    kept, young = make_asset(memory), folder / turn / f"{turn}123"
    orphans = [young.with_name(name) for name in (f"{turn}1", f"{turn}2", f".{turn}3.part")]
    for path in (*orphans, young):
        path.write_bytes(b"x")
    long_ago = time.time() - 2 * stored_files.ORPHAN_AGE.total_seconds()
    for path in (*orphans, folder / turn / kept.file_name):
        os.utime(path, (long_ago, long_ago))
    assert assets.ASSET_FILES.sweep(now=now + timedelta(hours=1)) == 0
    assert assets.ASSET_FILES.sweep(now=now) == 3
    assert set(files(folder)) == {young, folder / turn / kept.file_name}


def test_a_missing_file_is_not_found_and_said_in_the_log(
    api: Api, memory: Memory, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asset = make_asset(memory, name="secret plan.txt")
    (folder / asset.file_name[:2] / asset.file_name).unlink()
    assert api.get(f"assets/{asset.public_id}").status_code == 404
    assert asset.file_name in caplog.text and "secret plan" not in caplog.text


def test_a_full_disk_is_said_and_leaves_nothing(
    api: Api, memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    refused = upload(api, memory)
    assert (refused.status_code, error_of(refused)["code"]) == (503, "unavailable")
    assert not files(folder) and not Asset.objects.exists()


def test_a_download_is_read_while_it_is_sent(memory: Memory) -> None:
    content = os.urandom(300_000)
    response: Any = download(make_asset(memory, content))

    async def received() -> list[bytes]:
        return [chunk async for chunk in response.streaming_content]

    chunks = asyncio.run(received())
    assert len(chunks) == 5 and b"".join(chunks) == content
