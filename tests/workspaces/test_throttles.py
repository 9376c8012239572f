"""Rate limits hold over all processes: they are counted in the database."""

import contextlib
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from memoryhub.errors import TooManyRequests
from tests.conftest import Cast
from tests.factories import PASSWORD, make_chat, make_memory, make_user
from tests.rollback import rolled_back
from workspaces.models import Spent
from workspaces.quotas import spend

pytestmark = pytest.mark.django_db


@pytest.fixture
def three_turns(settings: Any) -> datetime:
    settings.THROTTLES = {"turns": 3, "uploads": 3}
    return timezone.now()


def test_as_many_as_the_rate_at_once_then_as_time_pays_for(cast: Cast, three_turns: datetime) -> None:
    now = three_turns
    for _ in range(3):
        spend("turns", cast.owner, now=now)
    with pytest.raises(TooManyRequests) as refusal:
        spend("turns", cast.owner, now=now)
    assert refusal.value.retry_after == 20
    assert refusal.value.headers() == {"Retry-After": "20"}
    with pytest.raises(TooManyRequests):
        spend("turns", cast.owner, now=now + timedelta(seconds=19))
    spend("turns", cast.owner, now=now + timedelta(seconds=20))
    with pytest.raises(TooManyRequests):
        spend("turns", cast.owner, now=now + timedelta(seconds=20))
    for _ in range(3):
        spend("turns", cast.owner, now=now + timedelta(minutes=5))


def test_each_person_and_each_limit_has_its_own(cast: Cast, three_turns: datetime) -> None:
    for _ in range(3):
        spend("turns", cast.owner, now=three_turns)
    spend("uploads", cast.owner, now=three_turns)
    spend("turns", cast.editor, now=three_turns)
    with pytest.raises(TooManyRequests):
        spend("turns", cast.owner, now=three_turns)
    counted = Spent.objects.values_list("user", "limit")
    assert set(counted) == {
        (cast.owner.pk, "turns"),
        (cast.owner.pk, "uploads"),
        (cast.editor.pk, "turns"),
    }


def test_one_question_to_the_database(cast: Cast, django_assert_num_queries: Any) -> None:
    for _ in range(2):
        with django_assert_num_queries(1):
            spend("turns", cast.owner, now=timezone.now())


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_do_not_slip_through_together(settings: Any) -> None:
    settings.THROTTLES = {"turns": 5}
    user, now, passed = make_user(), timezone.now(), []

    def ask() -> None:
        with contextlib.closing(connection), contextlib.suppress(TooManyRequests):
            spend("turns", user, now=now)
            passed.append(1)

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 5
    assert Spent.objects.get().limit == "turns"


def attempt(name: str, password: str = "wrong", **headers: str) -> str:
    client = Client(headers=headers)
    return client.post("/accounts/login/", {"login": name, "password": password}).content.decode()


def test_guesses_at_one_account_end_soon_wherever_they_come_from(cast: Cast) -> None:
    """The sixth is refused even with the right password, in every process: the counts are in the database."""
    for number in range(5):
        assert "Too many" not in attempt("olive", f"wrong {number}")
    assert "Too many failed login attempts" in attempt("olive", PASSWORD)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM workspaces_cache")
        assert cursor.fetchone()[0] > 0


def test_guesses_from_one_address_end_for_all_accounts_whatever_address_is_claimed(cast: Cast) -> None:
    pages = [attempt(f"nobody{number}", **{"x-forwarded-for": f"203.0.{number}.1"}) for number in range(12)]
    assert "Too many" not in pages[5]
    assert "Too many failed login attempts" in pages[-1]


def test_behind_a_trusted_proxy_each_address_counts_for_itself(cast: Cast, settings: Any) -> None:
    settings.TRUSTED_PROXIES = 1
    pages = [
        attempt(f"nobody{number}", **{"x-forwarded-for": f"1.1.1.1, 203.0.{number}.1"})
        for number in range(12)
    ]
    assert not any("Too many" in page for page in pages)


def test_sign_ups_of_one_address_are_limited(cast: Cast) -> None:
    def sign_up(number: int) -> Any:
        form = {"username": f"new{number}", "password1": PASSWORD, "password2": PASSWORD}
        return Client().post("/accounts/signup/", form)

    answers = [sign_up(number) for number in range(21)]
    assert answers[0].status_code == 302
    assert (answers[-1].status_code, answers[-1]["Retry-After"]) == (429, "60")
    assert "Too many attempts" in answers[-1].content.decode()


def test_the_cache_is_shared_and_its_table_is_not_logged(db: None) -> None:
    cache.set("one", {"two": 3})
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM workspaces_cache WHERE cache_key LIKE '%%one'")
        assert cursor.fetchone()[0] == 1
        cursor.execute(
            "SELECT relpersistence FROM pg_class WHERE relname IN ('workspaces_cache', 'workspaces_spent')"
        )
        assert cursor.fetchall() == [("u",), ("u",)]


@pytest.mark.usefixtures("scripted_model")
def test_too_many_messages_are_refused_at_every_door_and_store_nothing(cast: Cast, settings: Any) -> None:
    settings.THROTTLES = {"turns": 1}
    chat = make_chat(cast.editor, cast.workspace)
    client = Client()
    client.force_login(cast.editor)

    def send(door: str) -> Any:
        if door == "api":
            body = {"content": "Hello kumquat", "stream": False}
            return client.post(f"/chat/api/{chat.public_id}/messages", body, "application/json")
        headers = {"hx-request": "true"} if door == "htmx" else {}
        return client.post(
            f"/chats/{chat.public_id}/messages/", {"content": "Hello kumquat"}, headers=headers
        )

    spend("turns", cast.editor, now=timezone.now())
    for door in ("api", "page", "htmx"):
        refused = send(door)
        assert refused.status_code == 429, door
        assert 1 <= int(refused["Retry-After"]) <= 60, door
        assert not chat.messages.exists(), door
        if door == "api":
            assert refused.json()["error"]["code"] == "too_many_requests"
        else:
            assert "what you typed is still there" in refused.content.decode(), door


def test_too_many_files_are_refused_at_every_door_and_none_is_kept(
    cast: Cast, settings: Any, tmp_path: Path
) -> None:
    settings.THROTTLES = {"uploads": 1}
    memory = make_memory("The plan is ready", cast.owner, cast.workspace)
    settings.DATA_DIR = tmp_path
    client = Client()
    client.force_login(cast.editor)
    card = f"/workspaces/{cast.workspace.public_id}/memories/{memory.public_id}"
    doors = {
        "api": f"/api/v1/memories/{memory.public_id}/assets?workspace_id={cast.workspace.public_id}",
        "page": f"{card}/assets/",
        "htmx": f"{card}/assets/",
        "import": "/chat/api/imports",
    }

    def send(door: str) -> Any:
        file = SimpleUploadedFile("note.txt", b"Cats purr")
        place = {"workspace_id": cast.workspace.public_id} if door == "import" else {}
        headers = {"hx-request": "true"} if door == "htmx" else {}
        return client.post(doors[door], {"file": file, **place}, headers=headers)

    for door in rolled_back(doors):
        assert send(door).status_code < 400, door
        kept = [path for path in tmp_path.rglob("*") if path.is_file()]
        refused = send(door)
        assert refused.status_code == 429, door
        assert 1 <= int(refused["Retry-After"]) <= 60, door
        assert kept, door
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == kept, door
