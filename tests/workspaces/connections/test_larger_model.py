"""The larger built-in model on pages: its progress, and permissions to pause or remove it."""

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from memoryhub.local.large_model_download import SIZE, State, Status, Wanted, want, wanted, write_status
from tests.conftest import Cast
from tests.factories import make_user
from tests.signing_in import signed_in

pytestmark = pytest.mark.django_db
PAGE = "/connections/built-in/"


@pytest.fixture
def downloading(tmp_path: Path, settings: Settings) -> Path:
    settings.DATA_DIR, settings.EMBEDDED_MODEL, settings.BUILTIN_MODEL = tmp_path, True, "auto"
    settings.LLM_BASE_URL = None
    write_status(tmp_path, Status(State.FETCHING, SIZE * 43 // 100 + 1))
    return tmp_path


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
