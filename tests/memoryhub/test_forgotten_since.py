"""Permanent deletions survive a lost database: from newer backups, and by a command."""

import json
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as present
from django.core.management import CommandError
from django.db import connection
from django.utils import timezone

from memories.forgetting.for_good import forget_memories
from memories.models import Memory
from memoryhub import pubsub
from memoryhub.backup import dump
from memoryhub.backup.archive import FORGOTTEN, MANIFEST, Manifest, Reader
from memoryhub.backup.dump import own_name
from memoryhub.backup.storage import BackupError, place_of
from memoryhub.database.startup import close_connections, psycopg_settings
from tests.factories import make_document, make_invitation, make_memory, make_user, make_workspace
from tests.memoryhub.test_backup import PASSPHRASE, _end_other_sessions, changed, contents, run
from workspaces.accounts.invitations import revoke_invitation
from workspaces.documents import documents
from workspaces.models import Document, Invitation

pytestmark = pytest.mark.django_db(transaction=True)
LOST = "TRUNCATE memories_tombstone, workspaces_auditevent, workspaces_user, workspaces_workspace CASCADE"


@pytest.fixture(scope="module")
def backups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the backups that the first test creates: each test gets copies."""
    return tmp_path_factory.mktemp("backups")


@pytest.fixture
def older(backups: Path, tmp_path: Path, settings: Any) -> Iterator[Path]:
    """A backup older than a deletion, beside a newer one and files that do not count; the database is lost."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    settings.EMBEDDED_DATABASE = False  # no cluster is in that folder, and none has to start
    settings.BACKUP_PASSPHRASE = PASSPHRASE
    pubsub.listener.stop()
    _end_other_sessions()
    if not any(backups.iterdir()):
        _make(backups)
    settings.BACKUP_PASSPHRASE = ""
    yield Path(shutil.copytree(backups, tmp_path / "backups")) / "one.zip"
    dump.drop(own_name() + dump.REPLACED)


def _make(folder: Path) -> None:
    olive = make_user("olive")
    workspace = make_workspace(owner=olive)
    make_memory("The deadline is March 15", olive)
    secret = make_memory("Olive lives in Lisbon", olive)
    document = make_document(olive, text="The vault opens at nine.", embedded=False)
    invitation = make_invitation(workspace, olive)
    run("backup", folder / "one.aside")
    forget_memories([secret], by=olive, now=timezone.now())
    documents.forget_document(document, by=olive)
    revoke_invitation(workspace, invitation.public_id, by=olive, now=timezone.now())
    run("backup", folder / "two.zip")
    changed(folder / "one.aside", folder / "one.zip", {"made_at": "2026-01-01T00:00:00+00:00"})
    (folder / "one.aside").unlink()
    later = {"made_at": "2099-01-01T00:00:00+00:00", "installation": "another"}
    changed(folder / "one.zip", folder / "other.zip", later)
    (folder / "strange.zip").write_bytes(b"nobody knows what")
    with connection.cursor() as cursor:
        cursor.execute(LOST)


def remove_part(place: Path, name: str) -> None:
    """Remove a part of the backup, as if an earlier version had made it."""
    with zipfile.ZipFile(place) as source, zipfile.ZipFile(place.with_suffix(".cut"), "w") as target:
        for info in source.infolist():
            content = source.read(info)
            if info.filename == "manifest.json":
                manifest = json.loads(content)
                del manifest["members"][name]
                content = json.dumps(manifest).encode()
            if info.filename != name:
                target.writestr(info, content)
    place.with_suffix(".cut").replace(place)


ODD: list[
    tuple[dict[str, Any], int, int]
] = [  # changes to the manifest; the position of a byte and the bits flipped in it
    ({"made_at": "0001-01-01T00:00:00+14:00"}, 0, 0),
    ({}, 6, 1),  # encrypted
    ({}, 43, 7),  # corrupt compression
]


@pytest.mark.parametrize(("change", "at", "turned"), ODD, ids=str)
def test_another_zip_with_a_manifest_is_no_backup(
    tmp_path: Path, change: dict[str, Any], at: int, turned: int
) -> None:
    """They may be in the same folder: a restore and `--keep` inspect each file."""
    manifest = Manifest("2026-01-01T00:00:00+00:00", 18, {}, {}, "ours")
    with zipfile.ZipFile(tmp_path / "odd.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(MANIFEST, json.dumps(asdict(manifest) | change))
    content = bytearray((tmp_path / "odd.zip").read_bytes())
    content[at] ^= turned
    content[content.rfind(b"PK\x01\x02") + 8] |= at == 6
    (tmp_path / "odd.zip").write_bytes(content)
    with pytest.raises(BackupError, match="no whole backup"):
        Reader(place_of(str(tmp_path / "odd.zip")))


@pytest.mark.parametrize("made_before", [False, True])
def test_newer_backups_beside_it_say_what_was_forgotten(older: Path, made_before: bool) -> None:
    newer = older.with_name("two.zip")
    if made_before:  # deletions were recorded already
        remove_part(newer, FORGOTTEN)
    said = run("restore", older)
    assert contents() == {"The deadline is March 15"}, said
    assert not Document.objects.exists() and Invitation.objects.get().revoked_at
    assert f"{newer} is newer:" in said and said.count("is newer") == 1
    assert "Texts forgotten since: 1; memories removed again: 1" in said
    assert "Left out: " in said and "strange.zip" in said
    with dump.connect() as open_connection:
        names = {name for (name,) in open_connection.execute("SELECT datname FROM pg_database")}
    assert not any(name.endswith("_forgotten") for name in names)


def test_a_newer_one_that_is_damaged_is_not_passed_over(older: Path) -> None:
    newer = older.with_name("two.zip")
    whole = newer.read_bytes()
    with zipfile.ZipFile(newer) as archive:
        at = archive.getinfo(FORGOTTEN).header_offset + 200
    newer.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(CommandError, match="newer: move it away"):
        run("restore", older)
    assert not Memory.objects.exists()


def test_a_database_that_was_recovered_is_told_by_a_command(older: Path, settings: Any) -> None:
    newer = older.with_name("two.zip").rename(present.DATA_DIR / "two.zip")
    run("restore", older)
    assert "Olive lives in Lisbon" in contents() and Document.objects.exists()
    said = run("forget_again", newer)
    assert contents() == {"The deadline is March 15"} and not Document.objects.exists()
    assert "Texts forgotten since: 1; memories removed again: 1" in said
    assert "Texts forgotten since: 0; memories removed again: 0" in run("forget_again", newer)
    with pytest.raises(CommandError, match="could not be read"):
        run("forget_again", "postgres://nobody@127.0.0.1:1/nothing")
    with pytest.raises(CommandError, match="cannot be read"):
        run("forget_again", "none.zip")
    settings.FORGET_KEY = "of another installation " * 2
    with pytest.raises(CommandError, match="another installation"):
        run("forget_again", newer)


def test_another_database_tells_nothing(older: Path) -> None:
    """A database without links and invitations would revoke all of those here."""
    name, place = f"{own_name()}_another", psycopg_settings()
    address = f"postgres://{place['user']}@/{name}?host={place['host']}&port={place['port']}"
    with dump.connect("postgres", autocommit=True) as open_connection:
        open_connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
    try:
        for made in ("SELECT 1", "CREATE TABLE django_migrations AS SELECT now() AS applied"):
            with dump.connect(name) as another:
                another.execute(made)  # type: ignore[arg-type]
            with pytest.raises(CommandError, match="of another installation"):
                run("forget_again", address)
    finally:
        dump.drop(name)


def test_on_another_machine_the_key_of_the_backup_tells_what_was_forgotten(
    older: Path, settings: Any
) -> None:
    """An empty, unmigrated database works as well, such as the one in DATABASE_URL."""
    settings.FORGET_KEY = "of another machine " * 3
    own, aside = own_name(), f"{own_name()}_aside"
    _end_other_sessions()
    with dump.connect("postgres", autocommit=True) as open_connection:
        open_connection.execute(f'ALTER DATABASE "{own}" RENAME TO "{aside}"')  # type: ignore[arg-type]
        open_connection.execute(f'CREATE DATABASE "{own}"')  # type: ignore[arg-type]
    try:
        with pytest.raises(CommandError, match="MEMORYHUB_BACKUP_PASSPHRASE"):
            run("restore", older)
        with connection.cursor() as cursor:
            assert "memories_memory" not in connection.introspection.table_names(cursor)
        settings.BACKUP_PASSPHRASE = PASSPHRASE
        run("restore", older)
        assert contents() == {"The deadline is March 15"} and not Document.objects.exists()
    except BaseException:
        close_connections()
        dump.drop(own)
        with dump.connect("postgres", autocommit=True) as open_connection:
            open_connection.execute(f'ALTER DATABASE "{aside}" RENAME TO "{own}"')  # type: ignore[arg-type]
        raise
    dump.drop(aside)


def test_places_know_their_folder(tmp_path: Path) -> None:
    for text, folder in (
        (tmp_path / "one.zip", tmp_path),
        ("s3://bucket/a/b/one.zip", "s3://bucket/a/b/"),
        ("s3://bucket/one.zip", "s3://bucket/"),
    ):
        assert str(place_of(text).folder) == str(folder)
