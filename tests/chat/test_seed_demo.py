"""The demo data: its size and distribution, and that it is never created twice."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db.models import Count, Max, Min
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.management.commands.seed_demo import ASSISTANTS, CHATS, MEMORIES, NODES, RELATIONS, SHARED_NAME
from chat.models import Chat, Message
from memories.judging.duplicates import may_merge
from memories.judging.secret_filter import find_secret
from memories.models import Memory, MemoryNode, NodeRelation, SourceType
from memories.models.memory import CATEGORIES
from memories.writing import gate
from memoryhub.llm.registry import get_reader
from workspaces.access import default_workspace, role_in
from workspaces.models import Agent, Role, User, Workspace

pytestmark = pytest.mark.django_db


def seed(*arguments: str) -> str:
    said = StringIO()
    call_command("seed_demo", *arguments, stdout=said)
    return said.getvalue()


@pytest.fixture(scope="module")
def seeded(module_transaction: None) -> str:
    return seed("--password", "tea and cinnamon buns")


def test_it_fills_two_workspaces(seeded: str) -> None:
    demo = User.objects.get(username="demo")
    shared = Workspace.objects.get(name=SHARED_NAME)
    assert role_in(demo, shared) == Role.OWNER
    assert role_in(User.objects.get(username="demo-mara"), shared) == Role.EDITOR
    assert role_in(User.objects.get(username="demo-jonas"), shared) == Role.VIEWER
    assert demo.memory_default is True
    visible = Memory.objects.visible_to(demo).live()
    assert visible.count() == 60
    assert visible.filter(workspace=shared).count() > 30
    assert visible.filter(workspace=default_workspace(demo)).count() >= 15
    assert Chat.objects.visible_to(demo).count() == len(CHATS)
    assert not Message.objects.exclude(status="done").exists()
    assert not Message.objects.filter(role="assistant", html="").exists(), "no page has to render them"


def test_the_shared_workspace_has_an_assistant_and_a_map(seeded: str) -> None:
    shared = Workspace.objects.get(name=SHARED_NAME)
    assert Agent.objects.filter(workspace=shared).count() == len(ASSISTANTS)
    found = MemoryNode.objects.filter(workspace=shared).annotate(gathered=Count("memories"))
    assert {node.name for node in found if node.gathered} == {name for name, _, _ in NODES}
    assert NodeRelation.objects.filter(source__in=found).count() == len(RELATIONS)
    seed()
    assert MemoryNode.objects.count() == len(NODES)


def test_the_memories_are_of_every_kind(seeded: str) -> None:
    memories = Memory.objects.all()
    assert set(CATEGORIES) < set(memories.values_list("category", flat=True))
    assert set(SourceType.values) == set(memories.values_list("source_type", flat=True))
    assert memories.filter(pinned=True).count() >= 3
    assert memories.filter(scope="user").exists()
    assert memories.filter(author__username="demo-mara").count() >= 5
    dates = memories.aggregate(first=Min("created_at"), last=Max("created_at"))
    assert timedelta(days=80) < dates["last"] - dates["first"] < timedelta(days=91)
    assert dates["last"] < timezone.now()


def test_one_memory_may_replace_another(seeded: str) -> None:
    newer = Memory.objects.get(may_replace__isnull=False)
    assert newer.may_replace is not None
    assert newer.may_replace.created_at < newer.created_at
    assert "reopens its doors" in newer.content
    assert "reopens its doors" in newer.may_replace.content


def test_memories_from_chats_lead_back_to_their_message(seeded: str) -> None:
    linked = Memory.objects.exclude(source_message_id="")
    assert linked.count() >= 15
    for memory in linked:
        message = Message.objects.get(public_id=memory.source_message_id)
        assert message.chat.public_id == memory.source_chat_id
        assert message.chat.workspace_id == memory.workspace_id
        assert message.content.splitlines()[0][:40] in memory.source_excerpt


def test_running_twice_adds_nothing_and_says_so(seeded: str) -> None:
    forgotten = Memory.objects.order_by("pk")[0]
    gate.delete_memory(forgotten, by=None, now=timezone.now())
    gate.edit_memory(Memory.objects.order_by("pk")[1], by=None, now=timezone.now(), content="Edited since")
    counts = [model.objects.count() for model in (User, Workspace, Chat, Message, Memory)]
    said = seed("--password", "another one")
    assert "nothing was added" in said
    assert "another one" not in said
    assert [model.objects.count() for model in (User, Workspace, Chat, Message, Memory)] == counts
    assert User.objects.get(username="demo").check_password("tea and cinnamon buns")


def test_it_says_who_to_sign_in_as(seeded: str) -> None:
    assert "Sign in as demo or demo-mara or demo-jonas with the password tea and cinnamon buns" in seeded
    values = {"login": "demo", "password": "tea and cinnamon buns"}
    assert Client().post(reverse("account_login"), values).status_code == 302


def test_a_random_password_is_printed() -> None:
    said = seed("--username", "dora")
    password = said.split("with the password ")[1].split()[0]
    assert len(password) >= 12
    assert User.objects.get(username="dora").check_password(password)
    assert User.objects.filter(username__startswith="dora").count() == 3


def test_no_two_texts_of_the_story_would_be_taken_for_one() -> None:
    texts = [memory.text for memory in MEMORIES]
    assert len(set(texts)) == 60
    assert not any(find_secret(text) for text in texts)
    dates = (
        "The Apollo cinema reopens its doors on 3 March.",
        "The Apollo cinema reopens its doors on 17 March.",
    )
    assert not may_merge(*dates, get_reader())
