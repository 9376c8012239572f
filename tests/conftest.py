"""Fixtures of the whole suite, which runs on a real Postgres with pgvector: DATABASE_URL, or the embedded one,
which starts when a test first needs it.

``make test`` shares the tests out among several processes (tests/shares.py). Each starts a Postgres and has a data
folder of its own, so what one test does to settings, channels or the queue is not seen by those beside it.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from _pytest.unraisableexception import gc_collect_iterations_key
from django.conf import settings as django_settings
from django.db import transaction
from django.utils.translation import trans_real
from pytest_django.fixtures import Settings
from pytest_django.plugin import DjangoDbBlocker

from memoryhub import pubsub
from memoryhub.llm import bundled_embedder
from memoryhub.local.postgres import EmbeddedPostgres, connection_settings
from memoryhub.management.commands.prepare import compile_translations
from tests.copies import copied
from tests.migrated import lend_to
from tests.reading import read_here
from workspaces.index import embedding
from workspaces.models import User, Workspace

if TYPE_CHECKING:
    from tests.routes import Row
    from tests.world import EachRow, World

pytest_plugins = [
    "tests.fakes.fixtures",
    "tests.fakes.pseudo_language",
    "tests.attacks",
    "tests.emptying",
    "tests.handlers",
    "tests.pure",
    "tests.shares",
    "tests.signing_in",
]
# Bytecode is written here and in child processes in every environment: see the Makefile.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Databases are created, copied and flushed to disk: in memory, if it has this much free, that takes half the time.
IN_MEMORY, ROOM = Path("/dev/shm"), 8 * 2**30
if (
    not os.environ.get("TMPDIR")
    and IN_MEMORY.is_dir()
    and not os.statvfs(IN_MEMORY).f_flag & os.ST_NOEXEC
    and min(shutil.disk_usage(IN_MEMORY).free, psutil.virtual_memory().available) > ROOM
):
    os.environ["TMPDIR"], tempfile.tempdir = str(IN_MEMORY), None
_server: EmbeddedPostgres | None = None


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(tempfile.mkdtemp(prefix="memoryhub-tests-"))
    folder.chmod(0o755)  # the database server may run as another user
    django_settings.DATA_DIR = folder
    django_settings.STATIC_ROOT = folder / "static"
    django_settings.STATIC_ROOT.mkdir()
    django_settings.LOCALE_PATHS = [folder / "locale"]
    django_settings.FILE_WAIT_SECONDS = 0  # no job reads or embeds unless a test runs it
    django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    django_settings.STORAGES["staticfiles"] = {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
    }
    django_settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    django_settings.DATABASES["default"]["OPTIONS"].pop("pool", None)
    config.stash[gc_collect_iterations_key] = (
        1  # at the end of each process, twice: the default of five took two seconds each
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exempt what is loaded for the tests from garbage collection, which took a seventh of their time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _server is not None:
        _server.stop()
    shutil.rmtree(django_settings.DATA_DIR, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Start Postgres when the first test needs a database, so that a run of pure tests never waits for it."""
    global _server
    if django_settings.EMBEDDED_DATABASE:
        lend_to(django_settings.DATA_DIR)
        _server = EmbeddedPostgres(django_settings.DATA_DIR, durable=False)
        _server.initialise()
        _server.start()
        place = connection_settings(django_settings.DATA_DIR)
        django_settings.DATABASES["default"].update(
            NAME=place["dbname"], USER=place["user"], HOST=place["host"], PORT=place["port"]
        )
        django_settings.DATABASES["default"].setdefault("TEST", {})["TEMPLATE"] = place["dbname"]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    yield
    pubsub.listener.stop()  # no listener remains when the database stops


@dataclass(frozen=True)
class Cast:
    """The fixed cast of every permission test: a shared workspace with its members and a stranger."""

    workspace: Workspace
    owner: User
    editor: User
    viewer: User
    stranger: User


def make_cast() -> Cast:
    from tests.factories import make_people, make_workspace

    owner, editor, viewer, stranger = make_people("olive", "eddie", "vera", "sam")
    workspace = make_workspace(owner=owner, editor=editor, viewer=viewer)
    return Cast(workspace, owner, editor, viewer, stranger)


@pytest.fixture(scope="session", autouse=True)
def _vectors_are_kept_for_the_whole_run() -> None:
    """Embedding took half the time of tests that store memories, and many tests store the same texts."""
    bundled_embedder.CACHED_TEXTS = 10_000


@pytest.fixture(autouse=True)
def no_embedder_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the pause after a failed embedding between tests."""
    monkeypatch.setattr(embedding, "_resting", {})


@pytest.fixture
def cast(db: None) -> Cast:
    return make_cast()


@pytest.fixture(scope="module")
def module_transaction(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Run a file of tests in one transaction: each test finds the rows of module fixtures unchanged.

    Not for a file with tests that need committed rows (``django_db(transaction=True)``, ``live_server``).
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def made_world(module_transaction: None) -> World:
    from tests.world import make_world

    return make_world(make_cast())


@pytest.fixture
def each_row(world: World) -> EachRow:
    """Yield each row with the original world: the writes of a row's requests are rolled back before the next."""

    def rows_in_turn(rows: Iterable[Row]) -> Iterator[tuple[Row, World]]:
        for row in rows:
            with transaction.atomic():
                yield row, copied(world)
                transaction.set_rollback(True)

    return rows_in_turn


@pytest.fixture
def people_may_connect(settings: Settings) -> None:
    """Enable the routes of people's own connections."""
    settings.PEOPLE_MAY_CONNECT = True


@pytest.fixture
def world(made_world: World, people_may_connect: None, db: None) -> World:
    """A world with one of everything, created once for a file of tests; each test finds it unchanged."""
    return copied(made_world)


@pytest.fixture
def files_are_read_here() -> Iterator[None]:
    with read_here():
        yield


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait until a condition becomes true; fails after ten seconds."""

    def wait(condition: Callable[[], bool], seconds: float = 10) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not become true"
            time.sleep(0.02)

    return wait


@pytest.fixture(autouse=True)
def _turns_end_with_their_test(_django_db_marker: None) -> Iterator[None]:
    """Wait for running turns after the fakes are gone and before the tables are emptied, so that none writes into the
    next test.
    """
    yield
    from chat.turns import turn

    assert turn.wait_until_idle(timeout=10)


@pytest.fixture(scope="session")
def compiled_catalogues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("locale")
    compile_translations(folder)
    return folder


@pytest.fixture
def catalogues(compiled_catalogues: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the translation catalogues: other tests have Django's own alone."""
    settings.LOCALE_PATHS = [compiled_catalogues]
    monkeypatch.setattr(trans_real, "_translations", {})
