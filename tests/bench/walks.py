"""Trace five jobs through the code: files entered, and hops from one file to another, over all threads.

Each walk also prints the pairs of files that it crosses most often. Set WALKS to a folder to write
every walk there in full, a line a hop with the function that was called.

python -m pytest -n 0 -s tests/bench/walks.py
"""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from chat.models.runs import RunMode, RunStatus
from chat.runs import services, worker
from chat.runs.services import RunRequest
from chat.turns.turn import wait_until_idle
from memories.recalling.recall import recall
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message, make_user
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.imports import APPS, ROOT
from workspaces.access import get_workspace
from workspaces.data_policy import DataPolicy
from workspaces.documents import reading_jobs
from workspaces.models import Document, User

pytestmark = pytest.mark.django_db(transaction=True)
OURS = tuple(f"{ROOT}/{app}/" for app in APPS)


def walk(title: str, job: Callable[[int], object], *, warm: bool = True) -> None:
    """Print the files that a job enters and the hops between them, on its second run."""
    entered: dict[int, list[tuple[str, str]]] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            file = frame.f_code.co_filename.removeprefix(f"{ROOT}/")
            entered.setdefault(threading.get_ident(), []).append((file, frame.f_code.co_qualname))

    threading.setprofile(note)  # before the first run, which starts threads that the second uses
    sys.setprofile(note)
    try:
        if warm:
            job(0)
            entered.clear()
        answer = job(1)
        assert getattr(answer, "status_code", 200) < 300, answer
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # None ends it
    walks = [[file for file, _ in groupby(file for file, _ in calls)] for calls in entered.values()]
    hops = Counter(tuple(sorted(pair)) for each in walks for pair in pairwise(each))
    files = {file for each in walks for file in each}
    print(f"\n{title}: {len(files)} files, {hops.total()} hops, {len(walks)} threads")
    for pair, count in hops.most_common(8):
        print(f"  {count:3} {' ~ '.join(pair)}")
    if folder := os.environ.get("WALKS"):
        lines = [f"{file} {name}" for calls in entered.values() for file, name in [*calls, ("--", "end")]]
        Path(folder, f"{title}.txt").write_text("\n".join(lines))


def signed_in(user: User) -> Client:
    client = Client(headers={"HX-Request": "true"})
    client.force_login(user)
    return client


def test_turn(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    user = make_user("oscar", memory_default=True)
    chat = make_chat(user)
    make_memory("The project deadline is March 15", user, chat.workspace)
    client = signed_in(user)
    scripted_model.script(Answer("On ", "March 15."), Answer("On ", "March 15."))

    def turn(_: int) -> None:
        client.post(f"/chats/{chat.public_id}/messages/", {"content": "When is the project deadline?"})
        assert wait_until_idle(20)

    walk("a turn", turn)


def test_remember(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    texts = "The kettle is green", "The lamp is blue and tall"
    addresses = [
        f"/chats/{chat.public_id}/messages/{make_message(chat, text).public_id}/remember/" for text in texts
    ]
    client = signed_in(cast.owner)
    walk("Remember this", lambda number: client.post(addresses[number]))


def test_recall(cast: Cast) -> None:
    workspace = cast.workspace
    make_memory("The project deadline is March 15", cast.owner, workspace)

    def ask(_: int) -> None:
        policy, now = DataPolicy.here(workspace), timezone.now()
        assert recall("When is the project deadline?", workspace, cast.owner, policy=policy, now=now).items

    walk("recall", ask)


def test_upload(cast: Cast) -> None:
    client = signed_in(cast.owner)
    address = f"/chat/api/workspaces/{cast.workspace.public_id}/documents"
    texts = "The spare key lies under the blue pot.", "The key of the shed hangs by the door."

    walk(
        "upload",
        lambda number: client.post(address, {"file": SimpleUploadedFile("keys.md", texts[number].encode())}),
    )
    document = Document.objects.latest("pk")
    walk(
        "reading what was uploaded", lambda _: reading_jobs.read(document.pk, now=timezone.now()), warm=False
    )


def test_step_of_a_run(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    workspace = get_workspace(cast.owner, cast.workspace.public_id)
    scripted_model.script(*[Answer("Done: the kettle is green.")] * 4)

    def step(_: int) -> None:
        request = RunRequest("Which colour has the kettle?", RunMode.LOOP)
        run = services.start_run(workspace, request, by=cast.owner, now=timezone.now())
        worker.work(seconds=5, at_once=1)
        run.refresh_from_db()
        assert run.status == RunStatus.DONE

    walk("a run of one step", step)
