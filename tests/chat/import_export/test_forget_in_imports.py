"""Permanent deletion reaches the files of a user's unfinished imports, and does not affect others' imports."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from chat.import_export import import_jobs, upload_formats
from chat.import_export.forget_in_imports import forget_in_imports
from chat.import_export.import_jobs import with_texts
from chat.models.imports import Import, ImportStatus
from memories.forgetting.for_good import forget_memories
from memories.forgetting.remaining_copies import Wanted
from memories.models import Memory, Revision, Tombstone
from tests.chat.import_export.test_exchange import uploaded
from tests.chat.import_export.test_exchange_foreign import as_json
from tests.chat.import_export.test_exchange_rules import AT, file_of, memory
from tests.conftest import Cast
from tests.factories import make_memory
from tests.races import Pause, Work
from workspaces.models import User

TEXT = "I was ill in May"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _data_dir(tmp_path: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DATA_DIR = tmp_path
    # The test's transaction is never committed, so on_commit callbacks run at once.
    monkeypatch.setattr("chat.import_export.import_jobs.transaction.on_commit", lambda act, **_: act())
    monkeypatch.setattr("chat.import_export.import_jobs._queue", lambda imported: None)


def bytes_of(imported: Import) -> bytes:
    return b"".join(
        path.read_bytes() for path in sorted(upload_formats.folder_of(imported.public_id).iterdir())
    )


def forget(text: str, by: User, cast: Cast) -> Any:
    return forget_memories([make_memory(text, by, cast.workspace)], by=by, now=timezone.now())


def finish(imported: Import) -> Import:
    if imported.status == ImportStatus.PREVIEW:
        import_jobs.start(imported, now=timezone.now())
    while import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.UNFINISHED:
        pass
    imported.refresh_from_db()
    assert (imported.status, imported.error) == (ImportStatus.DONE, "")
    return imported


RICH = [
    memory("Cats purr", source_excerpt=f"olive: {TEXT}.\nAssistant: Get well.", summary="They do"),
    memory(TEXT.upper() + "!"),
    memory(
        "Better", revisions=[{"action": "edit", "at": AT, "before": {"content": TEXT, "category": "fact"}}]
    ),
    memory("Dogs bark", summary=TEXT),
    memory("Birds sing", key="\u00fc" * 50),
    "no json",
]


def test_text_goes_from_a_waiting_export_and_the_rest_is_stored(cast: Cast) -> None:
    for ascii_only in (True, False):
        lines = [
            each if isinstance(each, str) else json.dumps(each, ensure_ascii=ascii_only) for each in RICH
        ]
        require_forgotten(uploaded(cast.editor, file_of(*lines), cast.workspace), cast)
        Memory.objects.all().delete()
        Tombstone.objects.all().delete()


def require_forgotten(imported: Import, cast: Cast) -> None:
    size = len(bytes_of(imported))
    report = forget(TEXT, cast.editor, cast)
    assert report.removed["lines of imports"] == 4
    assert TEXT.lower().encode() not in bytes_of(imported).lower()
    assert len(bytes_of(imported)) == size
    imported.refresh_from_db()
    assert (imported.foreseen["memory"]["new"], imported.foreseen["memory"]["refused"]) == (4, 1)
    row = imported.rows.get(reason="it was forgotten for good here")
    [shown] = with_texts(imported, [row])
    assert (row.outcome, shown.text, shown.gone) == ("refused", "", False)
    finish(imported)
    assert imported.outcomes["memory"]["refused"] == 1
    assert set(Memory.objects.values_list("content", "source_excerpt", "summary")) == {
        ("Cats purr", "", "They do"), ("Better", "", None), ("Dogs bark", "", None), ("Birds sing", "", None),
    }  # fmt: skip
    assert Revision.objects.get(action="edit").before == {"category": "fact"}


FOREIGN = {
    "a list": f"Cats purr\n- {TEXT}\nDogs bark\n".encode(),
    "json": as_json(["Cats purr", {"content": TEXT}, {"content": "Dogs bark", "summary": TEXT}]),
}


def test_text_goes_from_the_lines_made_of_another_programs_export(cast: Cast) -> None:
    imports = [uploaded(cast.editor, data, cast.workspace) for data in FOREIGN.values()]
    for imported in imports:
        assert not upload_formats.upload_of(imported.public_id).exists(), (
            "once checked only the lines are kept"
        )
        assert TEXT.encode() in bytes_of(imported)
    assert forget(TEXT, cast.editor, cast).removed["lines of imports"] >= len(imports)
    for imported in imports:
        assert TEXT.encode() not in bytes_of(imported)
        finish(imported)
        assert set(Memory.objects.values_list("content", flat=True)) == {"Cats purr", "Dogs bark"}
        Memory.objects.all().delete()


def test_text_goes_from_stopped_imports_too(cast: Cast) -> None:
    imports = [
        uploaded(cast.editor, file_of(memory("Cats purr"), memory(TEXT)), cast.workspace) for _ in range(2)
    ]
    Import.objects.filter(pk=imports[0].pk).update(status=ImportStatus.STOPPED)
    forget(TEXT, cast.editor, cast)
    assert not any(TEXT.encode() in bytes_of(imported) for imported in imports)


def test_others_files_are_theirs_and_the_tombstone_holds_for_them(cast: Cast) -> None:
    imported = uploaded(cast.owner, file_of(*RICH), cast.workspace)
    before = bytes_of(imported)
    report = forget(TEXT, cast.editor, cast)
    assert report.removed["lines of imports"] == 0
    assert bytes_of(imported) == before
    finish(imported)
    assert not Memory.objects.filter(content__icontains=TEXT).exists()
    assert not Memory.objects.filter(summary__icontains=TEXT).exists()
    assert Revision.objects.get(action="edit").before == {"category": "fact"}


def test_what_is_looked_at_later_is_refused_and_its_text_goes_from_the_file(cast: Cast) -> None:
    forget(TEXT, cast.editor, cast)
    for data in (file_of(memory("Cats purr"), memory(TEXT)), FOREIGN["a list"]):
        imported = uploaded(cast.editor, data, cast.workspace)
        assert imported.foreseen["memory"]["refused"] == 1
        assert TEXT.encode() not in bytes_of(imported)


@pytest.mark.django_db(transaction=True)
def test_lines_that_are_being_looked_at_while_it_is_forgotten(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = FOREIGN["a list"]
    pause = Pause()
    monkeypatch.setattr(import_jobs, "import_records", pause.after(import_jobs.import_records))
    begun = import_jobs.begin(
        cast.editor, workspace=cast.workspace, filename="list", pieces=[data], now=timezone.now()
    )
    running = Work(lambda: import_jobs.advance(begun.pk, seconds=60))
    assert pause.reached.wait(10)
    assert TEXT.encode() in bytes_of(begun)
    forgetting = Work(lambda: forget(TEXT, cast.editor, cast))
    assert forgetting.waits_for_a_lock()
    pause.goes_on.set()
    assert (running.end(), forgetting.end().removed["lines of imports"]) == (import_jobs.JobResult.CHECKED, 1)
    assert TEXT.encode() not in bytes_of(begun)


def test_a_finished_or_swept_one_costs_nothing(cast: Cast) -> None:
    imported = uploaded(cast.editor, file_of(memory(TEXT)), cast.workspace)
    import_jobs.sweep(now=timezone.now() + timedelta(days=8))
    assert not upload_formats.folder_of(imported.public_id).exists()
    assert forget_in_imports(Wanted({TEXT}, set()), cast.editor) == {}


HOSTILE = [
    '{"type": "memory", "content": "' + TEXT + '", "importance": 1e400}',
    '{"type": "memory", "content": ["' + TEXT + '"], "revisions": {"before": 5}}',
    '{"type": "memory", "content": null, "revisions": [5, {"before": ["'
    + TEXT
    + '"]}], "source_excerpt": 7}',
    '{"type": "receipt", "items": [5, {"content": 5}, {"content": "' + TEXT + '"}]}',
    '{"type": "memory", "content": "a\\ud800", "source_excerpt": "' + TEXT + '"}',
    '{"type": "forgotten"}',
    '{"type": "memory", "content": "' + "x" * 3000 + '"',
    "[" * 5000,
    "",
]


def test_hostile_lines_break_nothing(cast: Cast) -> None:
    imported = uploaded(cast.editor, file_of(*HOSTILE, memory("Cats purr")), cast.workspace)
    forget(TEXT, cast.editor, cast)
    finish(imported)
    assert "Cats purr" in Memory.objects.values_list("content", flat=True)


def test_who_names_a_member_as_author_learns_nothing_of_what_they_forgot_for_themselves(cast: Cast) -> None:
    """The tombstone stays and keeps its effect for the member."""
    personal = make_memory(TEXT, cast.editor, cast.workspace, scope="user")
    forget_memories([personal], by=cast.editor, now=timezone.now())
    edit = {"action": "edit", "at": AT}
    lines = [
        memory(text, author="eddie", summary=text, revisions=[{**edit, "before": {"content": text}}])
        for text in (TEXT, "I was well in June")
    ]
    imported = uploaded(cast.owner, file_of(*lines), cast.workspace)
    assert (imported.foreseen["memory"]["new"], imported.foreseen["memory"]["refused"]) == (2, 0)
    finish(imported)
    stored = Memory.objects.filter(author=cast.editor).values_list("content", "summary")
    assert set(stored) == {(TEXT, TEXT), ("I was well in June", "I was well in June")}
    assert Revision.objects.filter(before__content=TEXT).exists()
    own = uploaded(cast.editor, file_of(memory(f"{TEXT}!", author="eddie")), cast.workspace)
    assert own.foreseen["memory"]["refused"] == 1, "the tombstone is still their own"
