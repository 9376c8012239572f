from __future__ import annotations

import pytest

from tests.shares import TOGETHER, share_of


def test_what_waits_for_the_embedded_model_is_one_share(request: pytest.FixtureRequest) -> None:
    waiting = [item.nodeid for item in request.session.items if item.get_closest_marker("local_model")]
    assert [node_id for node_id in waiting if share_of(node_id) != "local model"] == []


def test_the_files_named_are_there(pytestconfig: pytest.Config) -> None:
    named = [beginning for beginnings in TOGETHER.values() for beginning in beginnings]
    assert [beginning for beginning in named if not (pytestconfig.rootpath / beginning).exists()] == []
