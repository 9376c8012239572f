"""A text that entered by every route, with all copies: permanently deleted, it is stored nowhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from chat.models import ToolCall
from chat.turns import turn
from chat.turns.services import begin_turn
from memories import tasks
from memories.models import Memory, ReceiptItem, Revision
from memories.writing.extraction_jobs import rerun
from memories.writing.vector_backfill import reembed
from tests.admin_pages import run_action, staff
from tests.api import Api, type_password_again
from tests.factories import make_chat, make_memory, make_user
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from tests.raw_search import places_with
from workspaces.access import default_workspace
from workspaces.models import User, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
SAID = "Olive hides the spare key under the azure flowerpot"
EARLIER = "Olive hides the spare key in the crimson toolbox"
ADMIN = "/admin/memories/memory/"


def files_with(text: str) -> list[Path]:
    """Return the attachments and uploads, kept outside the database, that contain the text."""
    folders = [Path(settings.DATA_DIR) / name for name in ("assets", "imports")]
    every = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path for path in every if text.encode() in path.read_bytes()]


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    type_password_again(client)
    return client


def save_through_the_doors(olive: User, home: Workspace) -> Memory:
    """Create the memory over REST, twice by one idempotent request, and edit it over REST, in the panel and in the
    admin.
    """
    api, page = Api(olive), signed_in(olive)
    path = f"/chat/api/workspaces/{home.public_id}/memories"
    for _ in range(2):
        made = api.client.post(
            path,
            json.dumps({"content": EARLIER, "tags": ["spare", "key"]}),
            content_type="application/json",
            headers={"Idempotency-Key": "once-and-for-all"},
        ).json()
    memory = Memory.objects.get(public_id=made["id"])
    changed = api.patch(f"workspaces/{home.public_id}/memories/{memory.public_id}", {"content": SAID})
    assert changed.status_code == 200
    card = f"/workspaces/{home.public_id}/memories/{memory.public_id}/"
    form = {f"{memory.public_id}-content": SAID, f"{memory.public_id}-category": "fact"}
    assert page.post(f"{card}edit/", form).status_code == 200
    assert (
        page.post(f"{card}assets/", {"file": SimpleUploadedFile("note.txt", SAID.encode())}).status_code
        == 200
    )
    boss = staff(username="boss", is_superuser=True)
    for action in ("forget", "restore", "embed_anew"):
        run_action(boss, ADMIN, action, memory)
    return memory


def ask_about_it(olive: User, home: Workspace, server: ScriptedOpenAI) -> None:
    """Run a turn whose prompt contains the memory and whose model looks it up, while no message states it."""
    chat = make_chat(olive, home, memory_enabled=True)
    server.script(Answer(calls=[Call("x_recall_memory", {"query": "flowerpot"})]), Answer("It is safe."))
    begin_turn(chat, content="Where is the spare key that Olive hides?", by=olive, now=timezone.now())
    assert turn.wait_until_idle(20)


def test_what_went_through_every_door_is_nowhere_once_it_is_forgotten(scripted_model: ScriptedOpenAI) -> None:
    olive = make_user("olive", memory_default=True)
    home = default_workspace(olive)
    memory = save_through_the_doors(olive, home)
    ask_about_it(olive, home, scripted_model)
    deleted = make_memory(SAID, olive, home)
    Api(olive).delete(f"workspaces/{home.public_id}/memories/{deleted.public_id}")
    reembed(Memory.objects.filter(pk=memory.pk))
    Memory.objects.filter(pk=memory.pk).update(source_message_id=ToolCall.objects.get().message.public_id)
    rerun(Memory.objects.get(pk=memory.pk), by=olive, now=timezone.now())
    assert ReceiptItem.objects.filter(content=SAID).exists()
    assert Revision.objects.filter(before__content=EARLIER).exists()
    assert len(places_with(SAID)) >= 2 and len(files_with(SAID)) == 1
    jobs: list[Any] = [(job.func(), job.task["kwargs"]) for job in OrmQ.objects.all()]
    assert len(jobs) >= 3, "jobs that know of it wait"

    answer = signed_in(olive).post(f"/workspaces/{home.public_id}/memories/{memory.public_id}/forget/")

    assert "finds nothing that says it" in answer.content.decode()
    for text in (SAID, EARLIER):
        assert places_with(text) == []
        assert files_with(text) == []
    for name, arguments in jobs:  # pending jobs do nothing
        getattr(tasks, name.rpartition(".")[2])(**arguments)
    assert not Memory.objects.filter(pk__in=[memory.pk, deleted.pk]).exists()
    for text in (SAID, EARLIER):
        assert places_with(text) == []
