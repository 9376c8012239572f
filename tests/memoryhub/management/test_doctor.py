"""The doctor reports each fault with its remedy, and no false success."""

import shutil
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from allauth.mfa.models import Authenticator
from django.core.files.storage import Storage, storages
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ, Task

from memoryhub import mail
from memoryhub.encryption import seal
from memoryhub.http import health
from memoryhub.http.health import GOOD, Part
from memoryhub.management.commands import doctor
from tests.factories import make_user
from workspaces.models import AuditEvent, User, WaitingMail

pytestmark = pytest.mark.django_db(transaction=True)


class Disk(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Part]:
    found = dict.fromkeys(doctor.WHAT_TO_DO, GOOD)
    monkeypatch.setattr(doctor, "check", lambda: found)
    return found


def run_doctor() -> tuple[str, str]:
    """Run the doctor. Return its output, and the error if there is one."""
    out = StringIO()
    try:
        call_command("doctor", stdout=out)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


def test_all_is_well(parts: dict[str, Part]) -> None:
    said, verdict = run_doctor()
    assert (said.splitlines()[-1], verdict) == ("Nothing is wrong.", "")


def test_a_long_queue_is_said_with_its_length(
    parts: dict[str, Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "MOST_WAITING", 2)
    for number in (2, 3):
        OrmQ.objects.all().delete()
        OrmQ.objects.bulk_create(OrmQ(key="memoryhub", payload="") for _ in range(number))
        assert ("jobs: 3 are in the queue" in run_doctor()[0]) == (number == 3)


def test_each_trouble_is_said_with_what_to_do(
    parts: dict[str, Part], settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts["worker"] = Part(False, "none is running")
    settings.DATA_DIR = tmp_path
    (tmp_path / "postgres.before-18").mkdir()
    settings.HOST, settings.HTTPS, settings.DEBUG = "0.0.0.0", False, True
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(10, 9, 1))
    now = timezone.now()
    for number, stopped in enumerate((now, now - timedelta(days=3))):
        Task.objects.create(
            id=f"{number}",
            name=f"{number}",
            func="memories.jobs.embed",
            started=stopped,
            stopped=stopped,
            success=False,
        )
    said, verdict = run_doctor()
    assert "worker: none is running. Start MemoryHub" in said
    assert "disk: 0.0 GB" in said
    assert f"upgrade: {tmp_path}/postgres.before-18 is the database of before" in said
    assert "https: " in said
    assert "debug: " in said
    assert "jobs: 1 of memories.jobs.embed failed in a day" in said
    assert verdict == "6 things need attention."


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (None, "backup: none was ever made. Run `manage.py backup`"),
        (8, "backup: the last one was made 8 days ago. Run"),
        (6, ""),
    ],
)
def test_a_backup_that_is_due_is_said(
    parts: dict[str, Part], settings: Any, made: int | None, says: str
) -> None:
    now = timezone.now()
    olive = make_user("olive")
    if made is not None:
        AuditEvent.objects.create(verb="backup_made", at=now - timedelta(days=30))
        AuditEvent.objects.create(verb="backup_made", at=now - timedelta(days=made))
    assert ("backup: " in run_doctor()[0]) == (made == 8), "there was somebody for less than a week"
    User.objects.filter(pk=olive.pk).update(date_joined=now - timedelta(days=8))
    said = run_doctor()[0]
    assert says in said and ("backup: " in said) == bool(says)
    settings.BACKUP_DAYS = 0
    assert "backup: " not in run_doctor()[0]


def test_mail_that_waits_is_said(parts: dict[str, Part], settings: Any) -> None:
    now = timezone.now()
    # As every mail is for a minute
    WaitingMail.objects.create(sealed="x", created_at=now, next_attempt_at=now)
    assert run_doctor() == (run_doctor()[0], "") and "mail" not in run_doctor()[0]
    for hours in (1, 3):
        WaitingMail.objects.create(sealed="x", created_at=now - timedelta(hours=hours), next_attempt_at=now)
    assert (
        "mail: 2 have waited for up to 3 hours. The server does not take it: see MEMORYHUB_SMTP_URL"
        in run_doctor()[0]
    )
    settings.EMAIL_BACKEND = mail.NONE
    assert "No server is set any more" in run_doctor()[0]


def test_keys_of_another_host_are_said(parts: dict[str, Part], settings: Any, tmp_path: Path) -> None:
    sealed = seal("a secret")
    Authenticator.objects.create(user=make_user("olive"), type="totp", data={"secret": sealed})
    call_command("backup", tmp_path / "one.zip", stdout=StringIO())
    assert run_doctor()[1] == ""
    settings.SECRET_KEY = "k" * 32
    assert "keys: 1 stored secrets" in run_doctor()[0]
    settings.ENCRYPTION_KEYS = []
    settings.FORGET_KEY = "f" * 32
    assert "keys: the last backup was made with another MEMORYHUB_FORGET_KEY" in run_doctor()[0]
    assert run_doctor()[1] == "2 things need attention."


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, ""), (-95, "95 seconds behind"), (95, "95 seconds ahead of")]
)
def test_a_clock_that_goes_wrong_is_said(
    parts: dict[str, Part], monkeypatch: pytest.MonkeyPatch, seconds: int, said: str
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(seconds=seconds)

    monkeypatch.setattr(doctor, "datetime", Clock)
    found = run_doctor()[0]
    assert said in found and ("clock: " in found) == bool(said)


def test_what_the_database_alone_knows_is_no_trouble_of_its_own(parts: dict[str, Part]) -> None:
    parts["database"], parts["writes"] = Part(False, "cannot be reached"), health.UNKNOWN
    said, verdict = run_doctor()
    assert "writes: unknown without the database.\n" in said and verdict == "1 thing needs attention."


class Refusing(Storage):
    def _save(self, name: str, content: Any) -> str:
        raise OSError("denied to AKIA")

    def exists(self, name: str) -> bool:
        return False


def test_where_files_lie_takes_them_or_it_is_said(
    parts: dict[str, Part], settings: Any, tmp_path: Path
) -> None:
    def stored_by(backend: str) -> None:
        settings.STORAGES = settings.STORAGES | {"documents": {"BACKEND": backend}}

    settings.FILES_DIR = tmp_path  # earlier tests leave files in the shared folder
    stored_by("django.core.files.storage.InMemoryStorage")
    assert run_doctor()[1] == "" and storages["documents"].listdir("") == ([], [])
    stored_by("tests.memoryhub.management.test_doctor.Refusing")
    said = run_doctor()[0]
    assert "files: the store of the documents takes no file, or does not give it up (OSError)" in said
    assert "AKIA" not in said
    (tmp_path / "file").touch()
    settings.FILES_DIR = str(tmp_path / "file" / "below")
    assert (
        f"files: {tmp_path}/file may not be written by this user. Files of people are kept in"
        in run_doctor()[0]
    )


def test_a_pooler_that_is_away_is_said(parts: dict[str, Part], settings: Any) -> None:
    place = connection.settings_dict
    settings.POOLER_URL = (
        f"postgres://{place['USER']}@/{place['NAME']}?host={place['HOST']}&port={place['PORT']}"
    )
    assert run_doctor()[1] == ""
    settings.POOLER_URL = "postgres://olive:sesame@127.0.0.1:1/hub"
    said = run_doctor()[0]
    assert "pooler: it does not let us to the database: " in said and "unset MEMORYHUB_POOLER_URL" in said
    assert "sesame" not in said
