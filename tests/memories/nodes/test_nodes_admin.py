"""Nodes and files in the admin: read-only, with constant query counts, without access to the bytes."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories import topics
from tests.conftest import Cast
from tests.factories import make_asset, make_memory, make_node

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(cast: Cast, tmp_path: Path, settings: Any) -> Client:
    settings.DATA_DIR = tmp_path
    cast.stranger.is_staff = cast.stranger.is_superuser = True
    cast.stranger.save()
    client = Client()
    client.force_login(cast.stranger)
    return client


def test_lists_and_records_cost_the_same_for_few_and_many(cast: Cast, staff: Client) -> None:
    hub, memory = make_node(cast.owner, cast.workspace), make_memory("Cats purr", cast.owner, cast.workspace)

    def grow(number: int) -> None:
        for _ in range(number):
            topics.relate(hub, make_node(cast.editor, cast.workspace), "has", now=timezone.now())
            make_asset(memory)

    def costs() -> list[int]:
        counts = []
        for path in ("memorynode/", f"memorynode/{hub.pk}/change/", "asset/"):
            with CaptureQueriesContext(connection) as captured:
                assert staff.get(f"/admin/memories/{path}").status_code == 200
            counts.append(len(captured))
        return counts

    grow(2)
    costs()
    few = costs()
    grow(6)
    assert costs() == few


def test_both_are_found_by_id_and_changed_nowhere(cast: Cast, staff: Client) -> None:
    node = make_node(cast.owner, cast.workspace, name="Maria")
    memory = make_memory("Cats purr", cast.owner, cast.workspace)
    asset = make_asset(memory)
    assert "Maria" in staff.get("/admin/memories/memorynode/", {"q": node.public_id}).content.decode()
    by_name = staff.get("/admin/memories/memorynode/", {"q": "Maria"}).content.decode()
    assert f"/memorynode/{node.pk}/change/" not in by_name
    for text in (asset.public_id, memory.public_id):
        assert "note.txt" in staff.get("/admin/memories/asset/", {"q": text}).content.decode()
    for path in ("memorynode", "asset"):
        assert staff.get(f"/admin/memories/{path}/add/").status_code == 403
    page = staff.get(f"/admin/memories/asset/{asset.pk}/change/").content.decode()
    assert asset.sha256 in page and asset.file_name not in page
    assert staff.post(f"/admin/memories/asset/{asset.pk}/delete/", {"post": "yes"}).status_code == 403
