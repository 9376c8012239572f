"""Backups: creation, verification, refusal and restore, on the real database with PostgreSQL's own programs."""

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone

from memories.forgetting.for_good import forget_memories
from memories.models import Asset, Memory
from memoryhub import pubsub
from memoryhub.backup import dump
from memoryhub.backup.archive import Reader, installation
from memoryhub.backup.storage import BackupError, FilePlace, place_of
from memoryhub.database.startup import close_connections
from memoryhub.management.commands import doctor
from tests.factories import make_artifact, make_asset, make_document, make_memory, make_user
from tests.memoryhub.local.processes import named_in_command
from workspaces.artifacts import forget_artifact
from workspaces.documents import documents, files
from workspaces.models import Artifact, AuditEvent, Document, User

pytestmark = pytest.mark.django_db(transaction=True)
PASSPHRASE = "correct horse battery"


@pytest.fixture
def world(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """A data folder without a passphrase, whose key derivation is slow; everything is restored afterwards."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    settings.EMBEDDED_DATABASE = False  # no cluster is in that folder, and none has to start
    pubsub.listener.stop()  # left open by earlier tests
    _end_other_sessions()
    yield tmp_path / "one.zip"
    dump.drop(dump.own_name() + dump.REPLACED)


def _end_other_sessions() -> None:
    """End sessions left by threads of earlier tests: a restore refuses while others use the database."""
    close_connections()
    with dump.connect(autocommit=True) as open_connection:
        open_connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def run(command: str, *arguments: Any, **options: Any) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out, **options)
    return out.getvalue()


def contents() -> set[str]:
    return set(Memory.objects.values_list("content", flat=True))


def test_what_was_forgotten_since_stays_forgotten_and_the_rest_comes_back(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    olive = make_user("olive")
    kept = make_memory("The deadline is March 15", olive)
    make_memory("Olive lives in Lisbon", olive)
    said_again = make_memory("The office is in Porto", olive)
    asset = make_asset(kept, b"a stored file")
    made = run("backup", world)
    assert "bytes in" in made
    forget_memories(Memory.objects.exclude(pk=kept.pk), by=olive, now=timezone.now())
    kept.delete()
    make_memory("Of after the backup", olive)
    with pytest.raises(CommandError, match="--replace"):
        run("restore", world)
    assert contents() == {"Of after the backup"}
    for file in (settings.DATA_DIR / "assets").rglob("*"):
        if file.is_file():
            file.unlink()

    said = run("restore", world, replace=True)

    assert contents() == {"The deadline is March 15"}, said
    assert "memories removed again: 2" in said and "The keys stay as they are here." in said
    assert not Memory.objects.filter(pk=said_again.pk).exists()
    assert [path.read_bytes() for path in (settings.DATA_DIR / "assets").rglob(asset.file_name)] == [
        b"a stored file"
    ]
    (kept,) = [said for said in doctor.troubles() if said.startswith("restore: ")]
    assert "is the database of before a restore, with what was forgotten since. To remove it: " in kept
    settings.EMBEDDED_DATABASE = True
    monkeypatch.setattr("memoryhub.management.commands.scrub.scrub", lambda *_: None)
    with pytest.raises(CommandError, match=r"but for one database: .*/dropdb -h .*_before_restore\. Then"):
        call_command("scrub")
    with dump.connect(dump.own_name() + dump.REPLACED) as before:
        assert before.execute("SELECT content FROM memories_memory").fetchall() == [("Of after the backup",)]


class Killed(Exception):
    pass


def stored() -> list[str]:
    return [path.name for path in (settings.DATA_DIR / "documents").rglob("*") if path.is_file()]


def test_documents_and_artifacts_forgotten_since_stay_forgotten_however_often_it_is_restored(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    olive = make_user("olive")
    secret = make_document(olive, text="The vault opens at nine.", embedded=False)
    documents.replace_text(secret, text="The vault opens at ten.", by=olive, now=timezone.now())
    kept = make_document(olive, text="The bins go out on Monday.", embedded=False)
    page = make_artifact(olive, embedded=False)
    run("backup", world)
    documents.forget_document(secret, by=olive)
    forget_artifact(page, by=olive)
    files.remove(kept.file_name)
    with monkeypatch.context() as patch, pytest.raises(CommandError, match="No room"):
        patch.setattr(dump, "swap", Mock(side_effect=BackupError("No room.")))
        run("restore", world, replace=True)
    assert stored() == []

    for _ in range(2):  # the second time only the first restore can have removed it
        said = run("restore", world, replace=True)
        assert "Forgotten since, documents: 1; removed again: 1" in said, said
        assert "Forgotten since, artifacts: 1; removed again: 1" in said and not Artifact.objects.exists()
        assert set(Document.objects.values_list("public_id", flat=True)) == {kept.public_id}
        assert stored() == [kept.file_name]


def test_a_drill_compares_and_leaves_nothing(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_user("olive")
    run("backup", world)
    for name in ("memoryhub-20200101-000000.zip", "memoryhub-20200102-000000.zip", "mine.zip"):
        shutil.copy(world, world.parent / name)
    changed(world, world.parent / "memoryhub-20190101-000000.zip", {"installation": "another"})
    (world.parent / "memoryhub-20190102-000000.zip").write_bytes(b"nobody knows whose")
    world.unlink()
    laid = world.parent / f"memoryhub-{'2' * 8}-000000.zip.unfinished"
    monkeypatch.setattr("time.strftime", lambda *_: laid.stem)
    laid.touch(mode=0o666)  # planted by another user who wants to read the backup
    said = run("backup", world.parent, keep=2)
    assert "memoryhub-20200101-000000.zip removed" in said and said.count("removed") == 1
    assert laid.read_bytes() == b"" and (world.parent / laid.stem).stat().st_mode & 0o777 == 0o600
    names = sorted(path.name for path in world.parent.glob("*.zip"))
    made = names.pop(3)
    assert names == [
        "memoryhub-20190101-000000.zip",  # of another installation
        "memoryhub-20190102-000000.zip",
        "memoryhub-20200102-000000.zip",
        "mine.zip",
    ]
    User.objects.all().delete()
    assert "as they were counted" in run("restore", world.parent / made, drill=True)
    assert not User.objects.exists()
    with dump.connect() as connection:
        databases_there = {name for (name,) in connection.execute("SELECT datname FROM pg_database")}
    assert not any(name.endswith(("_drill", dump.RESTORING)) for name in databases_there)


def test_what_a_killed_backup_left_goes_a_day_later(world: Path, settings: Any) -> None:
    """If MemoryHub is stopped, the backup starts its database and stops it again."""
    settings.EMBEDDED_DATABASE = True
    killed, writes = (world.parent / f".memoryhub-20260101-030000.zip.{each * 8}.unfinished" for each in "ab")
    mine = world.parent / ".notes.unfinished"
    for path in (killed, writes, mine):
        path.write_bytes(b"half")
    for path in (killed, mine):
        os.utime(path, (0, 0))
    run("backup", world)
    assert (killed.exists(), writes.exists(), mine.exists()) == (False, True, True)
    assert (settings.DATA_DIR / "postgres").exists() and not named_in_command(settings.DATA_DIR)


def test_that_it_was_made_is_noted_where_doctor_and_prometheus_look(world: Path, settings: Any) -> None:
    before = timezone.now()
    run("backup", world)
    event = AuditEvent.objects.get(verb="backup_made")
    assert event.details == {"bytes": world.stat().st_size, "installation": installation()}
    assert event.at >= before
    settings.AFTER_BACKUP = ["tests.memoryhub.test_backup.not_noted"]
    two = world.with_name("two.zip")
    assert "could not be noted: read only" in run("backup", two)
    with Reader(place_of(str(two))) as archive:
        archive.verify()


def not_noted(size: int, installation: str) -> None:
    raise OperationalError("read only")


def test_a_drill_looks_for_the_files_that_rows_tell_of(world: Path, tmp_path: Path) -> None:
    olive = make_user("olive")
    asset = make_asset(make_memory("The deadline is March 15", olive), b"a stored file")
    deleted, lost = (make_document(olive, text=text, embedded=False) for text in ("One.", "Two."))
    for gone in (deleted, lost):
        files.remove(gone.file_name)
    run("backup", world)
    Document.objects.filter(pk=deleted.pk).delete()
    with pytest.raises(
        CommandError, match=f"tell of 1 are not in the backup, such as documents/../{lost.file_name}"
    ):
        run("restore", world, drill=True)
    Document.objects.all().delete()
    said = run("restore", world, drill=True)
    assert "1 stored files that rows tell of: all there; 2 were deleted while it was made" in said
    Asset.objects.filter(pk=asset.pk).update(sha256="0" * 64)
    assert "bytes in" in run("backup", tmp_path / "two.zip")  # a fault does not prevent the backup
    with pytest.raises(
        CommandError, match=f"of 1 are others in the backup, such as assets/.*/{asset.file_name}"
    ):
        run("restore", tmp_path / "two.zip", drill=True)


def test_an_empty_installation_takes_it_with_its_keys(world: Path, settings: Any) -> None:
    settings.BACKUP_PASSPHRASE = PASSPHRASE
    make_user("olive")
    run("backup", world)
    User.objects.all().delete()
    (settings.DATA_DIR / "secret-key").write_text("another")
    theirs, settings.SECRET_KEY = settings.SECRET_KEY, "x" * 50
    said = run("restore", world)
    assert User.objects.get().username == "olive"
    assert (settings.DATA_DIR / "secret-key").read_text() == theirs
    assert (settings.DATA_DIR / "secret-key.before-restore").read_text() == "another"
    assert theirs not in said
    assert theirs.encode() not in world.read_bytes()
    settings.BACKUP_PASSPHRASE = "another passphrase"
    with pytest.raises(CommandError, match="not the passphrase"):
        run("restore", world, replace=True)
    settings.BACKUP_PASSPHRASE = ""
    settings.FORGET_KEY = "of another installation " * 2
    assert "have to be typed again" in run("restore", world, replace=True)


def test_what_is_no_whole_backup_is_refused_and_changes_nothing(world: Path, tmp_path: Path) -> None:
    make_user("olive")
    run("backup", world)
    with pytest.raises(CommandError, match="there already"):
        run("backup", world)
    whole = world.read_bytes()
    broken = {
        "cut.zip": whole[: len(whole) // 2],
        "empty.zip": b"",
        "other.zip": b"hello" * 100,
        "bit.zip": whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:],
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CommandError, match=r"no whole backup|Damaged"):
            run("restore", tmp_path / name, replace=True)
    with pytest.raises(CommandError, match="cannot be read"):
        run("restore", tmp_path / "none.zip", replace=True)
    for change, why in (
        ({"migrations": {"memories": "9999_later"}}, "newer MemoryHub"),
        ({"migrations": {"memories": "0030_imported_by"}}, "export what it holds"),
        ({"format": 2}, "newer"),
    ):
        with pytest.raises(CommandError, match=why):
            run("restore", changed(world, tmp_path / "changed.zip", change), replace=True)
    for malformed in ({"members": []}, {"rows": None}, {"migrations": []}, {"made_at": "x"}):
        with pytest.raises(CommandError, match="no whole backup"):
            run("restore", changed(world, tmp_path / "malformed.zip", malformed), replace=True)
    for name in ("assets/../../evil", "documents//evil", "assets/./x"):
        made = changed(world, tmp_path / "evil.zip", {"members": {name: [1, "0"]}})
        with Reader(place_of(made)) as archive, pytest.raises(BackupError, match="no name of a stored file"):
            list(archive.files())
    assert User.objects.get().username == "olive"


def changed(path: Path, to: Path, change: dict[str, Any]) -> Path:
    """Return a copy of the backup with a changed manifest."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(to, "w") as target:
        for info in source.infolist():
            content = source.read(info)
            if info.filename == "manifest.json":
                content = json.dumps(json.loads(content) | change).encode()
            target.writestr(info, content)
    return to


def test_errors_of_the_disk_say_which_backup_failed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    place = FilePlace(tmp_path / "file" / "backup.zip")
    for act in (place.size, place.remove, lambda: place.named_like("*"), place.writing().__enter__):
        with pytest.raises(BackupError, match=r"backup\.zip could not be"):
            act()
