"""The application forgets whom it may show what, and the database does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from chat.agents import lanes
from chat.agents.run_request import RunRequest
from chat.agents.runs import start_run
from chat.chats.rating import rate
from chat.chats.sharing import make_link
from chat.exchange.local_ids import taken_by_none
from chat.models import AnswerRating, MessageRole, RunStatus
from memories.models import Memory, Receipt, ReceiptItem, Scope
from memories.recalling.recall import Recall
from memories.recalling.recall_test import keep_question
from memories.recalling.receipts import store_receipt
from memoryhub.database.acting import acting_as, as_system
from tests.factories import (
    make_artifact,
    make_chat,
    make_document,
    make_memory,
    make_message,
    make_prompt,
    make_user,
)
from tests.fakes.openai_server import ScriptedOpenAI
from tests.routes import ROWS, Row
from tests.workspaces.isolation.guarded import row_security
from tests.workspaces.isolation.wrong import forget_to_filter
from tests.world import World
from workspaces.access import default_workspace, get_workspace
from workspaces.actions.workspaces import add_member, remove_member
from workspaces.audit import page_of
from workspaces.connections.actions import create_connection, update_connection
from workspaces.documents import reading_jobs
from workspaces.documents.documents import move
from workspaces.isolation import policies
from workspaces.models import Connection, Document, DocumentStatus, Membership, User

pytestmark = pytest.mark.django_db
# What stands in the world of the access matrix, and in nobody else's.
TEXTS = (
    "deadline is March", "Deadlines", "In March.", "Olive sings", "Compare the offers", "Compared", "Maria",
    "oven is turned off", "Decline {{offer}}", "Proofreader", "When is it due?",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def module_transaction(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock(), row_security(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def _the_systems(db: None) -> Iterator[None]:
    with as_system():
        yield


def told(person: User, world: World, rows: list[Row]) -> dict[str, list[str]]:
    """By route: which of the texts this person is told there."""
    found = {}
    for row in rows:
        client = Client(raise_request_exception=False)
        client.force_login(person)
        body = {} if row.method == "GET" else {"data": json.dumps(world.data(row))}
        with transaction.atomic():
            answer: Any = client.generic(
                row.method, world.address(row), content_type="application/json", **body
            )
            transaction.set_rollback(True)
        said = b"" if answer.streaming else answer.content
        if texts := [text for text in TEXTS if text.encode() in said]:
            found[str(row)] = texts
    return found


def test_no_route_tells_a_stranger_anything_when_every_rule_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    rows = [row for row in ROWS if not row.in_threads and row.statuses[3] == 404]
    forget_to_filter(monkeypatch)
    assert told(world.cast.stranger, world, rows) == {}
    settings.ROW_SECURITY = False
    leaking = told(world.cast.stranger, world, [row for row in rows if row.method == "GET"])
    assert len(leaking) > 30, "else nothing was forgotten"


def test_what_is_one_persons_alone_is_theirs_on_every_table_that_can_say_so(world: World) -> None:
    """By the column alone: a new kind of thing that may be one's own fails here until it is made below."""
    cast, now = world.cast, timezone.now()
    home = default_workspace(cast.editor)
    Membership.objects.create(workspace=home, user=cast.owner, role="owner")
    own = make_memory("I sleep badly before flights", cast.editor, home, scope=Scope.USER)
    keep_question(home, "How do I sleep?", [own], by=cast.editor, now=now)
    make_document(cast.editor, home, "Sleep: badly.", personal=True)
    make_artifact(cast.editor, home, "print('badly')", personal=True)
    make_prompt(home, cast.editor, personal=True)
    for model in policies.models():
        if model is Connection or not any(field.name == "owner" for field in model._meta.concrete_fields):
            continue
        seen = []
        for person in (cast.editor, cast.owner, cast.stranger):
            with acting_as(person.pk):
                seen.append(model._base_manager.filter(owner_id=cast.editor.pk).exists())
        assert seen == [True, False, False], model


def test_a_link_leaves_out_what_is_somebody_elses_own(world: World) -> None:
    """Who makes the link does not see it, and still it is found."""
    cast = world.cast
    own = make_memory("I sleep badly before flights", cast.owner, scope=Scope.USER)
    chat = make_chat(cast.owner, cast.workspace)
    question = make_message(chat, "When do I fly?")
    answer = make_message(chat, "You sleep badly.", role=MessageRole.ASSISTANT, reply_to=question)
    given = {"workspace": cast.workspace, "user": cast.owner, "ranking": "hybrid", "threshold": 0.3}
    receipt = Receipt.objects.create(message_id=answer.public_id, **given)
    ReceiptItem.objects.create(
        receipt=receipt, memory=own, position=1, score=0.5, content=own.content, used=True
    )
    with acting_as(cast.editor.pk):
        link, _token = make_link(chat, days=None, by=cast.editor, now=timezone.now())
    assert link.message_ids == [question.pk]


def test_who_asks_for_somebody_elses_answer_anew_replaces_a_receipt_that_they_do_not_see_whole(
    world: World,
) -> None:
    cast = world.cast
    own = make_memory("I sleep badly before flights", cast.owner, scope=Scope.USER)
    answer = make_message(make_chat(cast.owner, cast.workspace), "In May.", role=MessageRole.ASSISTANT)
    given = {"workspace": cast.workspace, "threshold": 0.3}
    first = store_receipt(answer.public_id, Recall(), [], user=cast.owner, **given)
    ReceiptItem.objects.create(receipt=first, memory=own, position=1, score=0.5, content="", used=False)
    with acting_as(cast.editor.pk):
        store_receipt(answer.public_id, Recall(), [], user=cast.editor, **given)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert Receipt.objects.get(message_id=answer.public_id).user == cast.editor


def test_what_one_said_of_an_answer_is_read_by_no_other_reader(world: World) -> None:
    cast, now = world.cast, timezone.now()
    answer = make_message(make_chat(cast.owner, cast.workspace), "In May.", role=MessageRole.ASSISTANT)
    with acting_as(cast.editor.pk):
        rate(answer, rating="down", comment="Nonsense, Olive.", by=cast.editor, now=now)
    for person, seen in ((cast.editor, ["Nonsense, Olive."]), (cast.owner, [])):
        with acting_as(person.pk):
            assert list(AnswerRating.objects.values_list("comment", flat=True)) == seen


def test_what_one_took_for_oneself_is_read_as_ones_own_whoever_brought_it(world: World) -> None:
    cast, now = world.cast, timezone.now()
    document = make_document(cast.editor, cast.workspace)
    document = move(document, None, by=cast.owner, now=now)
    Membership.objects.create(workspace=document.workspace, user=cast.editor, role="viewer")
    Document.objects.filter(pk=document.pk).update(status=DocumentStatus.WAITING)
    assert reading_jobs.read(document.pk, now=now).endswith("passages")


# What the application's own rules need to see beyond the person


def test_an_administrator_makes_and_changes_what_is_for_everybody(world: World) -> None:
    staff = make_user("root", is_superuser=True, is_staff=True)
    given = {"name": "Ours", "base_url": "https://api.example.org/v1", "model": "m"}
    with acting_as(staff.pk):
        made = create_connection(by=staff, now=timezone.now(), shared=True, **given)
        changed = update_connection(made, by=staff, now=timezone.now(), name="Everybody's")
    with acting_as(world.cast.stranger.pk):
        assert Connection.objects.get(pk=made.pk).name == changed.name == "Everybody's"


def test_who_has_left_keeps_their_name_in_the_activity(world: World) -> None:
    cast = world.cast
    add_member(cast.workspace, user=cast.stranger, role="viewer", by=cast.owner)
    remove_member(cast.workspace, user=cast.stranger, by=cast.stranger)
    with acting_as(cast.owner.pk):
        assert not User.objects.filter(pk=cast.stranger.pk).exists()
        assert cast.stranger.username in {event.whom for event in page_of(cast.workspace).events}  # type: ignore[attr-defined]


def test_an_import_knows_which_ids_are_taken_by_what_it_does_not_see(world: World) -> None:
    taken = world.ids["mem_id"]
    with acting_as(world.cast.stranger.pk):
        assert taken_by_none(Memory, {taken, "mem_" + "G" * 24}) == {taken: ""}


def test_the_run_of_somebody_who_was_removed_ends(world: World, scripted_model: ScriptedOpenAI) -> None:
    cast = world.cast
    place = get_workspace(cast.editor, cast.workspace.public_id)
    run = start_run(place, RunRequest("Compare"), by=cast.editor, now=timezone.now())
    Membership.objects.filter(user=cast.editor, workspace=place).delete()
    lanes.work(seconds=30, at_once=1)
    run.refresh_from_db()
    assert run.status == RunStatus.FAILED and not scripted_model.chat_requests
