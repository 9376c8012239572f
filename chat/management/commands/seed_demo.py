"""Command ``manage.py seed_demo``: create demo users, chats and memories through the usual services.

The texts are in demo_story.json, with dates relative to now, also for placeholders such as ``{opening}``.
"""

import json
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone
from django.utils.formats import date_format

from chat.chats.services import create_chat
from chat.models import Chat, Message, MessageRole
from chat.prompting.prompt_text import excerpt_around
from chat.rendering.stored_html import set_html
from memories import topics
from memories.models import Memory, MemoryNode
from memories.writing.gate import Draft, save_memory
from workspaces.access import default_workspace
from workspaces.accounts.invitations import accept_invited, invite
from workspaces.actions import workspaces
from workspaces.actions.workspaces import create_workspace, set_preference
from workspaces.models import Agent, Role, User, Workspace

SHARED, OWN = "shared", "own"
_STORY = json.loads((Path(__file__).parent.parent / "demo_story.json").read_text())
SHARED_NAME: str = _STORY["shared_name"]
SHARED_DESCRIPTION: str = _STORY["shared_description"]
# Role in the shared workspace → (suffix of the user name, first name, last name)
PEOPLE: dict[str, tuple[str, str, str]] = {role: tuple(names) for role, names in _STORY["people"].items()}
DATES: dict[str, int] = _STORY["dates"]  # placeholders → days from now
# In the shared workspace: assistants (name, description, instructions), nodes (name, kind, a word that their memories
# contain) and relations between nodes.
ASSISTANTS, NODES, RELATIONS = (_STORY[name] for name in ("assistants", "nodes", "relations"))


@dataclass(frozen=True)
class DemoChat:
    """A chat of the demo. ``says``: its messages, alternately by the user ``who`` and by the assistant."""

    name: str
    title: str
    place: str
    days: float
    says: list[str]
    who: str = "owner"


@dataclass(frozen=True)
class DemoMemory:
    """A memory of the demo."""

    name: str
    days: float
    category: str | None
    source: str
    text: str
    place: str = SHARED
    who: str = "owner"
    at: tuple[str, int] | None = None  # its source: name of a chat, index of the message
    fields: dict[str, Any] = field(default_factory=dict)  # more fields of the draft


CHATS = [DemoChat(**chat) for chat in _STORY["chats"]]
MEMORIES = [DemoMemory(**memory) for memory in _STORY["memories"]]


PAUSE = timedelta(minutes=2)  # between two messages of a chat


class Command(BaseCommand):
    help = (
        "Fill in a demo: three people, two workspaces, a few chats, an assistant, nodes and 60 memories. "
        "Run again, it adds nothing that is there."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--username", default="demo", help="who to sign in as (default: demo)")
        parser.add_argument("--password", help="for the three demo people (default: a random one, printed)")

    def handle(self, *args: Any, username: str, password: str | None, **options: Any) -> None:
        self.now = timezone.now()
        self.dates = {
            name: date_format(self.now + timedelta(days=days), "j F") for name, days in DATES.items()
        }
        initial_password = password or secrets.token_urlsafe(9)
        new_people = self.make_people(username, initial_password)
        self.places = {OWN: default_workspace(self.people["owner"]), "shared": self.shared_workspace()}
        new_chats = self.make_chats()
        new_memories = self.make_memories()
        self.make_assistants()
        self.make_nodes()
        self.say_what_happened(username, initial_password, new_people, new_chats, new_memories)

    def make_people(self, username: str, password: str) -> list[str]:
        """Create the three users, set ``self.people`` by role, and return the names of new users."""
        self.people: dict[str, User] = {}
        new = []
        for role, (suffix, first_name, last_name) in PEOPLE.items():
            name = f"{username}{suffix}"
            person = User.objects.filter(username=name).first()
            if person is None:
                try:
                    person = User.objects.create_user(
                        name, password=password, first_name=first_name, last_name=last_name
                    )
                except ValidationError as error:
                    raise CommandError(f"Nobody can be called {name!r}. {' '.join(error.messages)}") from None
                set_preference(person, "memory_default", True)
                new.append(name)
            self.people[role] = person
        return new

    def shared_workspace(self) -> Workspace:
        owner = self.people["owner"]
        owned = Workspace.objects.filter(memberships__user=owner, memberships__role=Role.OWNER)
        workspace = owned.filter(name=SHARED_NAME).first()
        if workspace is None:
            workspace = create_workspace(name=SHARED_NAME, description=SHARED_DESCRIPTION, by=owner)
            for name, role in (("editor", Role.EDITOR), ("viewer", Role.VIEWER)):
                invite(workspace, user=self.people[name], role=role, by=owner, now=self.now)
                accept_invited(by=self.people[name], now=self.now, workspace=workspace)
        return workspace

    def make_chats(self) -> int:
        """Create the missing chats, set ``self.chats`` by name, and return how many are new."""
        self.chats: dict[str, Chat] = {}
        new = 0
        for story in CHATS:
            chat = Chat.objects.filter(workspace=self.places[story.place], title=story.title).first()
            if chat is None:
                chat = self.make_chat(story)
                new += 1
            self.chats[story.name] = chat
        return new

    def make_chat(self, story: DemoChat) -> Chat:
        by, at = self.people[story.who], self.now - timedelta(days=story.days)
        with transaction.atomic():
            chat = create_chat(workspace=self.places[story.place], by=by, now=at, title=story.title)
            question: Message | None = None
            for position, text in enumerate(story.says):
                answers = position % 2 == 1
                moment = at + position * PAUSE
                message = Message(
                    chat=chat,
                    role=MessageRole.ASSISTANT if answers else MessageRole.USER,
                    author=None if answers else by,
                    content=text.format(**self.dates),
                    reply_to=question if answers else None,
                    memory_enabled=answers,
                    created_at=moment,
                    finished_at=moment,
                )
                if answers:
                    set_html(message)  # as at the end of a turn
                message.save()
                question = None if answers else message
            chat.active_at = at + len(story.says) * PAUSE
            chat.save(update_fields=["active_at"])
        self.stdout.write(f"  chat “{story.title}”")
        return chat

    def make_memories(self) -> int:
        """Create the memories that no earlier run created, and return how many are new."""
        known = set(
            Memory.objects.filter(workspace__in=self.places.values())
            .exclude(source_details__demo=None)
            .values_list("source_details__demo", flat=True)
        )
        new = 0
        for story in sorted(MEMORIES, key=lambda memory: -memory.days):
            if story.name in known:
                continue
            moment = self.now - timedelta(days=story.days) + timedelta(minutes=15)
            new += save_memory(self.draft(story), by=self.people[story.who], now=moment).created
            if new and new % 10 == 0:
                self.stdout.write(f"  {new} memories")
        return new

    def make_assistants(self) -> None:
        shared, owner = self.places["shared"], self.people["owner"]
        for name, description, instructions in ASSISTANTS:
            if not Agent.objects.filter(workspace=shared, name=name).exists():
                texts = {"name": name, "description": description, "instructions": instructions}
                workspaces.create_agent(shared, **texts, by=owner, now=self.now)

    def make_nodes(self) -> None:
        """Create the missing nodes of the topic graph, each linked to up to five memories, and their relations."""
        shared, owner = self.places["shared"], self.people["owner"]
        nodes: dict[str, MemoryNode] = {}
        for name, kind, word in NODES:
            if MemoryNode.objects.filter(workspace=shared, name=name).exists():
                continue
            nodes[name] = topics.create_node(shared, name=name, kind=kind, by=owner, now=self.now)
            story = Memory.objects.visible_to(owner).live().filter(workspace=shared, content__icontains=word)
            for memory in story.order_by("pk")[:5]:
                topics.link_memory(nodes[name], memory, now=self.now)
        for name, relation, other in RELATIONS:
            if name in nodes and other in nodes:
                topics.relate(nodes[name], nodes[other], relation, now=self.now)

    def draft(self, story: DemoMemory) -> Draft:
        fields = dict(story.fields)
        fields["source_details"] = {**fields.get("source_details", {}), "demo": story.name}
        if story.at is not None:
            chat = self.chats[story.at[0]]
            message = chat.messages.order_by("pk")[story.at[1]]
            fields |= {
                "source_chat_id": chat.public_id,
                "source_message_id": message.public_id,
                "source_excerpt": excerpt_around(message),
            }
        return Draft(
            content=story.text.format(**self.dates),
            workspace=self.places[story.place],
            author=self.people[story.who],
            category=story.category,
            source_type=story.source,
            **fields,
        )

    def say_what_happened(
        self, username: str, password: str, new_people: list[str], new_chats: int, new_memories: int
    ) -> None:
        if not new_people and not new_chats and not new_memories:
            self.stdout.write("Everything is there already: nothing was added.")
        else:
            self.stdout.write(self.style.SUCCESS(f"Added {new_chats} chats and {new_memories} memories."))
        if new_people:
            self.stdout.write(f"Sign in as {' or '.join(new_people)} with the password {password}")
            self.stdout.write(
                f"{username} owns “{SHARED_NAME}”, {username}-mara edits it, {username}-jonas reads it."
            )
        else:
            self.stdout.write(
                f"Sign in as {username} with the password you have. To set a new one: "
                f"manage.py changepassword {username}"
            )
