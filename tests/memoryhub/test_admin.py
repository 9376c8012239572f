"""Every page of the admin for every kind of user, and what all lists share."""

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape
from django_q.models import Failure, OrmQ, Schedule, Success
from django_q.signing import SignedPackage
from django_q.tasks import async_task

from chat.models import AnswerRating, Chat, Message, Run
from memories.models import Asset, Extraction, Memory, MemoryNode, Receipt, Refusal
from memoryhub.database.queries import EXACT_COUNT_UP_TO, count_or_estimate
from tests.admin_pages import figures, run_action
from tests.factories import make_agent, make_chat, make_key_text, make_memory, make_message, make_user
from tests.signing_in import signed_in
from workspaces.admin.base import BoundedPaginator
from workspaces.models import (
    Agent,
    ApiKey,
    Artifact,
    AuditEvent,
    Document,
    EmbeddingModel,
    ModelUse,
    User,
    Workspace,
)

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
OURS = [User, Workspace, Agent, ApiKey, Chat, Message, Memory, Extraction, Receipt]
QUEUE = [Success, Failure, OrmQ, Schedule]
NOT_ADDED_HERE = {
    AnswerRating,
    ModelUse,
    Run,
    Agent,
    ApiKey,
    Artifact,
    Asset,
    AuditEvent,
    Authenticator,
    EmailAddress,
    Chat,
    Document,
    EmbeddingModel,
    MemoryNode,
    Message,
    Extraction,
    Receipt,
    Refusal,
    *QUEUE,
}
HOSTILE = ["% _ \\", "'", '"', "' | !x & ( :*", "<script>alert(1)</script>", "a" * 5000, "mem_zzz"]
HOSTILE += ["mem_" + "a" * 24, "usr_" + "a" * 24, "ws_" + "a" * 24, "🦊 -1 \u202e", "the"]

pytestmark = pytest.mark.django_db


def url(model: Any, page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


@pytest.fixture
def superuser() -> User:
    return make_user("root", is_staff=True, is_superuser=True)


@pytest.fixture
def staff_viewer() -> User:
    """Staff with all view permissions only."""
    user = make_user("looker", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return user


@pytest.fixture
def bare_staff() -> User:
    """Staff without any permission."""
    return make_user("newcomer", is_staff=True)


@pytest.fixture
def everything() -> dict[Any, Any]:
    """Create one row of every model in the admin."""
    user = make_user("olive")
    memory = make_memory("The kettle is green", user)
    chat = make_chat(user, title="Kettles")
    message = make_message(chat, "Which kettle?")
    place = {"workspace": memory.workspace, "user": user}
    extraction = Extraction.objects.create(
        **place,
        chat_id=chat.public_id,
        message_id=message.public_id,
        source_type="auto_chat",
        next_attempt_at=timezone.now(),
    )
    receipt = Receipt.objects.create(**place, message_id=message.public_id, ranking="hybrid", threshold=0.3)
    receipt.items.create(memory=memory, position=1, score=0.9, content=memory.content, used=True)
    make_key_text(user, memory.workspace)
    return {
        User: user,
        Agent: make_agent(user, memory.workspace),
        ApiKey: ApiKey.objects.get(),
        Workspace: memory.workspace,
        Chat: chat,
        Message: message,
        Memory: memory,
        Extraction: extraction,
        Receipt: receipt,
        Run: Run.objects.create(**place, mode="loop", objective="Compare", deadline_at=timezone.now()),
    }


def test_who_sees_a_list_and_may_add_to_it(superuser: User, staff_viewer: User, bare_staff: User) -> None:
    """Superusers see every list, view-only staff may not add, staff without permissions see no list; others are
    redirected to sign in.
    """
    olive = make_user("olive")
    clients = {user: signed_in(user) for user in (superuser, staff_viewer, bare_staff)}
    for model in MODELS:
        expected = {superuser: [200, 403 if model in NOT_ADDED_HERE else 200]}
        if model in (User, Memory):
            expected |= {staff_viewer: [200, 403], bare_staff: [403, 403]}
        for user, statuses in expected.items():
            found = [clients[user].get(url(model, page)).status_code for page in ("changelist", "add")]
            assert found == statuses, (model, user)
    for client in (signed_in(olive), Client()):
        response = client.get(url(Memory, "changelist"))
        assert response.status_code == 302
        assert response["Location"].startswith(("/accounts/login/", "/admin/login/"))  # which leads there


def test_the_admin_has_no_sign_in_of_its_own() -> None:
    response = Client().get("/admin/login/?next=/admin/memories/memory/")
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("account_login"))
    assert "%2Fadmin%2Fmemories%2Fmemory" in response["Location"]
    assert signed_in(make_user("olive")).get("/admin/login/").status_code == 403


def test_no_search_text_breaks_a_list(superuser: User, everything: Any) -> None:
    client = signed_in(superuser)
    for model in OURS:
        for text in HOSTILE if model is Memory else [" ".join(HOSTILE[:5]), "a" * 5000]:
            response = client.get(url(model, "changelist"), {"q": text})
            assert response.status_code == 200, text
            assert b"<script>alert(1)" not in response.content, text


def test_nothing_is_deleted_for_good(superuser: User, everything: dict[Any, Any]) -> None:
    client = signed_in(superuser)
    for model in (User, Workspace, Agent, ApiKey, Message, Extraction, Receipt, Chat):
        row = everything[model]
        assert client.post(url(model, "delete", row.pk), {"post": "yes"}).status_code == 403
        chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
        client.post(url(model, "changelist"), chosen)
        assert model.objects.filter(pk=row.pk).exists()


def test_the_first_page_links_to_what_waits(superuser: User, everything: dict[Any, Any]) -> None:
    older = everything[Memory]
    newer = make_memory("The kettle is red", older.author)
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    Extraction.objects.update(status="failed")
    page = signed_in(superuser).get("/admin/")
    shown = figures(page)
    for figure in shown.values():
        assert f'href="{escape(figure.url)}"' in page.content.decode()
        assert signed_in(superuser).get(figure.url).status_code == 200, figure.url
    assert f"{url(Extraction, 'changelist')}?status=failed" == shown["failed extractions"].url
    assert shown["possible updates"].value == "1"
    assert shown["failed extractions"].value == "1"
    assert shown["memories in use"].value == "2"


def test_queue_pages_show_waiting_failed_and_done_jobs(superuser: User) -> None:
    async_task("memories.tasks.embed_memories", memory_ids=[1], task_name="embed memories")
    OrmQ.objects.create(key="memoryhub", payload="not signed", lock=timezone.now())
    now = timezone.now()
    common = {"func": "memories.tasks.evict", "started": now, "stopped": now, "cluster": "memoryhub"}
    Failure.objects.create(id="f" * 32, name="make room", success=False, result="<b>broke</b>", **common)
    Success.objects.create(id="5" * 32, name="made room", success=True, result="done", **common)
    Schedule.objects.create(name="sweep", func="memories.tasks.sweep")
    client = signed_in(superuser)
    expected = {OrmQ: "embed memories", Failure: "&lt;b&gt;broke", Success: "made room", Schedule: "sweep"}
    for model, text in expected.items():
        assert text in client.get(url(model, "changelist")).content.decode()
        for row in model.objects.all():
            assert client.get(url(model, "change", row.pk)).status_code == 200
    assert SignedPackage.loads(OrmQ.objects.order_by("pk")[0].payload)["name"] == "embed memories"


def test_nobody_types_a_function_into_the_queue(superuser: User) -> None:
    """A schedule runs any function by its name, so writing one would allow running any code."""
    sweep = Schedule.objects.create(name="sweep", func="memories.tasks.sweep")
    client, now = signed_in(superuser), timezone.now()
    failed = Failure.objects.create(
        id="f" * 32, name="sweep", func="x.y", started=now, stopped=now, success=False
    )
    queued = OrmQ.objects.create(key="memoryhub", payload="not signed", lock=now)
    for row in (sweep, failed, queued):
        assert client.post(url(type(row), "add"), {"func": "os.system"}).status_code == 403
        assert client.post(url(type(row), "change", row.pk), {"func": "os.system"}).status_code == 403
    sweep.refresh_from_db()
    assert sweep.func == "memories.tasks.sweep"


def test_a_failed_job_is_run_again_by_who_may_change_it(superuser: User, staff_viewer: User) -> None:
    now = timezone.now()
    failed = Failure.objects.create(
        id="f" * 32,
        name="make room",
        func="memories.tasks.evict",
        kwargs={"workspace_id": 1, "owner_id": None},
        started=now,
        stopped=now,
        success=False,
    )
    run_action(signed_in(staff_viewer), url(Failure, "changelist"), "run_again", failed)
    assert Failure.objects.exists()
    run_action(signed_in(superuser), url(Failure, "changelist"), "run_again", failed)
    assert not Failure.objects.exists()
    assert OrmQ.objects.get().func() == "memories.tasks.evict"


def test_counts_are_exact_below_the_bound_and_estimated_above(monkeypatch: pytest.MonkeyPatch) -> None:
    User.objects.bulk_create(User(username=f"extra{n}") for n in range(30))
    assert count_or_estimate(User.objects.all()) == (30, False)
    monkeypatch.setattr("memoryhub.database.queries.EXACT_COUNT_UP_TO", 10)
    number, estimate = count_or_estimate(User.objects.order_by("pk"))
    assert estimate
    assert number > 10
    assert EXACT_COUNT_UP_TO >= 1000


def test_a_long_list_says_about(superuser: User, monkeypatch: pytest.MonkeyPatch) -> None:
    User.objects.bulk_create(User(username=f"extra{n}") for n in range(60))
    monkeypatch.setattr("memoryhub.database.queries.EXACT_COUNT_UP_TO", 10)
    response = signed_in(superuser).get(url(User, "changelist"))
    assert isinstance(response.context["cl"].paginator, BoundedPaginator)
    assert "about" in response.content.decode().split('class="paginator"')[1]


def test_the_log_keeps_no_copy_of_a_memory(superuser: User, everything: dict[Any, Any]) -> None:
    memory = everything[Memory]
    client = signed_in(superuser)
    run_action(client, url(Memory, "changelist"), "forget", memory)
    run_action(client, url(Memory, "changelist"), "restore", memory)
    entries = list(LogEntry.objects.all())
    assert len(entries) == 2
    assert {entry.object_repr for entry in entries} == {memory.public_id}
    assert not any("kettle" in entry.change_message for entry in entries)
