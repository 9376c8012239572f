"""What people do goes on under row security, each statement in a transaction of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client

from chat.models import Message, MessageStatus
from chat.turns import runner
from memories import tasks
from memories.models import Extraction, Memory
from memories.writing import extracting
from memoryhub.backup import databases
from memoryhub.database.acting import acting_as, who
from memoryhub.database.guarded.base import ROLE
from tests.conftest import make_cast
from tests.factories import make_document
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.workspaces.isolation.guarded import row_security
from workspaces.access import default_workspace
from workspaces.documents import reading_jobs
from workspaces.models import DocumentStatus, User, Workspace

PASSWORD = "a long enough one"
JSON = "application/json"
_DRAFT_OF, _PUT_PASSAGES = extracting.draft_of, reading_jobs._put_passages
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def guarded(transactional_db: None) -> Iterator[None]:
    with row_security():
        yield


def signed_up(name: str) -> tuple[Client, str]:
    new = Client()
    form = {"username": name, "password1": PASSWORD, "password2": PASSWORD}
    assert new.post("/accounts/signup/", form).status_code == 302
    return new, str(new.get("/chat/api/workspaces").json()["items"][0]["id"])


def test_from_signing_up_to_deleting_ones_account(guarded: None) -> None:
    """REST and pages, a key, a link to a chat for somebody who is not signed in, the admin, and leaving."""
    nadia, home = signed_up("nadia")
    other, _home = signed_up("other")
    memories = f"/chat/api/workspaces/{home}/memories"
    assert nadia.post(memories, {"content": "The kiln is hot at noon"}, content_type=JSON).status_code == 201
    asked = {"query": "When is the kiln hot?"}
    found = nadia.post(f"/chat/api/workspaces/{home}/recall", asked, content_type=JSON).json()
    assert [each["content"] for each in found["memories"]] == ["The kiln is hot at noon"]
    assert len(nadia.get(memories).json()["items"]) == 1
    assert b"kiln" in nadia.get(f"/workspaces/{home}/memories/?part=list&q=kiln").content
    assert other.get(memories).status_code == 404

    team = nadia.post("/chat/api/workspaces", {"name": "Pottery"}, content_type=JSON).json()["id"]
    member = {"username": "other", "role": "viewer"}
    added = nadia.post(f"/chat/api/workspaces/{team}/members", member, content_type=JSON)
    assert added.status_code == 201, added.content
    assert b"nadia" in other.get(f"/workspaces/{team}/settings/").content

    staff = User.objects.create_superuser("root", password=PASSWORD)
    admin = Client()
    admin.force_login(staff)
    assert b"kiln" in admin.get("/admin/memories/memory/").content
    assert admin.get(memories).status_code == 404, "outside of the admin staff are people"

    nadia.post("/accounts/reauthenticate/", {"password": PASSWORD})
    gone = nadia.delete(f"/chat/api/workspaces/{team}")
    assert gone.status_code < 300, gone.content
    assert not Workspace.objects.filter(public_id=team).exists()


def test_a_turn_and_what_a_worker_does_after_it_are_the_persons(
    guarded: None, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads of a turn, the job that mines it, and the one that reads a document."""
    nadia, home = signed_up("nadia")
    person = User.objects.get(username="nadia")
    asked_for = list[int]()
    monkeypatch.setattr(
        extracting, "draft_of", lambda *given: (asked_for.append(who()), _DRAFT_OF(*given))[1]
    )
    monkeypatch.setattr(
        reading_jobs, "_put_passages", lambda *given: (asked_for.append(who()), _PUT_PASSAGES(*given))[1]
    )
    nadia.post("/profile/memory/", {"memory": "on"})
    chat = nadia.post("/chat/api/chats", {"workspace_id": home}, content_type=JSON).json()["id"]
    noticed = [{"text": "Nadia's kiln is hot at noon.", "kind": "fact", "importance": 0.7}]
    scripted_model.script(Answer("Noted."), Answer(json.dumps(noticed)))
    said = {"content": "I am vegetarian, and my kiln is hot at noon."}
    answered = nadia.post(f"/chat/api/{chat}/messages", said, content_type=JSON)
    assert answered.status_code < 300, answered.content
    assert runner.wait_until_idle(10)
    assert [each.status for each in Message.objects.filter(role="assistant")] == [MessageStatus.DONE]
    for extraction in Extraction.objects.filter(status="pending"):
        tasks.extract_turn(extraction_id=extraction.pk)
    document = make_document(person, default_workspace(person))
    assert document.status == DocumentStatus.READY
    assert Memory.objects.filter(workspace=default_workspace(person)).exists()
    assert len(asked_for) >= 2 and set(asked_for) == {person.pk}


def test_statements_of_their_own_are_a_persons_and_leave_nothing(guarded: None) -> None:
    cast = make_cast()
    system = _role()
    with acting_as(cast.viewer.pk):
        assert _role() == (ROLE, str(cast.viewer.pk))
        assert [each.pk for each in Workspace.objects.filter(pk=cast.workspace.pk)] == [cast.workspace.pk]
        assert len(list(Workspace.objects.all().iterator())) == 1, "rows that come in pieces"
    with acting_as(cast.stranger.pk):
        assert not Workspace.objects.filter(pk=cast.workspace.pk).exists()
    assert _role() == system == (system[0], "")


def test_a_backup_goes_to_servers_that_have_no_such_role(guarded: None) -> None:
    name = f"{databases.own_name()}_elsewhere"
    with databases.connect() as held:
        held.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        snapshot = held.execute("SELECT pg_export_snapshot()").fetchone()
        assert snapshot is not None
        with databases.dump(snapshot[0]) as source:
            databases.restore_into(name, source)
    try:
        with databases.connect(name) as restored:
            assert restored.execute("SELECT count(*) FROM pg_policy").fetchone() == (0,)
            guarded_tables = "SELECT count(*) FROM pg_class WHERE relrowsecurity"
            assert restored.execute(guarded_tables).fetchone() == (0,)
    finally:
        databases.drop(name)


def _role() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, coalesce(current_setting('memoryhub.person', true), '')")
        role, person = cursor.fetchone()
    return role, person
