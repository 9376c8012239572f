"""Assistants: permissions, names, archiving, and concurrent changes."""

import threading

import pytest
from django.db import connection
from django.utils import timezone

from memoryhub.errors import Conflict, Invalid, NotFound
from tests.conftest import Cast
from tests.factories import make_agent, make_user, make_workspace
from workspaces.actions import workspaces
from workspaces.audit import Verb
from workspaces.models import Agent, AuditEvent, Membership, Role, User, Workspace

NOW = timezone.now()


def test_an_editor_makes_an_assistant_with_stripped_fields(cast: Cast) -> None:
    made = workspaces.create_agent(
        cast.workspace,
        name="  House \n style ",
        description=" Knows\nit ",
        instructions=" Be brief.\r\n\r\nNo jargon. ",
        by=cast.editor,
        now=NOW,
    )
    made.refresh_from_db()
    assert made.public_id.startswith("agent_")
    assert (made.name, made.description) == ("House style", "Knows it")
    assert made.instructions == "Be brief.\n\nNo jargon."
    assert (made.created_by, made.created_at, made.archived_at) == (cast.editor, NOW, None)


def test_fields_that_are_too_long_or_cannot_be_stored_are_refused_by_name(cast: Cast) -> None:
    agent = make_agent(cast.owner, cast.workspace, name="First")
    for field, text in (
        ("name", ""),
        ("name", " \n"),
        ("name", "x" * 81),
        ("name", "a\0b"),
        ("description", "x" * 301),
        ("description", "\ud800"),
        ("instructions", "x" * 4001),
        ("instructions", "a\0b"),
    ):
        with pytest.raises(Invalid) as refused:
            workspaces.create_agent(cast.workspace, **{"name": "Second", field: text}, by=cast.owner, now=NOW)
        assert list(refused.value.fields) == [field]
        with pytest.raises(Invalid):
            workspaces.update_agent(agent, **{field: text}, by=cast.owner, now=NOW)
        assert Agent.objects.get().name == "First"


def test_who_was_removed_in_the_meantime_changes_nothing(cast: Cast) -> None:
    agent = workspaces.get_agent(
        cast.editor, make_agent(cast.owner, cast.workspace).public_id, need=Role.EDITOR
    )
    Membership.objects.filter(user=cast.editor).delete()
    with pytest.raises(NotFound):
        workspaces.update_agent(agent, name="Mine", by=cast.editor, now=NOW)


def test_a_name_is_free_once_in_a_workspace_whatever_its_case(cast: Cast) -> None:
    first = make_agent(cast.owner, cast.workspace, name="Writer")
    second = make_agent(cast.owner, cast.workspace, name="Planner")
    with pytest.raises(Conflict) as taken:
        make_agent(cast.editor, cast.workspace, name="writer")
    assert taken.value.fields == {"name": "is taken"}
    with pytest.raises(Conflict):
        workspaces.update_agent(second, name="WRITER", by=cast.owner, now=NOW)
    workspaces.update_agent(first, name="WRITER", by=cast.owner, now=NOW)
    make_agent(cast.stranger, make_workspace(owner=cast.stranger), name="Writer")
    workspaces.archive_agent(first, by=cast.owner, now=NOW)
    make_agent(cast.editor, cast.workspace, name="Writer")
    with pytest.raises(Conflict):
        workspaces.restore_agent(first, by=cast.owner, now=NOW)
    assert Agent.objects.get(pk=first.pk).is_archived


def test_an_archived_one_is_chosen_for_nothing_new_and_can_come_back(cast: Cast) -> None:
    agent = make_agent(cast.owner, cast.workspace)
    assert workspaces.choose_agent(cast.workspace, agent.public_id) == agent
    archived = workspaces.archive_agent(agent, by=cast.editor, now=NOW)
    workspaces.archive_agent(archived, by=cast.editor, now=timezone.now())
    assert Agent.objects.get().archived_at == NOW
    with pytest.raises(Invalid) as refused:
        workspaces.choose_agent(cast.workspace, agent.public_id)
    assert "archived" in refused.value.fields["agent_id"]
    workspaces.restore_agent(agent, by=cast.editor, now=NOW)
    workspaces.restore_agent(agent, by=cast.editor, now=NOW)
    assert workspaces.choose_agent(cast.workspace, agent.public_id) == agent


def test_that_of_another_workspace_is_refused_by_the_name_of_the_field(cast: Cast) -> None:
    elsewhere = make_agent(cast.owner, make_workspace(owner=cast.owner, name="Other"))
    for public_id in (elsewhere.public_id, "agent_nothing", ""):
        with pytest.raises(Invalid) as refused:
            workspaces.choose_agent(cast.workspace, public_id)
        assert list(refused.value.fields) == ["agent_id"]


def test_there_are_only_so_many(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspaces, "MOST_IN_USE", 2)
    first = make_agent(cast.owner, cast.workspace)
    make_agent(cast.owner, cast.workspace)
    with pytest.raises(Conflict):
        make_agent(cast.owner, cast.workspace)
    workspaces.archive_agent(first, by=cast.owner, now=NOW)
    make_agent(cast.owner, cast.workspace)
    with pytest.raises(Conflict):
        workspaces.restore_agent(first, by=cast.owner, now=NOW)


def test_the_audit_log_says_who_changed_which_and_never_what_it_is_told(cast: Cast) -> None:
    agent = make_agent(cast.owner, cast.workspace, name="Planner", instructions="Plan in weeks.")
    workspaces.update_agent(agent, instructions="Plan in days.", by=cast.editor, now=NOW)
    for change in (
        workspaces.archive_agent,
        workspaces.archive_agent,
        workspaces.restore_agent,
        workspaces.restore_agent,
    ):
        change(agent, by=cast.editor, now=NOW)
    events = list(AuditEvent.objects.filter(verb=Verb.AGENT_CHANGED).order_by("id"))
    assert {(event.target, event.workspace_id) for event in events} == {
        (agent.public_id, cast.workspace.public_id)
    }
    assert [(event.by_name, event.details) for event in events] == [
        ("olive", {"change": "made"}),
        ("eddie", {"change": "changed", "fields": ["instructions"]}),
        ("eddie", {"change": "archived"}),
        ("eddie", {"change": "restored"}),
    ]


def test_two_of_one_name_at_once_make_one(transactional_db: None) -> None:
    one, two = make_user(), make_user()
    workspace = make_workspace(owner=one, editor=two)
    start, outcomes = threading.Barrier(2), []

    def make(by: User, name: str) -> None:
        try:
            start.wait(10)
            outcomes.append(workspaces.create_agent(workspace, name=name, by=by, now=NOW).name)
        except Conflict as error:
            outcomes.append(error.fields["name"])
        finally:
            connection.close()

    threads = [threading.Thread(target=make, args=pair) for pair in ((one, "Writer"), (two, "writer"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(outcomes) == 2
    assert "is taken" in outcomes
    assert Agent.objects.count() == 1
    assert Workspace.objects.filter(agents__isnull=False).count() == 1
