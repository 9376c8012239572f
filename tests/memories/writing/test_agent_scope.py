"""Memories of an assistant: a scope of their own, recalled only in its chats."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone
from django_q.models import OrmQ
from pytest_django.fixtures import Settings

from memories import tasks
from memories.models import Memory, Scope
from memories.recalling.recall import recall
from memories.writing import changing, gate
from memories.writing.drafts import Draft
from memories.writing.eviction import evict_least_useful
from memoryhub.errors import Conflict, Invalid, NotFound
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import HERE, make_agent, make_memory, make_workspace
from workspaces.actions.workspaces import archive_agent
from workspaces.models import Agent, PassageWord, User

NOW = timezone.now()
TEXT = "The newsletter goes out on Tuesdays"


@pytest.fixture
def planner(cast: Cast) -> Agent:
    return make_agent(cast.owner, cast.workspace, name="Planner")


@pytest.fixture
def writer(cast: Cast) -> Agent:
    return make_agent(cast.owner, cast.workspace, name="Writer")


def of_agent(agent: Agent, content: str, by: User, **fields: Any) -> Memory:
    return make_memory(content, by, agent.workspace, scope=Scope.AGENT, agent=agent, **fields)


def draft(cast: Cast, content: str, agent: Agent | None, **fields: Any) -> Draft:
    scope = {"scope": Scope.AGENT, "agent": agent} if agent else {}
    return Draft(content=content, workspace=cast.workspace, author=cast.editor, **scope, **fields)


def found(query: str, cast: Cast, agent: Agent | None, by: User | None = None, **options: Any) -> list[str]:
    items = recall(
        query,
        cast.workspace,
        by or cast.editor,
        agent=agent,
        **{"now": timezone.now(), **options},
        policy=HERE,
    ).items
    return [item.memory.content for item in items]


# Scope


def test_words_go_with_the_memory_however_it_goes(cast: Cast, planner: Agent) -> None:
    memory = of_agent(planner, TEXT, cast.editor)
    gate.delete_memory(memory, by=cast.editor, now=NOW)
    assert not PassageWord.objects.exists()
    changing.restore_memory(memory, by=cast.editor, now=NOW)
    words = set(PassageWord.objects.values_list("lexeme", flat=True))
    gate.edit_memory(memory, content="The newsletter goes out on Fridays", by=cast.editor, now=NOW)
    changed = set(PassageWord.objects.values_list("lexeme", flat=True))
    assert words - changed == {"tuesda"} and changed - words == {"friday"}
    memory.delete()  # outright, as when its workspace is deleted: the trigger's work
    assert not PassageWord.objects.exists()


def test_the_table_refuses_what_the_scope_does_not_say(cast: Cast, planner: Agent) -> None:
    memory = of_agent(planner, TEXT, cast.editor)
    for wrong in (
        {"scope": "agent", "owner": None, "agent": None},
        {"scope": "workspace", "owner": None, "agent": True},
        {"scope": "user", "owner": True, "agent": True},
        {"scope": "agent", "owner": True, "agent": True},
        {"scope": "user", "owner": None, "agent": None},
    ):
        values = {
            "scope": wrong["scope"],
            "owner": cast.editor if wrong["owner"] else None,
            "agent": planner if wrong["agent"] else None,
        }
        with pytest.raises(IntegrityError), transaction.atomic():
            Memory.objects.filter(pk=memory.pk).update(**values)


# Recall


def test_recalled_in_its_own_chats_only(cast: Cast, planner: Agent, writer: Agent) -> None:
    of_agent(planner, TEXT, cast.editor)
    make_memory("The newsletter has 900 readers", cast.editor, cast.workspace)
    for ranking in ("hybrid", "semantic", "longterm", "lexical"):
        ask = "newsletter on tuesdays"
        assert TEXT in found(ask, cast, planner, ranking=ranking)
        for agent in (None, writer):
            assert found(ask, cast, agent, ranking=ranking) == ["The newsletter has 900 readers"]


def test_every_member_has_it_in_its_chats_and_keeps_their_own(cast: Cast, planner: Agent) -> None:
    of_agent(planner, TEXT, cast.editor)
    make_memory("The newsletter bores me", cast.viewer, scope=Scope.USER)
    assert set(found("newsletter", cast, planner, cast.viewer)) == {TEXT, "The newsletter bores me"}
    assert found("newsletter", cast, planner, cast.owner) == [TEXT]
    with pytest.raises(NotFound):
        found("newsletter", cast, planner, cast.stranger)


def test_what_it_remembers_goes_on_in_its_chats_after_archiving(cast: Cast, planner: Agent) -> None:
    of_agent(planner, TEXT, cast.editor)
    archive_agent(planner, by=cast.owner, now=NOW)
    assert found("newsletter", cast, planner) == [TEXT]
    assert found("newsletter", cast, None) == []
    assert Memory.objects.visible_to(cast.viewer).live().count() == 1


def test_an_assistant_of_another_workspace_brings_nothing(cast: Cast) -> None:
    other = make_agent(cast.editor, make_workspace(owner=cast.editor, name="Other"))
    of_agent(other, TEXT, cast.editor)
    with pytest.raises(Invalid) as refused:
        found("newsletter", cast, other)
    assert list(refused.value.fields) == ["agent_id"]


# Writing


def test_key_and_near_duplicate_are_looked_for_in_its_own_place(
    cast: Cast, planner: Agent, writer: Agent
) -> None:
    saved = [
        gate.save_memory(draft(cast, TEXT, agent, key="newsletter"), by=cast.editor, now=NOW)
        for agent in (planner, writer, None)
    ]
    assert all(each.created for each in saved)
    again = gate.save_memory(
        draft(cast, "It goes out on Fridays", planner, key="newsletter"), by=cast.editor, now=NOW
    )
    assert (again.created, again.memory.pk) == (False, saved[0].memory.pk)
    near = gate.save_memory(draft(cast, f"{TEXT}.", writer), by=cast.editor, now=NOW)
    assert (near.duplicate, near.memory.pk) == (True, saved[1].memory.pk)
    changed = gate.save_memory(
        draft(cast, "The newsletter goes out on Mondays", None), by=cast.editor, now=NOW
    )
    assert changed.memory.may_replace == saved[2].memory


def test_many_at_once_keep_to_their_places(cast: Cast, planner: Agent, writer: Agent) -> None:
    of_agent(planner, TEXT, cast.editor)
    drafts = [draft(cast, TEXT, agent) for agent in (planner, writer, writer, None)]
    saved = save_memories(drafts, by=cast.editor, now=NOW)
    assert [each.duplicate for each in saved] == [True, False, True, False]
    assert found("newsletter tuesdays", cast, writer) == [TEXT, TEXT]
    assert found("newsletter tuesdays", cast, None) == [TEXT]


def test_drafts_without_a_matching_scope_and_assistant_are_refused(cast: Cast, planner: Agent) -> None:
    other = make_agent(cast.editor, make_workspace(owner=cast.editor, name="Other"))
    wrong: list[dict[str, Any]] = [
        {"scope": "agent"},
        {"agent": planner},
        {"scope": "agent", "agent": other},
        {"scope": "user", "agent": planner},
    ]
    for fields in wrong:
        with pytest.raises(Invalid) as refused:
            gate.save_memory(Draft(TEXT, cast.workspace, cast.editor, **fields), by=cast.editor, now=NOW)
        assert list(refused.value.fields) == ["agent_id"], fields
    assert not Memory.objects.exists()


# The limit


def test_each_assistant_has_a_cap_of_its_own(
    cast: Cast, planner: Agent, writer: Agent, settings: Settings
) -> None:
    settings.MAX_MEMORIES = 2
    for number in range(3):
        for agent in (planner, None):
            gate.save_memory(
                draft(cast, f"Note {number} about {number * 7}", agent, source_type="auto_chat"),
                by=None,
                now=NOW + timedelta(seconds=number),
                dedupe="create",
            )
    of_agent(writer, TEXT, cast.editor, source_type="auto_chat")
    assert evict_least_useful(cast.workspace.pk, None, planner.pk, now=NOW) == 1
    assert list(Memory.objects.exclude(deleted_at=None).values_list("content", "agent")) == [
        ("Note 0 about 0", planner.pk)
    ]
    assert evict_least_useful(cast.workspace.pk, None, writer.pk, now=NOW) == 0
    assert evict_least_useful(cast.workspace.pk, None, now=NOW) == 1
    assert Memory.objects.filter(deleted_at=None, agent=None).count() == 2


def test_making_room_is_queued_for_its_place(
    cast: Cast, planner: Agent, settings: Settings, django_capture_on_commit_callbacks: Any
) -> None:
    settings.MAX_MEMORIES = 1
    OrmQ.objects.all().delete()
    with django_capture_on_commit_callbacks(execute=True):
        for text in (TEXT, "Readers get it by mail"):
            of_agent(planner, text, cast.editor, source_type="model")
    jobs = [job for job in OrmQ.objects.all() if job.func() == "memories.tasks.evict"]
    wanted = {"workspace_id": cast.workspace.pk, "owner_id": None, "agent_id": planner.pk}
    assert [job.kwargs() for job in jobs] == [wanted]
    assert tasks.evict(**wanted) == 1
    assert (
        tasks.evict(workspace_id=cast.workspace.pk, owner_id=None) == 0
    )  # a job queued before there were any


# Permissions


def test_members_see_them_strangers_do_not(cast: Cast, planner: Agent) -> None:
    memory = of_agent(planner, TEXT, cast.editor)
    for person, seen in ((cast.owner, [memory]), (cast.viewer, [memory]), (cast.stranger, [])):
        assert list(Memory.objects.visible_to(person)) == seen
    for agent, seen in ((None, []), (planner, [memory])):
        assert list(Memory.objects.recallable_in(cast.workspace, cast.viewer, agent)) == seen


def test_a_key_is_taken_only_among_its_own(cast: Cast, planner: Agent) -> None:
    of_agent(planner, TEXT, cast.editor, key="newsletter")
    mine = of_agent(planner, "Readers get it by mail", cast.editor)
    shared = make_memory("Readers like it", cast.editor, cast.workspace)
    with pytest.raises(Conflict):
        gate.edit_memory(mine, key="newsletter", by=cast.editor, now=NOW)
    assert gate.edit_memory(shared, key="newsletter", by=cast.editor, now=NOW).key == "newsletter"


def test_they_go_with_their_workspace(cast: Cast, planner: Agent) -> None:
    of_agent(planner, TEXT, cast.editor)
    cast.workspace.delete()
    assert not Memory.objects.exists() and not PassageWord.objects.exists()
