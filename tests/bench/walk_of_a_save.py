"""The walk of a memory from REST to its row: which rooms it enters, which files, and how often it comes back to one.

A room is a wing, or a file that lies in an app's hall.

python -m pytest -n 0 -q -s tests/bench/walk_of_a_save.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.test import Client

from tests.conftest import Cast

ROOT = Path(__file__).resolve().parents[2]
APPS = ("memoryhub", "workspaces", "memories", "chat")
OURS = tuple(f"{ROOT}/{app}/" for app in APPS)
# What every request passes, whatever it asks for, and what only declares or computes without a decision of its own.
PASSED = ("memoryhub/", "workspaces/rest/", "workspaces/accounts/")


@pytest.mark.django_db
def test_the_walk_is_short(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.owner)
    path = f"/chat/api/workspaces/{cast.workspace.public_id}/memories"
    body = {"content": "The kettle is green"}
    assert client.post(path, body | {"content": "Warm"}, content_type="application/json").status_code == 201
    files: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(OURS):
            name = file.removeprefix(f"{ROOT}/")
            if not name.startswith(PASSED) and "/models/" not in name:
                files.append(name)

    sys.setprofile(note)
    try:
        answer = client.post(path, body, content_type="application/json")
    finally:
        sys.setprofile(None)
    assert answer.status_code == 201, answer.content
    report("rooms", [room_of(name) for name in files])
    report("files", files)


def room_of(file: str) -> str:
    folder = str(Path(file).parent)
    return file if folder in APPS else folder


def report(what: str, walked: Iterable[str]) -> None:
    stops = [name for name, _group in groupby(walked)]
    entered = list(dict.fromkeys(stops))
    print(f"\n{len(entered)} {what}, {len(stops) - len(entered)} returns")
    print("\n".join(f"  {stops.count(name)}  {name}" for name in entered))
