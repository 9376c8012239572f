"""The larger built-in model on pages: its progress, and permissions to pause or remove it."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from memoryhub.local.large_model import SIZE, State, Status, Wanted, want, wanted, write_status
from tests.conftest import Cast
from tests.factories import make_user
from workspaces.models import User

pytestmark = pytest.mark.django_db
PAGE = "/connections/built-in/"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def downloading(tmp_path: Path, settings: Settings) -> Path:
    settings.DATA_DIR, settings.EMBEDDED_MODEL, settings.BUILTIN_MODEL = tmp_path, True, "auto"
    settings.LLM_BASE_URL = None
    write_status(tmp_path, Status(State.FETCHING, SIZE * 43 // 100 + 1))
    return tmp_path


def test_the_empty_chat_and_the_models_page_say_how_far_it_is(cast: Cast, downloading: Path) -> None:
    line = "A better model is on its way: 43% of 1.1 GB."
    for page in (f"/workspaces/{cast.workspace.public_id}/", "/connections/"):
        assert line in signed_in(cast.owner).get(page).content.decode()


@pytest.mark.parametrize("state", [State.READY, State.REMOVED, State.NO_ROOM])
def test_the_empty_chat_says_nothing_when_it_is_decided(cast: Cast, downloading: Path, state: State) -> None:
    write_status(downloading, Status(state, SIZE))
    assert (
        b"larger-model" not in signed_in(cast.owner).get(f"/workspaces/{cast.workspace.public_id}/").content
    )


def test_a_failed_download_is_said_until_somebody_dismisses_it(cast: Cast, downloading: Path) -> None:
    write_status(downloading, Status(State.FAILED, 0, "The disk is full."))
    client, page = signed_in(cast.owner), f"/workspaces/{cast.workspace.public_id}/"
    assert b"The disk is full." in client.get(page).content
    assert b'data-dismiss-notice="larger-model"' in client.get(page).content
    client.cookies["dismissed"] = "small-model.larger-model"
    assert b"The disk is full." not in client.get(page).content
    assert b"The disk is full." in client.get("/connections/").content
    write_status(downloading, Status(State.FETCHING, 1))
    assert b"on its way" in client.get(page).content


def test_administrators_pause_and_remove_it_and_nobody_else(cast: Cast, downloading: Path) -> None:
    admin = make_user("root", is_staff=True, is_superuser=True)
    want(downloading, Wanted.FETCH)
    assert b'value="pause"' not in signed_in(cast.owner).get("/connections/").content
    assert signed_in(cast.owner).post(PAGE, {"want": "remove"}).status_code == 403
    assert wanted(downloading) == Wanted.FETCH
    assert b'value="pause"' in signed_in(admin).get("/connections/").content
    for what in ("pause", "remove", "fetch"):
        assert signed_in(admin).post(PAGE, {"want": what}).status_code == 302
        assert wanted(downloading) == what
    assert signed_in(admin).post(PAGE, {"want": "explode"}).status_code == 422


def test_nothing_is_said_where_the_small_model_is_wanted(
    cast: Cast, downloading: Path, settings: Settings
) -> None:
    settings.BUILTIN_MODEL = "small"
    assert b"larger-model" not in signed_in(cast.owner).get("/connections/").content
