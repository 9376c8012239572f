"""Every action of the admin: it asks first, needs its permission, and is logged."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_q.models import Failure

from chat.models import Chat
from memories.models import Clearing, ClearingStatus, Extraction, Memory, Scope
from memories.writing import changing, gate, review
from tests.admin_pages import run_action
from tests.api import type_password_again
from tests.conftest import Cast, make_cast
from tests.copies import copied
from tests.digests import digests
from tests.factories import make_agent, make_chat, make_document, make_key_text, make_memory, make_user
from tests.fakes.embedder import FakeEmbedder
from workspaces.actions.workspaces import archive_agent
from workspaces.models import (
    Agent,
    ApiKey,
    AuditEvent,
    Document,
    DocumentStatus,
    EmbeddingModel,
    User,
)

ACTIONS = [
    (model, name)
    for model, page in sorted(admin.site._registry.items(), key=lambda pair: pair[0]._meta.label)
    for name in page.actions or ()
]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]


@dataclass(frozen=True)
class Rows:
    """A row of each model, and another for actions that need a special one."""

    of: dict[Any, Any]
    for_action: dict[tuple[Any, str], Any]

    def pick(self, model: Any, name: str) -> Any:
        return self.for_action.get((model, name)) or self.of[model]


@pytest.fixture(scope="module")
def made_rows(module_transaction: None) -> Rows:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("workspaces.index.embedding.get_embedder", lambda: FakeEmbedder(64))
        return make_rows(make_cast())


@pytest.fixture
def rows(made_rows: Rows, db: None) -> Rows:
    """Rows created once for all actions; each test finds them unchanged."""
    return copied(made_rows)


def make_rows(cast: Cast) -> Rows:
    now, owner, place = timezone.now(), cast.owner, cast.workspace
    memory = make_memory("The kettle is green", owner, place, source_message_id="msg_" + "a" * 24)
    newer = make_memory("The kettle is red", owner, place)
    Memory.objects.filter(pk=newer.pk).update(may_replace=memory)
    newest = make_memory("The kettle is blue", owner, place)
    Memory.objects.filter(pk=newest.pk).update(may_replace=make_memory("The kettle is black", owner, place))
    newest = changing.replace_older(newest, by=owner, now=now)
    gone = gate.delete_memory(make_memory("Cats purr", owner, place), by=owner, now=now)
    draft = gate.Draft("Dogs bark", place, cast.viewer).to_review()
    proposal = gate.save_memory(draft, by=cast.viewer, now=now).memory
    rejected = gate.save_memory(
        gate.Draft("Rain falls", place, cast.viewer).to_review(), by=cast.viewer, now=now
    ).memory
    review.reject(rejected, by=owner, now=now)
    make_key_text(owner, place)
    archived = archive_agent(make_agent(owner, place, name="Old"), by=owner, now=now)
    closed = make_user("closed", is_active=False)
    unread = make_document(owner, place, embedded=False)
    Document.objects.filter(pk=unread.pk).update(status=DocumentStatus.FAILED)
    job = {"func": "memories.tasks.evict", "kwargs": {"workspace_id": 1, "owner_id": None}}
    of = {
        Memory: memory,
        Chat: make_chat(cast.editor, place, title="Kettles"),
        Agent: make_agent(owner, place, name="Scout"),
        ApiKey: ApiKey.objects.get(),
        User: cast.viewer,
        Authenticator: Authenticator.objects.create(user=cast.viewer, type="totp", data={}),
        EmbeddingModel: EmbeddingModel.objects.get(),
        Clearing: Clearing.objects.create(
            workspace=place,
            scope=Scope.WORKSPACE,
            place=memory.place,
            by=owner,
            status=ClearingStatus.CLEARED,
            started_at=gone.deleted_at or now,
            finished_at=now,
        ),
        Extraction: Extraction.objects.create(
            workspace=place,
            user=owner,
            chat_id="chat_" + "a" * 24,
            message_id="msg_" + "a" * 24,
            source_type="auto_chat",
            status="failed",
            next_attempt_at=now,
        ),
        Document: unread,
        Failure: Failure.objects.create(
            id="f" * 32, name="make room", started=now, stopped=now, success=False, **job
        ),
    }
    for_action = {
        (Memory, "restore"): gone,
        (Memory, "approve"): proposal,
        (Memory, "reject"): proposal,
        (Memory, "reconsider"): rejected,
        (Memory, "replace_older"): newer,
        (Memory, "keep_both"): newer,
        (Memory, "hold_again"): newest,
        (Chat, "restore"): make_chat(cast.editor, place, title="Gone", deleted_at=now),
        (Agent, "restore"): archived,
        (User, "reopen"): closed,
    }
    return Rows(of, for_action)


def page_of(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    type_password_again(client)
    return client


@pytest.fixture
def boss() -> Client:
    return signed_in(make_user("boss", is_staff=True, is_superuser=True))


def everything_stored() -> dict[str, str | None]:
    """Return a digest of each table but the sessions."""
    return digests({table: f'SELECT * FROM "{table}"' for table in _tables()})


@cache
def _tables() -> list[str]:
    with connection.cursor() as cursor:
        return [name for name in connection.introspection.table_names(cursor) if name != "django_session"]


def each_action(rows: Rows) -> Iterator[tuple[str, Any, str, Any]]:
    """Yield (label, model, action, row) of each action. What it changes is rolled back before the next one."""
    assert len(ACTIONS) >= 22
    for model, name in ACTIONS:
        with transaction.atomic():
            yield f"{model._meta.label}.{name}", model, name, copied(rows).pick(model, name)
            transaction.set_rollback(True)


def test_each_action_asks_first_and_is_logged_under_the_name_of_who_confirmed_it(
    rows: Rows, boss: Client
) -> None:
    before = everything_stored()
    newest = AuditEvent.objects.order_by("-id").values_list("id", flat=True).first() or 0
    for action, model, name, row in each_action(rows):
        asked = boss.post(page_of(model), {"action": name, "_selected_action": [row.pk]})
        assert asked.templates[0].name == "admin/action_confirmation.html", action
        assert asked.context["asks"], action
        assert everything_stored() == before, f"{action} changes something before it is confirmed"
        run_action(boss, page_of(model), name, row)
        events = AuditEvent.objects.filter(id__gt=newest)
        assert {event.by_name for event in events} == {"boss"}, f"{action}: not its author, nor an owner"
        logged = events.get(verb="admin_action")
        public_id = getattr(row, "public_id", "")
        assert logged.target == public_id or logged.details["ids"] == [public_id or str(row.pk)], action


def test_each_action_is_offered_to_exactly_those_with_its_permission(rows: Rows) -> None:
    moderator = make_user("moderator", is_staff=True)
    client = signed_in(moderator)
    for action, model, name, row in each_action(rows):
        opts = model._meta
        (needed,) = getattr(type(admin.site._registry[model]), name).allowed_permissions
        allows = model is not Authenticator  # superusers only
        assert needed in ("change", "delete"), action
        wanted, looks = (
            Permission.objects.get(
                content_type__app_label=opts.app_label, codename=f"{right}_{opts.model_name}"
            )
            for right in (needed, "view")
        )
        moderator.user_permissions.set(Permission.objects.exclude(pk=wanted.pk))
        before = everything_stored()
        assert f'value="{name}"' not in client.get(page_of(model)).content.decode(), action
        run_action(client, page_of(model), name, row)
        assert everything_stored() == before, f"{action} is allowed by other permissions"
        moderator.user_permissions.set([looks, wanted])
        assert (f'value="{name}"' in client.get(page_of(model)).content.decode()) == allows, action
