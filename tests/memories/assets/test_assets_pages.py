"""Files on a memory's card: attached, shown, downloaded and removed, by permission."""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from memories.models import Asset, Memory, Scope
from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import make_asset, make_memory
from workspaces.access import default_workspace
from workspaces.models import User

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path / "assets"


@pytest.fixture
def memory(cast: Cast) -> Memory:
    return make_memory("The plan is ready", cast.owner, cast.workspace)


def signed_in(user: User) -> Client:
    client = Client(headers=HTMX)
    client.force_login(user)
    return client


def url(name: str, memory: Memory, asset: Asset | None = None) -> str:
    args = [memory.workspace.public_id, memory.public_id, *([asset.public_id] if asset else [])]
    return reverse(f"memories:{name}", args=args)


def card(user: User, memory: Memory) -> str:
    return signed_in(user).get(url("card", memory)).content.decode()


def test_a_file_is_attached_and_stands_on_the_card(cast: Cast, memory: Memory) -> None:
    file = SimpleUploadedFile("<b>plan</b>.txt", b"Hello")
    answered = signed_in(cast.editor).post(url("attach", memory), {"file": file})
    assert answered.status_code == 200
    asset = Asset.objects.get()
    assert (asset.created_by, asset.name) == (cast.editor, "b_.txt")
    for page in (answered.content.decode(), card(cast.viewer, memory)):
        assert url("asset", memory, asset) in page and "b_.txt" in page and "5\xa0bytes" in page
    assert "Remove the file" in card(cast.editor, memory)
    assert "Remove the file" not in card(cast.viewer, memory)
    assert "Attach a file" not in card(cast.viewer, memory)
    panel = signed_in(cast.viewer).get(reverse("memories:panel", args=[cast.workspace.public_id]))
    assert url("asset", memory, asset) in panel.content.decode()


def test_only_pictures_are_shown_as_such(cast: Cast, memory: Memory) -> None:
    picture, svg = make_asset(memory, PNG, "a.png"), make_asset(memory, b"<svg></svg>", "b.svg")
    page = card(cast.viewer, memory)
    assert f'src="{url("asset", memory, picture)}"' in page
    assert f'src="{url("asset", memory, svg)}"' not in page
    for asset in (picture, svg):
        got = signed_in(cast.viewer).get(url("asset", memory, asset))
        assert got["Content-Disposition"].startswith("attachment")
        assert "sandbox" in got["Content-Security-Policy"] and got["X-Content-Type-Options"] == "nosniff"


def test_a_file_is_removed(
    cast: Cast, memory: Memory, folder: Path, django_capture_on_commit_callbacks: Any
) -> None:
    asset = make_asset(memory)
    client = signed_in(cast.editor)
    asked = client.post(url("asset_remove", memory, asset))
    assert asked.url.startswith("/accounts/reauthenticate/") and Asset.objects.exists()  # type: ignore[attr-defined]
    type_password_again(client)
    assert "Remove “note.txt” for good?" in client.get(url("asset_remove", memory, asset)).content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(url("asset_remove", memory, asset)).status_code == 302
    assert not Asset.objects.exists() and not [path for path in folder.rglob("*") if path.is_file()]
    assert signed_in(cast.editor).post(url("asset_remove", memory, asset)).status_code == 404


def test_a_file_belongs_to_the_memory_in_its_address(cast: Cast, memory: Memory) -> None:
    other = make_memory("Another", cast.owner, cast.workspace)
    asset = make_asset(other)
    assert signed_in(cast.owner).get(url("asset", memory, asset)).status_code == 404
    assert signed_in(cast.owner).post(url("asset_remove", memory, asset)).status_code == 404


def test_files_of_a_personal_memory_are_its_owners_alone(cast: Cast) -> None:
    home = default_workspace(cast.editor)
    home.memberships.create(user=cast.owner, role="editor")
    personal = make_memory("Mine", cast.editor, scope=Scope.USER)
    asset = make_asset(personal)
    assert signed_in(cast.editor).get(url("asset", personal, asset)).status_code == 200
    for name in ("asset", "asset_remove"):
        client = signed_in(cast.owner)
        ask = client.get if name == "asset" else client.post
        assert ask(url(name, personal, asset)).status_code == 404
    assert signed_in(cast.owner).post(url("attach", personal)).status_code == 404


def test_what_is_wrong_with_a_form_is_said(cast: Cast, memory: Memory, settings: Any) -> None:
    client = signed_in(cast.editor)
    assert "Choose one file" in client.post(url("attach", memory)).content.decode()
    settings.ASSET_MAX_BYTES = 100
    for size in (101, 200_000):
        refused = client.post(url("attach", memory), {"file": SimpleUploadedFile("a", b"x" * size)})
        assert (refused.status_code, "at most 100\xa0bytes" in refused.content.decode()) == (413, True)
    assert client.get(url("attach", memory)).status_code == 405
    strict = Client(headers=HTMX, enforce_csrf_checks=True)
    strict.force_login(cast.editor)
    assert strict.post(url("attach", memory), {"file": SimpleUploadedFile("a", b"x")}).status_code == 403
    assert not Asset.objects.exists()
