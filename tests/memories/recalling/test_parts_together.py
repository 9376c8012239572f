"""The index in parts, and what else is done with the same tables: a disk of its own, another embedding model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from memories.models import Memory
from memories.recalling.recall import recall
from memoryhub.backup import databases
from memoryhub.local.postgres import EmbeddedPostgres
from tests.documented import ROOT
from tests.factories import HERE, make_memory, make_user, make_workspace
from tests.fakes.embedder import FakeEmbedder
from tests.memories.recalling.test_embedding_models import Models
from tests.memories.recalling.test_indexes import fill, find
from tests.memories.recalling.test_partitions import ask
from tests.parted import parted
from workspaces.index import indexes, reembedding
from workspaces.index.parted_tables import VECTORS
from workspaces.index.partitions import repartition
from workspaces.models import EmbeddingModel, PassageVector, User, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
_LIES = """
SELECT DISTINCT relname ~ '^passages_near_', relkind, coalesce(spcname, 'pg_default')
FROM pg_class c LEFT JOIN pg_tablespace s ON s.oid = reltablespace
WHERE c.oid = %(part)s::regclass OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = %(part)s::regclass)
"""
_PART = "SELECT DISTINCT tableoid::regclass::text FROM workspaces_passagevector WHERE place = %s"
ELSEWHERE = "of_another_machine"


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder of the server's account, for a tablespace that is there no longer than it."""
    if not settings.EMBEDDED_DATABASE:
        pytest.skip("the server is another one's, and perhaps of another machine")
    folder = Path(settings.DATA_DIR) / "fast"
    folder.mkdir(mode=0o700)
    if account := EmbeddedPostgres(settings.DATA_DIR).account:
        os.chown(folder, account.pw_uid, account.pw_gid)
    yield folder
    ask("DROP TABLESPACE IF EXISTS fast")
    folder.rmdir()


def test_a_part_lies_on_a_disk_of_its_own_and_comes_back(
    disk: Path, fake_embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the statements of docs/scale.md; it is asked, written to, indexed and backed up there."""
    for name, number in (("INDEX_FROM", 200), ("DROP_BELOW", 100)):
        monkeypatch.setattr(indexes, name, number)
    olive = make_user("olive")
    place = make_workspace(owner=olive)
    make_memory("The office is in Porto", olive)
    vectors = fill(place, 220)
    before = find(place, olive, vectors[7])
    with parted(4):
        ((part,),) = ask(_PART, [place.pk])
        make, move = _documented({"/mnt/fast/memoryhub": str(disk), VECTORS.part(7, 64): part})
        ask(make)
        ask(move)
        assert lies(part) == {(False, "r", "fast"), (False, "i", "fast")}
        indexes.keep_up(now=timezone.now())
        assert lies(part) == {(False, "r", "fast"), (False, "i", "fast"), (True, "i", "fast")}
        assert find(place, olive, vectors[7]) == before
        make_memory("The roof is red", olive, place)
        assert recalled("Is the roof red?", place, olive)[0] == "The roof is red"
        dumped = _dumped()
        ask(move.replace("TABLESPACE fast", "TABLESPACE pg_default"))
        assert {where for *_, where in lies(part)} == {"pg_default"}
        assert find(place, olive, vectors[7]) == before
        ask("DROP TABLESPACE fast")
    try:  # on a machine without that disk
        databases.restore_into(ELSEWHERE, [dumped])
        with databases.connect(ELSEWHERE) as restored:
            assert restored.execute("SELECT count(*) FROM workspaces_passagevector").fetchone() == (222,)
    finally:
        databases.drop(ELSEWHERE)


def _documented(put_in: dict[str, str]) -> list[str]:
    """The statement that makes the disk known, and those that move a part."""
    page = (ROOT / "docs/scale.md").read_text()
    (block,) = re.findall(r"```sql\n(CREATE TABLESPACE .+?)```", page, re.DOTALL)
    for theirs, ours in put_in.items():
        block = block.replace(theirs, ours)
    return block.split("\n", 1)


def _dumped() -> bytes:
    with databases.connect() as held:
        row = held.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        with databases.dump(row[0]) as source:
            return source.read()


def lies(part: str) -> set[tuple[bool, str, str]]:
    return {(near, kind, disk) for near, kind, disk in ask(_LIES, {"part": part})}


def test_a_new_model_s_vectors_are_built_beside_a_change_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, in parts and whole again while they are: each is built once, and those of the model before go."""
    models = Models(monkeypatch)
    models.configure(FakeEmbedder(32, name="old"))
    monkeypatch.setattr(reembedding, "BATCH", 4)
    monkeypatch.setattr(reembedding, "GRACE", timedelta())
    olive = make_user("olive")
    places = [make_workspace(owner=olive, name=f"Place {number}") for number in range(4)]
    for place in places:
        for number in range(3):
            make_memory(f"Room {number} of {place.name} is painted blue", olive, place)
    models.configure(FakeEmbedder(48, name="new"))
    reembedding.start()
    built = []
    for parts in (0, 4, 7):
        repartition(parts)
        model = EmbeddingModel.objects.building()
        assert model is not None and reembedding._build_batch(model)
        built.append(PassageVector.objects.filter(model="new").count())
        assert len(recalled("Which room is blue?", places[0], olive)) == 3
    assert built == [4, 8, 12]
    with parted(4):
        call_command("reembed", stdout=StringIO())
        assert len(recalled("Which room is blue?", places[3], olive)) == 3
        assert PassageVector.objects.count() == 24
        assert reembedding.clean(seconds=60) == 12
        assert set(PassageVector.objects.values_list("model", "dimension", "live")) == {("new", 48, True)}
        assert PassageVector.objects.count() == Memory.objects.count() == 12


def recalled(query: str, place: Workspace, by: User) -> list[str]:
    found = recall(query, place, by, reach=HERE, now=timezone.now())
    return [item.memory.content for item in found.items]
