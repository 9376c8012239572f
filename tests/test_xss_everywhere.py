"""Hostile text in every text column and through every form: no page of the project or of the admin executes it.

Columns, pages and forms are read from the models, the routes and the admin, so that new ones are tried automatically; a
new model without a row in the world fails ``test_every_text_is_hostile``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django_q.models import Failure, OrmQ, Success
from django_q.signing import SignedPackage

from chat.models import (
    AnswerRating,
    AnswerSource,
    ChatTag,
    Compaction,
    Message,
    PassingTurn,
    Run,
    ShortTermMemory,
    Step,
    ToolCall,
)
from chat.models.imports import Import, ImportRow
from chat.models.runs import RunTemplate
from memories.models import Extraction, Memory, MemoryNode, MemorySource, NodeRelation, ReceiptItem, Refusal
from memoryhub.ids import PublicIdField
from tests.chat.views.test_xss import EVIL, Page
from tests.factories import make_token_text
from tests.test_attacks import FORMS, READING_PAGES, client_of
from tests.world import EachRow, World
from workspaces.models import (
    Agent,
    AuditEvent,
    Document,
    DoneRequest,
    EmbeddingModel,
    ModelUse,
    User,
    Workspace,
)

pytestmark = pytest.mark.django_db
APPS = ("workspaces", "memories", "chat")
# Columns that only the program writes and reads: hashes, keys, lexemes, references, internal structures.
MACHINE = {
    "workspaces.User": {"password", "picture_version"},
    "workspaces.GroupGrant": {"role"},
    "workspaces.DirectoryGroup": {"name", "external_id"},
    "workspaces.WaitingMail": {"sealed"},
    "workspaces.Connection": {"sealed_key"},
    "workspaces.ApiKey": {"key_hash", "beginning"},
    "workspaces.OAuthCode": {"code_hash", "challenge", "resource"},
    "workspaces.OAuthToken": {"token_hash", "resource"},
    "workspaces.SignIn": {"session_key"},
    "workspaces.ModelUse": {"purpose"},
    "workspaces.Invitation": {"used_by"},
    "workspaces.Spent": {"limit"},
    "workspaces.AuditEvent": {"verb", "by_id", "workspace_id", "target"},
    "workspaces.DoneRequest": {"fingerprint", "note"},
    "memories.Memory": {"content_hash"},
    "memories.Asset": {"sha256", "file_name", "content_type"},
    "workspaces.PassageVector": {"model"},
    "workspaces.EmbeddingModel": {"label", "reached", "refused"},
    "memories.Extraction": {"message_id"},
    "workspaces.CommonWord": {"lexeme"},
    "workspaces.PassageWord": {"lexeme"},
    "workspaces.VectorIndex": {"name", "model"},
    "memories.MemoryNode": {"folded"},
    "memories.Receipt": {"message_id"},
    "memories.Tombstone": {"digest"},
    "memories.KeptCopy": {"kind"},
    "chat.Import": {"kind", "foreseen", "outcomes", "places"},
    "chat.PassingTurn": {"conversation", "fingerprint", "memory_ids"},
    "chat.ShareLink": {"token_hash", "message_ids", "memories_used"},
    "chat.AnswerRating": {"reasons"},
    "chat.Step": {"memory_ids"},
    "chat.ToolCall": {"memory_ids"},
}
TEXTS = (models.CharField, models.TextField, models.JSONField, ArrayField)


class AdminPage(Page):
    """A page of Django's, with its referenced icons, data in inert script elements, and inline styles."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = [(name, value) for name, value in attrs if name != "style" and not _is_own_file(name, value)]
        given = dict(attrs)
        if tag == "script" and (
            given.get("type") == "application/json" or given.get("src") == "/admin/jsi18n/"
        ):
            return
        if tag == "img" and (given.get("src") or "").startswith("/static/"):
            return
        super().handle_starttag(tag, kept if tag != "script" else attrs)


def _is_own_file(name: str, value: str | None) -> bool:
    return name == "xlink:href" and (value or "").startswith(("#", "/static/"))


def text_fields(model: type[models.Model]) -> list[models.Field[Any, Any]]:
    fields = [field for field in model._meta.concrete_fields if isinstance(field, TEXTS)]
    machine = MACHINE.get(model._meta.label, set())
    return [
        field
        for field in fields
        if not (isinstance(field, PublicIdField) or field.choices or field.name in machine)
    ]


OURS = [model for app in APPS for model in apps.get_app_config(app).get_models() if text_fields(model)]


def hostile(value: Any, field: models.Field[Any, Any], pk: int) -> Any:
    """Return as much of the hostile text as fits, different for each row; a structure keeps its form."""
    if isinstance(field, models.JSONField):
        return _within(value)
    if isinstance(field, ArrayField):
        return [EVIL[:40]]
    room = field.max_length or 2000
    return f"{EVIL}{pk}"[:room] if room > len(EVIL) + 12 else f"{pk}{EVIL}"[:room]


def _within(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _within(each) for name, each in value.items()} or {EVIL: EVIL}
    if isinstance(value, list):
        return [_within(each) for each in value]
    return EVIL if isinstance(value, str) else value


def add_the_rest(world: World) -> None:
    """Create a row of each model that the world of the routes lacks."""
    owner, workspace, now = world.cast.owner, world.cast.workspace, timezone.now()
    memory, answer = Memory.objects.get(public_id=world.ids["mem_id"]), world.ids["msg_id"]
    message = Message.objects.get(public_id=answer)
    first, second = MemoryNode.objects.order_by("pk")[:2]
    Agent.objects.update(description="x", instructions="x")
    MemorySource.objects.create(memory=memory, source_id="x")
    NodeRelation.objects.create(source=first, target=second, relation="x")
    Document.objects.earliest("pk").versions.create(
        version=1, file_name="x", media_type="x", size=1, sha256="x", version_by=owner, version_at=now
    )
    EmbeddingModel.objects.create(label="x", name="x", base_url="x", error="x", dimension=3, started_at=now)
    ModelUse.objects.create(
        workspace=workspace, user=owner, day=now.date(), purpose="run", model="x", calls=1
    )
    Extraction.objects.create(
        workspace=workspace,
        user=owner,
        chat_id="x",
        message_id=answer,
        source_type="x",
        error="x",
        next_attempt_at=now,
    )
    Refusal.objects.create(workspace=workspace, day=now.date(), source_type="x", kind="x", number=1)
    ImportRow.objects.create(
        of=Import.objects.get(), number=1, offset=0, kind="x", outcome="refused", reason="x"
    )
    ToolCall.objects.create(
        message=message, name="x", arguments={"query": "x"}, output="x", started_at=now, finished_at=now
    )
    Step.objects.create(
        message=message, kind="plan", text="x", findings=[{"claim": "x"}], error="x", started_at=now
    )
    ShortTermMemory.objects.create(
        chat=message.chat,
        summary="x",
        last_said=[{"role": "user", "text": "x"}],
        touched_at=now,
        expires_at=now + timedelta(days=1),
    )
    document = Document.objects.all()[0]
    AnswerSource.objects.create(message=message, document=document, number=1, heading="x", score=0.5)
    Compaction.objects.create(chat=message.chat, summary="x", model="x", upto=message)
    PassingTurn.objects.create(
        workspace=workspace, user=owner, said=[["user", "x"]], shown=["x"], answer="x", created_at=now
    )
    AnswerRating.objects.create(message=message, user=owner, rating="down", comment="x", model_name="x")
    ChatTag.objects.create(chat=message.chat, user=owner, name="x")
    run = Run.objects.get(public_id=world.ids["run_id"])
    RunTemplate.objects.create(workspace=workspace, user=owner, name="x", mode=run.mode, objective="x")
    run.tasks.create(ref="x", position=99, title="x", depends_on=["x"], member="x")
    run.steps.create(user=owner, ref="x", task="x", unit={"title": "x"}, error="x")
    run.entries.create(
        key="x", kind="shared", json='"x"', size=3, source="x", title="x", description="x", created_at=now
    )
    run.events.create(step="x", kind="step", data={"ref": "x"})
    make_token_text(owner, workspace)
    DoneRequest.objects.create(user=owner, name="x", fingerprint="x", note={}, done_at=now)
    ReceiptItem.objects.update(reason="x", score_parts={"meaning": 0.5})
    User.objects.filter(pk=owner.pk).update(is_staff=True, is_superuser=True)


def fill() -> dict[str, int]:
    """Make every text hostile. Return the number of rows by model."""
    filled = {}
    for model in OURS:
        fields = text_fields(model)
        if model is AuditEvent:  # append-only
            values = {field.name: hostile({}, field, 0) for field in fields}
            for workspace in Workspace.objects.all():
                AuditEvent.objects.create(
                    **values, verb="imported", workspace_id=workspace.public_id, at=timezone.now()
                )
            filled[model._meta.label] = 1
            continue
        rows = list(model._base_manager.all())
        for row in rows:
            changes = {field.name: hostile(getattr(row, field.name), field, row.pk) for field in fields}
            model._base_manager.filter(pk=row.pk).update(**changes)
        filled[model._meta.label] = len(rows)
    return filled


def add_what_others_made(world: World) -> None:
    """Create rows of third-party models in the admin: the queue's, the sign-in's, Django's groups."""
    owner, now = world.cast.owner, timezone.now()
    Group.objects.create(name=EVIL[:150])
    EmailAddress.objects.create(user=owner, email=EVIL)
    Authenticator.objects.create(user=owner, type="totp", data={"secret": EVIL})
    job = {"name": EVIL[:100], "func": EVIL, "args": (EVIL,), "kwargs": {EVIL: EVIL}}
    for number, kind in enumerate((Success, Failure)):
        kind.objects.create(
            id=f"{number:032d}", **job, result=EVIL, started=now, stopped=now, success=kind is Success
        )
    OrmQ.objects.create(key="memoryhub", payload=SignedPackage.dumps({"id": EVIL, **job}), lock=now)


@pytest.fixture(scope="module")
def filled(made_world: World) -> dict[str, int]:
    add_the_rest(made_world)
    filled = fill()
    add_what_others_made(made_world)
    return filled


def admin_pages() -> list[tuple[type[models.Model], str]]:
    """Return the lists, forms of one row and histories of everything in the admin, by name."""
    return [
        (model, page)
        for model in admin.site._registry
        for page in ("changelist", "add", "change", "history", "delete")
    ]


def test_every_text_is_hostile(filled: dict[str, int]) -> None:
    assert {name for name, number in filled.items() if not number} == set()
    assert len(filled) >= 25
    assert set(MACHINE) <= {model._meta.label for model in apps.get_models()}


def test_no_page_acts_on_what_is_stored(filled: dict[str, int], each_row: EachRow) -> None:
    for row, world in each_row([row for row in READING_PAGES if not row.route.endswith("/frame/")]):
        answer = client_of(world.cast.owner, row).get(world.address(row), follow=True)
        assert answer.status_code < 500, row
        if answer.headers["Content-Type"].startswith("text/html"):
            assert Page(answer.content.decode()).found == [], row


def test_no_form_acts_on_what_is_typed(filled: dict[str, int], each_row: EachRow) -> None:
    for row, world in each_row(FORMS):
        client = client_of(world.cast.owner, row)
        typed = {
            name: EVIL if isinstance(value, str) and "{" not in value else value
            for name, value in world.data(row).items()
        }
        for headers in ({}, {"HX-Request": "true"}):  # followed once: both lead to the same page
            address, follow = world.address(row) + "?next=" + EVIL, not headers
            answer: Any = client.post(address, typed, headers=headers, follow=follow)
            assert answer.status_code < 500, row
            if answer.status_code == 302:
                continue
            assert "alert" not in str(answer.headers), row
            if answer.headers["Content-Type"].startswith("text/html"):
                assert Page(answer.content.decode()).found == [], row


def test_no_page_of_the_admin_acts_on_it(filled: dict[str, int], world: World) -> None:
    for model, page in admin_pages():
        row = model._base_manager.first()
        assert row is not None, f"a page of nothing shows nothing: {model}"
        one = page not in ("changelist", "add")
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
        try:
            address = reverse(name, args=[row.pk] if one else [])
        except NoReverseMatch:
            continue  # this page does not exist
        client = client_of(world.cast.owner, READING_PAGES[0])
        answer = client.get(address, follow=True)
        assert answer.status_code in {200, 403}, (model, page)
        assert AdminPage(answer.content.decode()).found == [], (model, page)
