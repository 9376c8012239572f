"""The targets of attacks by staff: rows of everything the admin lists, with secrets, and a digest of each."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from django.utils import timezone
from django_q.models import Failure, OrmQ, Schedule, Success

from chat.models import AnswerRating, Chat, Message, Run
from memories.models import Asset, Clearing, Extraction, Memory, MemoryNode, Receipt, ReceiptItem, Refusal
from memories.writing import gate
from tests.digests import digests
from tests.factories import (
    make_agent,
    make_artifact,
    make_chat,
    make_connection,
    make_document,
    make_key_text,
    make_memory,
    make_message,
    make_node,
    make_user,
    make_workspace,
)
from workspaces.models import (
    Agent,
    ApiKey,
    Artifact,
    AuditEvent,
    Budget,
    Document,
    EmbeddingModel,
    Membership,
    ModelUse,
    User,
    Workspace,
)
from workspaces.models.language_models import Connection

FINDABLE, SECRET = "nightingale", "heliotrope"  # search term, and the text that no page may show
SHOWN_OF_IT = SECRET[:6]  # as much as Django shows of a password's hash


@dataclass(frozen=True)
class World:
    """Rows of everything that the admin lists, as private as possible."""

    rows: dict[Any, list[Any]]
    victim: User
    attacker: User

    @cached_property
    def guarded(self) -> tuple[dict[str, str], tuple[Any, ...]]:
        """Return a statement for each guarded queryset, and their parameters, run after every form."""
        asked = {name: rows.query.sql_with_params() for name, rows in _guarded(self).items()}
        parameters = tuple(each for _, given in asked.values() for each in given)
        return {name: sql for name, (sql, _) in asked.items()}, parameters


Rows = dict[Any, list[Any]]
PRIVATE = f"My {FINDABLE} is {SECRET}"


def make_world() -> World:
    now = timezone.now()
    victim = make_user("olive", email="olive@example.org")
    User.objects.filter(pk=victim.pk).update(password=f"md5${SECRET}${SECRET * 2}")
    workspace = make_workspace(owner=victim)
    rows: Rows = {Workspace: [workspace], User: [victim, make_user("root", is_staff=True, is_superuser=True)]}
    rows |= _credentials(victim, workspace, now)
    rows |= _memories(victim, workspace, now)
    rows |= _chats(victim, workspace, rows[Memory][0], now)
    rows |= _jobs(now)
    rows |= {
        AuditEvent: list(AuditEvent.objects.all()[:1]),
        EmbeddingModel: list(EmbeddingModel.objects.all()),
    }
    return World(rows, victim, make_user("mallory", is_staff=True))


def _credentials(victim: User, workspace: Workspace, now: datetime) -> Rows:
    """Create credentials of accounts and of models."""
    make_key_text(victim, workspace)
    ApiKey.objects.update(key_hash=SECRET)
    Session.objects.create(session_key=SECRET, session_data="", expire_date=now)
    Budget.objects.create(user=victim, tokens=1000)
    return {
        Group: [Group.objects.create(name="Keepers")],
        EmailAddress: [EmailAddress.objects.create(user=victim, email=victim.email, primary=True)],
        Authenticator: [Authenticator.objects.create(user=victim, type="totp", data={"secret": SECRET})],
        ApiKey: list(ApiKey.objects.all()),
        Connection: [make_connection(api_key=SECRET), make_connection(victim, api_key=SECRET)],
    }


def _memories(victim: User, workspace: Workspace, now: datetime) -> Rows:
    """Create personal memories, and other contents of the workspace."""
    older, newer = (
        make_memory(f"The {FINDABLE} sings {SECRET} {when}", victim, workspace, scope="user")
        for when in ("at night", "at noon")
    )
    gate.edit_memory(older, by=victim, now=now, content=f"The {FINDABLE} sings {SECRET} every night")
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    shared = make_memory("The kettle is green", victim, workspace)
    file = {"name": f"{SECRET}.txt", "content_type": "text/plain", "size": 1, "sha256": "0" * 64}
    titled = {"title": f"{FINDABLE} {SECRET}", "embedded": False}
    return {
        Memory: [older, newer, shared],
        MemoryNode: [make_node(victim, workspace)],
        Asset: [Asset.objects.create(**file, memory=older, file_name="x", created_by=victim)],
        Agent: [make_agent(victim, workspace)],
        Artifact: [make_artifact(victim, workspace, PRIVATE, **titled)],
        Document: [make_document(victim, workspace, PRIVATE, **titled)],
        Clearing: [
            Clearing.objects.create(workspace=workspace, scope="workspace", by=victim, place=workspace.pk)
        ],
        Refusal: [Refusal.objects.create(workspace=workspace, day=now.date(), kind="invalid", number=1)],
    }


def _chats(victim: User, workspace: Workspace, older: Memory, now: datetime) -> Rows:
    """Create private chats, and data derived from them."""
    private = make_chat(victim, workspace, title=f"{FINDABLE} {SECRET}", is_private=True)
    passing = make_chat(victim, workspace, title=f"{FINDABLE} {SECRET}", is_temporary=True)
    said = make_message(private, PRIVATE)
    make_message(passing, PRIVATE)
    place = {"workspace": workspace, "user": victim}
    receipt = Receipt.objects.create(**place, message_id=said.public_id, ranking="hybrid", threshold=0.3)
    receipt.items.create(memory=older, position=1, score=0.9, content=older.content, used=True)
    extraction = Extraction(chat_id=private.public_id, message_id=said.public_id, status="failed", **place)
    extraction.source_type, extraction.next_attempt_at = "auto_chat", now
    extraction.save()
    run = {"mode": "loop", "objective": PRIVATE, "is_private": True, "deadline_at": now}
    rating = {"message": said, "user": victim, "rating": "down", "comment": PRIVATE}
    return {
        Chat: [private, passing],
        Message: list(Message.objects.all()),
        Receipt: [receipt],
        Extraction: [extraction],
        Run: [Run.objects.create(**place, **run)],
        AnswerRating: [AnswerRating.objects.create(**rating)],
        ModelUse: [ModelUse.objects.create(**place, day=now.date(), purpose="answer", model="large-2")],
    }


def _jobs(now: datetime) -> Rows:
    job = {"name": "sweep", "func": "memories.tasks.sweep", "started": now, "stopped": now}
    return {
        Success: [Success.objects.create(id="5" * 32, success=True, **job)],
        Failure: [Failure.objects.create(id="f" * 32, success=False, **job)],
        Schedule: [Schedule.objects.create(name="sweep", func="memories.tasks.sweep")],
        OrmQ: [OrmQ.objects.create(key="memoryhub", payload="not signed", lock=now)],
    }


def guarded(world: World) -> dict[str, str | None]:
    return digests(*world.guarded)


def _guarded(world: World) -> dict[str, Any]:
    """Return what no staff permission may change: credentials, rights, destinations of data, and private data."""
    ways = "pk", "username", "password", "email", "is_staff", "is_superuser", "memory_default"
    old, places = [*world.rows[User], world.attacker], [row.pk for row in world.rows[Workspace]]
    return {
        "accounts": User.objects.filter(pk__in=[each.pk for each in old]).values_list(*ways),
        "staff": User.objects.filter(is_staff=True).values_list("pk"),
        "groups of people": User.groups.through.objects.values_list(),
        "rights of people": User.user_permissions.through.objects.exclude(user=world.attacker).values_list(),
        "groups": Group.objects.values_list(),
        "rights of groups": Group.permissions.through.objects.values_list(),
        "addresses": EmailAddress.objects.values_list(),
        "second steps": Authenticator.objects.values_list(),
        "keys": ApiKey.objects.values_list("pk", "user", "workspace", "scope", "key_hash", "expires_at"),
        "connections": Connection.objects.values_list(),
        "members": Membership.objects.filter(workspace__in=places).values_list(),
        "models": Workspace.objects.filter(pk__in=places).values_list(
            "pk", "connection", "local_only", "default_of"
        ),
        "budgets": Budget.objects.values_list(),
        "schedules": Schedule.objects.values_list(),
        "sessions": Session.objects.values_list(),
        "memories": Memory.objects.exclude(owner=None).values_list("pk", "content", "deleted_at", "review"),
        "chats": Chat.objects.values_list("pk", "title", "is_private", "is_temporary", "deleted_at"),
        "messages": Message.objects.values_list("pk", "content"),
        "recalled": ReceiptItem.objects.values_list(),
    }
