"""The demo data: its size and distribution, and that it is never created twice."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from chat.management.commands import seed_demo
from chat.management.commands.seed_demo import CHATS, SHARED_NAME
from chat.models import Chat, Message
from memories.models import Memory
from memories.writing import gate
from workspaces.access import default_workspace, role_in
from workspaces.models import Role, User, Workspace

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


def test_random_password_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_demo, "MEMORIES", ())
    said = seed("--username", "dora")
    password = said.split("with the password ")[1].split()[0]
    assert len(password) >= 12
    assert User.objects.get(username="dora").check_password(password)
    assert User.objects.filter(username__startswith="dora").count() == 3
