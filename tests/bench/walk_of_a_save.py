"""The walk of a memory from REST to its row: which files of ours it enters, and how often it comes back to one.

python -m pytest -n 0 -q -s tests/bench/walk_of_a_save.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.test import Client

from tests.conftest import Cast

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT}/{app}/" for app in ("memoryhub", "workspaces", "memories", "chat"))
# What every request passes, whatever it asks for, and what only declares or computes without a decision of its own.
PASSED = ("memoryhub/", "workspaces/rest/", "workspaces/accounts/")


@pytest.mark.django_db
def test_the_walk_is_short(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.owner)
    path = f"/chat/api/workspaces/{cast.workspace.public_id}/memories"
    body = {"content": "The kettle is green"}
    assert client.post(path, body | {"content": "Warm"}, content_type="application/json").status_code == 201
    walked: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(OURS):
            name = file.removeprefix(f"{ROOT}/")
            if not name.startswith(PASSED) and "/models/" not in name and walked[-1:] != [name]:
                walked.append(name)

    sys.setprofile(note)
    try:
        answer = client.post(path, body, content_type="application/json")
    finally:
        sys.setprofile(None)
    assert answer.status_code == 201, answer.content
    rooms = list(dict.fromkeys(walked))
    print(f"\n{len(rooms)} rooms, {len(walked) - len(rooms)} returns")
    print("\n".join(f"  {walked.count(room)}  {room}" for room in rooms))
