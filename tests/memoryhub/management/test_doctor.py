"""The doctor says what is wrong, what to do, and that all is well only when it is."""

from __future__ import annotations

import shutil
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from django_q.models import OrmQ, Task

from memoryhub.management.commands import doctor
from memoryhub.monitoring import health
from memoryhub.monitoring.health import GOOD, Part, Readiness

pytestmark = pytest.mark.django_db(transaction=True)


class Disk(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Part]:
    found = dict.fromkeys(doctor.WHAT_TO_DO, GOOD)
    monkeypatch.setattr(doctor, "look", lambda: Readiness(found))
    return found


def visit() -> tuple[str, str]:
    """What it says, and the verdict where something is wrong."""
    out = StringIO()
    try:
        call_command("doctor", stdout=out)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


def test_it_knows_what_to_do_about_every_part() -> None:
    assert health.look().parts.keys() | {"replica"} == doctor.WHAT_TO_DO.keys()  # one for all that there are


def test_all_is_well(parts: dict[str, Part]) -> None:
    said, verdict = visit()
    assert (said.splitlines()[-1], verdict) == ("Nothing is wrong.", "")


def test_a_long_queue_is_said_with_its_length(
    parts: dict[str, Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "MOST_WAITING", 2)
    for number in (2, 3):
        OrmQ.objects.all().delete()
        OrmQ.objects.bulk_create(OrmQ(key="memoryhub", payload="") for _ in range(number))
        assert ("jobs: 3 are in the queue" in visit()[0]) == (number == 3)


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
    said, verdict = visit()
    assert "worker: none is running. Start MemoryHub" in said
    assert "disk: 0.0 GB" in said
    assert f"upgrade: {tmp_path}/postgres.before-18 is the database of before" in said
    assert "https: " in said
    assert "debug: " in said
    assert "jobs: 1 of memories.jobs.embed failed in a day" in said
    assert verdict == "6 things need attention."
