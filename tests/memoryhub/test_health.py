"""Health checks: alive, ready, or the part that is missing."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from memoryhub.http import health
from memoryhub.llm import model_check
from tests.conftest import make_cast
from workspaces.documents.documents import add_document
from workspaces.models import Document

WELL = {"chat_model_trouble": "", "embedder_trouble": ""}


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    health._kept = None
    yield
    health._kept = None


@pytest.fixture
def models_are_well(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WELL:
        monkeypatch.setattr(health, name, lambda: "")


@pytest.fixture
def worker() -> Iterator[None]:
    """Simulate a worker: an active connection with its application name."""
    options = health.psycopg_settings() | {"application_name": health.WORKER_NAME}
    with psycopg.connect(**options) as connection:
        connection.execute("SELECT 1")
        yield


def ready() -> tuple[int, dict[str, Any]]:
    health._kept = None
    response = Client().get("/readyz")
    return response.status_code, response.json()


def test_alive_is_said_without_asking_anybody(db: None, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        response = Client().get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert response["Cache-Control"] == "no-store"


def test_monitors_come_by_address_and_without_https(models_are_well: None, settings: Any) -> None:
    for path in ("/healthz", "/readyz"):
        settings.ALLOWED_HOSTS, settings.SECURE_SSL_REDIRECT = ["hub.example.org"], True
        assert Client().get(path, headers={"host": "10.1.2.3:8000"}).status_code in {200, 503}
        assert Client().post(path).status_code == 405
        assert Client().head(path).content == b""


@pytest.mark.django_db(transaction=True)
def test_all_is_well(models_are_well: None, worker: None) -> None:
    status, found = ready()
    assert (status, found["status"]) == (200, "ok"), found
    names = {"database", "migrations", "writes", "queue", "worker", "documents", "model", "embedder"}
    assert set(found["parts"]) == names
    assert all(part == {"ok": True, "why": ""} for part in found["parts"].values())


@pytest.mark.django_db(transaction=True)
def test_without_a_worker_it_is_degraded_and_ready(models_are_well: None) -> None:
    status, found = ready()
    assert (status, found["status"]) == (200, "degraded")
    assert found["parts"]["worker"] == {"ok": False, "why": "none is running"}


@pytest.mark.django_db(transaction=True)
def test_a_job_that_waits_long_is_said(models_are_well: None, worker: None) -> None:
    OrmQ.objects.create(key="memoryhub", payload="x", lock=timezone.now() - timedelta(seconds=500))
    OrmQ.objects.create(key="memoryhub", payload="x", lock=timezone.now() + timedelta(seconds=500))
    status, found = ready()
    assert (status, found["status"]) == (200, "degraded")
    assert "a job has waited for 50" in found["parts"]["queue"]["why"]


@pytest.mark.django_db(transaction=True)
def test_documents_that_are_not_read_are_said(models_are_well: None, worker: None) -> None:
    cast, now = make_cast(), timezone.now()
    for name, content in (("a", b"Bins"), ("b", b"Cats")):
        add_document(cast.workspace, name=f"{name}.txt", content=[content], by=cast.editor, now=now)
    Document.objects.filter(title__startswith="a").update(
        status="reading", heartbeat_at=now - timedelta(minutes=4)
    )
    assert ready()[1]["parts"]["documents"] == {"ok": False, "why": "1 not read in time"}


@pytest.mark.django_db(transaction=True)
def test_a_migration_that_is_missing_is_not_ready(models_are_well: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_migrations SET app = 'elsewhere' WHERE app = 'chat'")
    try:
        status, found = ready()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_migrations SET app = 'chat' WHERE app = 'elsewhere'")
    assert (status, found["status"]) == (503, "not_ready")
    assert "not applied" in found["parts"]["migrations"]["why"]


@pytest.mark.django_db(transaction=True)
def test_a_database_of_a_newer_version_is_not_ready(models_are_well: None) -> None:
    newer = MigrationRecorder.Migration.objects.create(app="chat", name="9999_of_next_year")
    try:
        status, found = ready()
    finally:
        newer.delete()
    assert (status, found["status"]) == (503, "not_ready")
    assert found["parts"]["migrations"]["why"] == "1 of a newer version"


def test_without_the_database_it_is_not_ready_and_says_nothing_of_where_it_was(
    models_are_well: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"host": "127.0.0.1", "port": "1", "user": "hub", "password": "sesame", "dbname": "hub"}
    monkeypatch.setattr(health, "psycopg_settings", lambda: where)
    status, found = ready()
    assert (status, found["status"]) == (503, "not_ready")
    assert found["parts"]["database"] == {"ok": False, "why": "cannot be reached"}
    assert "127.0.0.1" not in str(found) and "sesame" not in str(found)


def test_a_database_that_has_no_room_for_a_connection_is_said_to_be_full(
    models_are_well: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**options: Any) -> None:
        raise psycopg.OperationalError("FATAL: could not write init file: No space left on device")

    monkeypatch.setattr(psycopg, "connect", full)
    assert ready()[1]["parts"]["database"] == {"ok": False, "why": "its disk is full"}


@pytest.mark.django_db(transaction=True)
def test_a_missing_model_degrades(monkeypatch: pytest.MonkeyPatch, worker: None) -> None:
    monkeypatch.setattr(health, "chat_model_trouble", lambda: "cannot be reached")

    def broken() -> str:
        raise RuntimeError("http://user:sesame@models.example/v1 is broken")

    monkeypatch.setattr(health, "embedder_trouble", broken)
    status, found = ready()
    assert (status, found["status"]) == (200, "degraded")
    assert found["parts"]["model"] == {"ok": False, "why": "cannot be reached"}
    assert found["parts"]["embedder"] == {"ok": False, "why": "cannot be asked"}


def test_asking_often_looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def check() -> dict[str, health.Part]:
        looks.append(1)
        return dict.fromkeys(health.ESSENTIAL, health.GOOD)

    monkeypatch.setattr(health, "check", check)
    for _ in range(20):
        assert Client().get("/readyz").status_code == 200
    assert len(looks) == 1


def test_what_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    over = threading.Event()
    monkeypatch.setattr(health, "LONGEST_SECONDS", 0.05)
    monkeypatch.setattr(health, "chat_model_trouble", lambda: (over.wait(10) and "") or "")
    monkeypatch.setattr(health, "embedder_trouble", lambda: "")
    try:
        assert health.check()["model"].why == "no answer in time"
    finally:
        over.set()


def test_no_embedder_is_no_trouble_and_the_bundled_one_embeds(settings: Any) -> None:
    assert model_check.embedder_trouble() == ""
    settings.EMBEDDING_MODEL = "none"
    assert model_check.embedder_trouble() == ""


@pytest.fixture
def altered() -> Iterator[Callable[[str], None]]:
    """Change a setting of the database for new connections; undone afterwards."""
    name = connection.settings_dict["NAME"]
    writable = health.psycopg_settings() | {"options": "-c default_transaction_read_only=off"}

    def alter(statement: str) -> None:
        with psycopg.connect(**writable, autocommit=True) as own:
            own.execute(f'ALTER DATABASE "{name}" {statement}')

    yield alter
    alter("RESET ALL")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("SET default_transaction_read_only = on", "it can only be read"),
        ("SET temp_file_limit = '100kB'", "its disk is full"),
        ("SET statement_timeout = 0", ""),
    ],
)
def test_a_database_that_takes_no_writes_is_not_ready(
    models_are_well: None, worker: None, altered: Callable[[str], None], setting: str, why: str
) -> None:
    before = set(MigrationRecorder.Migration.objects.values_list("id", "app", "name"))
    altered(setting)
    status, found = ready()
    assert found["parts"]["writes"] == {"ok": not why, "why": why}
    assert (status, found["status"]) == ((503, "not_ready") if why else (200, "ok"))
    assert found["parts"]["database"]["ok"]
    assert set(MigrationRecorder.Migration.objects.values_list("id", "app", "name")) == before
