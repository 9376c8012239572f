"""The course of an import: killed, stopped, resumed, swept, run twice at once; and its memory use."""

import json
import stat
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from chat.import_export import import_jobs, import_lines, upload_formats
from chat.import_export.upload_reader import items
from chat.models.imports import KEPT, MAX_ATTEMPTS, Import, ImportStatus
from memories.models import Memory
from memoryhub.database import queries
from memoryhub.errors import Conflict, TooLarge, TooManyRequests
from tests.chat.import_export.test_exchange import exported, uploaded
from tests.chat.import_export.test_exchange_foreign import as_json, gpt_conversation
from tests.conftest import Cast
from tests.factories import make_memory

pytestmark = pytest.mark.django_db
NOW = timezone.now
PEOPLE = ("Anna", "Boris", "Clara", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas")


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_lines, "ROWS", 3)
    monkeypatch.setattr(upload_formats, "ROWS", 3)


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of queued imports, filled at once, since the test's transaction is never committed."""
    asked: list[int] = []
    monkeypatch.setattr(import_jobs, "_queue", lambda imported: asked.append(imported.pk))
    return asked


def statements(count: int = 10) -> bytes:
    return as_json([f"{name} owns a boat" for name in PEOPLE[:count]])


def native(cast: Cast) -> bytes:
    for name in PEOPLE:
        make_memory(f"{name} owns a boat", cast.owner, cast.workspace)
    data = exported(cast.owner, cast.workspace)
    Memory.objects.all().delete()
    return data


def stored() -> list[str]:
    return sorted(Memory.objects.values_list("content", flat=True))


ALL = [f"{name} owns a boat" for name in PEOPLE]


@pytest.mark.parametrize("kind", ["statements", "native"])
def test_worker_killed_in_any_chunk_loses_nothing_and_stores_nothing_twice(
    cast: Cast, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, real = statements() if kind == "statements" else native(cast), import_jobs.import_records
    for at in (1, 3):
        imported = uploaded(cast.editor, data, cast.workspace)
        import_jobs.start(imported, now=NOW())
        calls = []

        def dies(*args: Any, at: int = at, calls: list[int] = calls, **kwargs: Any) -> None:
            real(*args, **kwargs)
            calls.append(1)
            if len(calls) == at:
                raise KeyboardInterrupt  # after storing, before recording that

        with monkeypatch.context() as patched:
            patched.setattr(import_jobs, "import_records", dies)
            with pytest.raises(KeyboardInterrupt):
                import_jobs.advance(imported.pk, seconds=60)
        assert len(stored()) < len(ALL), at
        assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.DONE
        imported.refresh_from_db()
        assert stored() == ALL, at
        assert imported.outcomes == imported.foreseen and imported.outcomes["memory"]["new"] == 10, at
        Memory.objects.all().delete()


def test_a_worker_killed_while_looking_writes_the_lines_again(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = as_json([gpt_conversation(conversation_id=f"c-{n}") for n in range(6)])
    whole = uploaded(cast.editor, data, cast.workspace)
    expected = upload_formats.lines_of(whole.public_id).read_bytes()
    real, calls = import_jobs.store_rows, []

    def dies(*args: Any, **how: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(*args, **how)

    imported = import_jobs.begin(cast.editor, workspace=cast.workspace, filename="", pieces=[data], now=NOW())
    monkeypatch.setattr(import_jobs, "store_rows", dies)
    with pytest.raises(KeyboardInterrupt):
        import_jobs.advance(imported.pk, seconds=60)
    with upload_formats.lines_of(imported.public_id).open("ab") as file:
        file.write(b'{"half a line')  # an incomplete upload
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.CHECKED
    imported.refresh_from_db()
    assert upload_formats.lines_of(imported.public_id).read_bytes() == expected
    assert imported.foreseen == whole.foreseen and imported.rows.count() == whole.rows.count()


def test_it_is_stopped_between_chunks_and_goes_on_where_it_was(cast: Cast, queued: list[int]) -> None:
    imported = uploaded(cast.editor, statements(), cast.workspace)
    import_jobs.start(imported, now=NOW())
    assert import_jobs.advance(imported.pk, seconds=0) == import_jobs.JobResult.UNFINISHED
    assert queued[-1] == imported.pk
    import_jobs.stop(imported, now=NOW())
    assert len(stored()) == 3
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.NOTHING
    with pytest.raises(Conflict):
        import_jobs.stop(imported, now=NOW())
    import_jobs.resume(imported, now=NOW())
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.DONE
    assert stored() == ALL
    for refused in (import_jobs.start, import_jobs.stop, import_jobs.resume):
        with pytest.raises(Conflict):
            refused(imported, now=NOW())


def test_deleting_it_in_the_middle_ends_it(cast: Cast, django_capture_on_commit_callbacks: Any) -> None:
    imported = uploaded(cast.editor, statements(), cast.workspace)
    import_jobs.start(imported, now=NOW())
    import_jobs.advance(imported.pk, seconds=0)
    with django_capture_on_commit_callbacks(execute=True):
        import_jobs.delete(imported)
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.NOTHING
    assert len(stored()) == 3 and list(upload_formats.stored_imports()) == []


def test_one_process_at_a_time(cast: Cast) -> None:
    imported = uploaded(cast.editor, statements(), cast.workspace)
    import_jobs.start(imported, now=NOW())
    with queries.alone(import_jobs.LOCK, imported.pk) as is_alone:
        assert is_alone
        assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.ELSEWHERE
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.DONE


@pytest.mark.django_db(transaction=True)
def test_the_queue_closing_the_jobs_connection_lets_no_second_process_in(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """django-q closes connections older than a minute when something is queued outside a transaction."""
    imported = uploaded(cast.editor, statements(), cast.workspace)
    import_jobs.start(imported, now=NOW())
    real, outcomes = import_jobs.embed_ahead, []

    def closes(*args: Any, **how: Any) -> Any:
        connection.close_if_unusable_or_obsolete()
        assert connection.connection is None
        outcomes.append(import_jobs.advance(imported.pk, seconds=60))
        return real(*args, **how)

    monkeypatch.setattr(import_jobs, "embed_ahead", closes)
    monkeypatch.setattr(connection, "close_at", 0.0)
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.DONE
    assert outcomes == [import_jobs.JobResult.ELSEWHERE] * len(outcomes) and len(outcomes) > 1
    assert stored() == ALL


def test_what_fails_again_and_again_is_given_up_and_says_where(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = uploaded(cast.editor, statements(), cast.workspace)
    import_jobs.start(imported, now=NOW())
    import_jobs.advance(imported.pk, seconds=0)

    def fails(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(import_jobs, "import_records", fails)
    for _ in range(MAX_ATTEMPTS):
        with pytest.raises(ZeroDivisionError):
            import_jobs.advance(imported.pk, seconds=60)
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.FAILED
    imported.refresh_from_db()
    assert (imported.status, "beyond line 3" in imported.error) == (ImportStatus.FAILED, True)
    assert len(stored()) == 3 and list(upload_formats.stored_imports()) == []


def test_it_waits_for_an_embedder_that_does_not_answer(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = uploaded(cast.editor, statements(), cast.workspace)
    import_jobs.start(imported, now=NOW())
    with monkeypatch.context() as patched:
        patched.setattr("chat.import_export.import_memories.embed_texts", lambda texts, reaches: None)
        for _ in range(MAX_ATTEMPTS):
            assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.WAITING
    imported.refresh_from_db()
    assert (imported.status, imported.error) == (ImportStatus.STOPPED, "The embedding model does not answer.")
    import_jobs.resume(imported, now=NOW())
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.DONE
    assert stored() == ALL


def test_the_sweep_takes_up_what_no_job_is_at(cast: Cast, queued: list[int]) -> None:
    looked_at = import_jobs.begin(cast.editor, workspace=None, filename="", pieces=[b"Cats purr"], now=NOW())
    running = uploaded(cast.editor, statements(), cast.workspace)
    import_jobs.start(running, now=NOW())
    idle = uploaded(cast.editor, statements(), cast.workspace)
    queued.clear()
    assert import_jobs.sweep(now=NOW()) == 2
    assert sorted(queued) == [looked_at.pk, running.pk] and idle.pk not in queued


def test_what_nobody_finishes_is_cleared_away_after_a_week(
    cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    left = uploaded(cast.editor, statements(), cast.workspace)
    done = uploaded(cast.editor, b"Cats purr", cast.workspace)
    import_jobs.start(done, now=NOW())
    with django_capture_on_commit_callbacks(execute=True):
        import_jobs.advance(done.pk, seconds=60)
    assert list(upload_formats.stored_imports()) == [left.public_id]
    with django_capture_on_commit_callbacks(execute=True):
        import_jobs.sweep(now=NOW() + KEPT - timedelta(hours=1))
        assert left.rows.exists()
        import_jobs.sweep(now=NOW() + KEPT + timedelta(hours=1))
    assert list(Import.objects.values_list("pk", "status")) == [(done.pk, "done")]
    assert not done.rows.exists() and list(upload_formats.stored_imports()) == []


def test_files_whose_workspace_is_gone_are_cleared_away(cast: Cast) -> None:
    imported = uploaded(cast.editor, statements(), cast.workspace)
    cast.workspace.delete()
    import_jobs.sweep(now=NOW())
    assert list(upload_formats.stored_imports()) == [imported.public_id]  # it may still be uploading
    import_jobs.sweep(now=NOW() + timedelta(hours=2))
    assert list(upload_formats.stored_imports()) == []


def test_uploads_are_for_this_user_only_and_have_a_limit(cast: Cast, settings: Any, tmp_path: Path) -> None:
    imported = uploaded(cast.editor, statements(), cast.workspace)
    folder = upload_formats.folder_of(imported.public_id)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, *sorted(folder.iterdir()))]
    assert modes == [0o700, 0o700, 0o600, 0o600]
    settings.IMPORT_MAX_BYTES = 100
    with pytest.raises(TooLarge):
        uploaded(cast.editor, b"x" * 60 + b"\n" + b"y" * 60, cast.workspace)
    assert list(upload_formats.stored_imports()) == [imported.public_id]


def test_uploads_in_a_minute_and_unfinished_ones_are_limited(cast: Cast, settings: Any) -> None:
    for _ in range(import_jobs.MOST_OPEN):
        import_jobs.begin(cast.editor, workspace=None, filename="", pieces=[b"Cats purr"], now=NOW())
    with pytest.raises(Conflict):
        import_jobs.begin(cast.editor, workspace=None, filename="", pieces=[b"Cats purr"], now=NOW())
    settings.THROTTLES = settings.THROTTLES | {"uploads": 1}
    import_jobs.begin(cast.owner, workspace=None, filename="", pieces=[b"Cats purr"], now=NOW())
    with pytest.raises(TooManyRequests):
        import_jobs.begin(cast.owner, workspace=None, filename="", pieces=[b"Cats purr"], now=NOW())


MANY = 20_000


def peak(run_through: Iterator[Any]) -> tuple[int, int]:
    """Return the number of items and the peak of memory in bytes."""
    tracemalloc.start()
    try:
        return sum(1 for _ in run_through), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_many_lines_are_read_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_lines, "ROWS", 100)
    path = tmp_path / "many.jsonl"
    line = json.dumps({"type": "memory", "content": "Cats purr " * 20}).encode() + b"\n"
    with path.open("wb") as file:
        for _ in range(MANY // 1000):
            file.write(line * 1000)

    def chunks() -> Iterator[object]:
        with path.open("rb") as file:
            piece = import_lines.Chunk([], 0, 0, ends=False)
            while not piece.ends:
                piece = import_lines.read_chunk(file, offset=piece.offset, number=piece.number)
                assert len(piece.records) <= 100
                yield from range(len(piece.records))

    count, held = peak(chunks())
    assert count == MANY
    assert held < 2**20 < path.stat().st_size / 4


class Endless:
    """A JSON array that is generated while it is read."""

    def __init__(self, item: bytes, count: int) -> None:
        self.item, self.left, self.begun, self.waiting = item, count, False, b""

    def read(self, size: int = -1, /) -> bytes:
        while len(self.waiting) < size and (self.left or not self.begun):
            self.waiting += (b"," if self.begun else b"[") + self.item
            self.begun, self.left = True, self.left - 1
            if not self.left:
                self.waiting += b"]"
        data, self.waiting = self.waiting[:size], self.waiting[size:]
        return data


def test_the_elements_of_a_long_array_are_built_one_at_a_time() -> None:
    item = as_json({"mapping": {}, "title": "Dinner " * 100})
    count, held = peak(items(Endless(item, 20_000)))
    assert count == 20_000
    assert held < 2 * 2**20 < len(item) * 20_000 / 4
