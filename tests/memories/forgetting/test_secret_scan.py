"""Stored rows checked against new credential rules: on recall, and all of them by a command."""

import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import caches
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from memories import tasks
from memories.forgetting import remaining_copies
from memories.judging import secret_filter
from memories.judging.secret_filter import RULES
from memories.models import Memory
from memories.recalling.loading import load_memories
from memories.writing import changing
from memoryhub.errors import SecretRefused
from tests.conftest import Cast
from tests.factories import make_memory
from tests.memories.secret_samples import rand

TOKEN = "ghp_" + rand(36)
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]


@pytest.fixture(autouse=True)
def nothing_noted() -> None:
    caches["process"].clear()


def slipped_in(cast: Cast, content: str = f"The token is {TOKEN}", **fields: Any) -> Memory:
    """Create a row as it was stored under older rules."""
    number = Memory.objects.count()
    memory = make_memory(f"Row number {number}", cast.owner, cast.workspace)
    Memory.objects.filter(pk=memory.pk).update(content=content, secret_rules=RULES - 1, **fields)
    memory.refresh_from_db()
    return memory


def run(*options: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("scan_secrets", *options, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def loaded(*memories: Memory) -> set[Memory]:
    """Return those of these memories that recall would return."""
    params = {
        "now": timezone.now(),
        "places": {memory.place for memory in memories},
        "workspaces": {memory.workspace_id for memory in memories},
    }
    return set(load_memories([memory.pk for memory in memories], params, model="").values())


def jobs() -> list[dict[str, Any]]:
    return [job.task for job in OrmQ.objects.all() if job.task["func"] == "memories.tasks.recheck_memories"]


def test_what_the_gate_stores_is_checked_and_costs_no_query_again(cast: Cast) -> None:
    memory = make_memory("The kettle is green", cast.owner, cast.workspace)
    assert memory.secret_rules == RULES
    with CaptureQueriesContext(connection) as captured:
        assert loaded(memory) == {memory}
    assert len(captured) == 1
    assert jobs() == []


def test_what_newer_rules_refuse_is_dropped_by_a_read_and_hidden_by_a_job(cast: Cast) -> None:
    bad, good = slipped_in(cast), slipped_in(cast, "The kettle is green")
    assert loaded(bad, good) == {good}
    bad.refresh_from_db()
    assert bad.deleted_at is None, "a read wrote"
    assert loaded(bad, good) == {good}
    [job] = jobs()  # the second read queued no other
    tasks.recheck_memories(**job["kwargs"])
    bad.refresh_from_db()
    good.refresh_from_db()
    assert bad.deleted_at is not None
    assert bad.revisions.first().action == "hide"  # type: ignore[union-attr]
    assert good.secret_rules == RULES
    with pytest.raises(SecretRefused):
        changing.restore_memory(bad, by=cast.owner, now=timezone.now())


@pytest.mark.parametrize("field", ["summary", "key", "category"])
def test_every_field_is_looked_at(cast: Cast, field: str) -> None:
    assert loaded(slipped_in(cast, "Fine", **{field: TOKEN})) == set()
    assert loaded(slipped_in(cast, "Fine", tags=["a", TOKEN])) == set()


def test_the_command_hides_and_lists_ids_and_kinds_never_a_text(cast: Cast) -> None:
    bad, good = slipped_in(cast), slipped_in(cast, "The kettle is green")
    quoted = slipped_in(cast, "We deploy on Fridays", source_excerpt=f"olive: use {TOKEN}\nolive: on Fridays")
    out, err = run("--dry-run")
    assert f"{bad.public_id} github" in out
    assert "3 checked, 1 would be hidden, 1 excerpts would be dropped." in out
    assert Memory.objects.filter(deleted_at=None).count() == 3
    out, err = run()
    assert out == f"{bad.public_id} github\n3 checked, 1 hidden, 1 excerpts dropped.\n"
    assert "3 of 3 (100 %)" in err
    assert TOKEN not in out + err
    quoted.refresh_from_db()
    assert quoted.source_excerpt == ""
    assert set(Memory.objects.live()) == {good, quoted}
    assert run()[0] == "0 checked, 0 hidden, 0 excerpts dropped.\n"
    assert run("--all")[0] == "2 checked, 0 hidden, 0 excerpts dropped.\n"


def test_an_interrupted_scan_goes_on_where_it_was(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remaining_copies, "BATCH", 2)
    rows = [slipped_in(cast, f"Kettle {number}") for number in range(5)]
    going = remaining_copies.scan(now=timezone.now())
    assert next(going).checked == 2
    going.close()
    assert Memory.objects.filter(secret_rules=RULES).count() == 2
    assert run()[0] == "3 checked, 0 hidden, 0 excerpts dropped.\n"
    assert len(rows) == Memory.objects.filter(secret_rules=RULES).count()


def test_a_change_in_any_file_is_another_version_of_the_rules(tmp_path: Path) -> None:
    folder = shutil.copytree(Path(secret_filter.__file__).parent, tmp_path / "rules")
    assert secret_filter._checksum(folder) == RULES > 0
    for source in folder.glob("*.py"):
        text = source.read_text()
        source.write_text(text + "#")
        assert secret_filter._checksum(folder) != RULES
        source.write_text(text)
