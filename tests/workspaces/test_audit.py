"""The audit log: append-only, with public ids, without user text."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import ProgrammingError, connection, transaction
from django.test import Client
from django.utils import timezone, translation

from chat.chats.services import delete_chat, restore_chat
from memories.writing.changing import restore_memory
from memories.writing.gate import Draft, delete_memory, edit_memory
from memoryhub.monitoring import request_origin
from tests.admin_pages import run_action
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import add_member, make_chat, make_memory, make_user
from tests.rollback import rolled_back
from workspaces.actions import workspaces as actions
from workspaces.audit import Verb, in_words, prune, record
from workspaces.models import AuditEvent, User

pytestmark = pytest.mark.django_db


def test_an_event_says_who_what_where_and_outlives_them(cast: Cast) -> None:
    record(Verb.MEMBER_ADDED, by=cast.owner, workspace=cast.workspace, target=cast.viewer.public_id)
    owner_id, ws_id, viewer_id = cast.owner.public_id, cast.workspace.public_id, cast.viewer.public_id
    cast.workspace.delete()
    cast.owner.delete()
    event = AuditEvent.objects.get(verb=Verb.MEMBER_ADDED)
    assert (event.by_id, event.by_name, event.workspace_id) == (owner_id, "olive", ws_id)
    assert event.target == viewer_id


def test_an_event_knows_its_request(cast: Cast) -> None:
    before = request_origin.current.get()
    try:
        request_origin.current.set(request_origin.Origin("abcdef0123456789", "203.0.113.0/24"))
        record(Verb.SIGNED_IN, by=cast.owner)
    finally:
        request_origin.current.set(before)
    event = AuditEvent.objects.get()
    assert (event.request_id, event.network) == ("abcdef0123456789", "203.0.113.0/24")


def test_text_finds_no_way_in(cast: Cast) -> None:
    for wrong in (
        {"verb": "sang"},
        {"target": "the deadline is March 15"},
        {"details": {"content": "the deadline is March 15"}},
        {"details": {"ids": ["mem_1", "the deadline is March 15"]}},
        {"details": {"a name": 1}},
        {"details": {"deep": {"er": 1}}},
        {"details": {"ids": ["x"] * 51}},
    ):
        event: dict[str, Any] = {"verb": Verb.EXPORTED, "by": cast.owner, **wrong}
        with pytest.raises(ValueError):
            record(event.pop("verb"), **event)
        assert not AuditEvent.objects.exists()


def test_what_is_rolled_back_was_never_done(cast: Cast) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        record(Verb.EXPORTED, by=cast.owner)
        raise RuntimeError
    assert not AuditEvent.objects.exists()


def test_rows_are_changed_and_deleted_neither_by_the_model_nor_by_sql(cast: Cast) -> None:
    record(Verb.EXPORTED, by=cast.owner)
    event = AuditEvent.objects.get()
    for change in (
        event.save,
        event.delete,
        AuditEvent.objects.all().delete,
        lambda: AuditEvent.objects.update(verb="x"),
    ):
        with pytest.raises(TypeError):
            change()
    update = "UPDATE workspaces_auditevent SET by_name = 'nobody'"
    for statement in (
        update,
        "DELETE FROM workspaces_auditevent",
        f"SET LOCAL memoryhub.audit_retention = 'on'; {update}",  # which only lets the retention delete
    ):
        with (
            pytest.raises(ProgrammingError, match="append-only"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
        assert AuditEvent.objects.get().by_name == "olive", statement


def test_retention_takes_what_is_too_old_and_nothing_else(cast: Cast, settings: Any) -> None:
    record(Verb.EXPORTED, by=cast.owner)
    record(Verb.IMPORTED, by=cast.owner)
    later = timezone.now() + timedelta(days=365)
    settings.AUDIT_DAYS = 366
    assert prune(now=later) == 0
    settings.AUDIT_DAYS = 0
    assert prune(now=later + timedelta(days=10_000)) == 0
    settings.AUDIT_DAYS = 364
    assert prune(now=later) == 2
    assert not AuditEvent.objects.exists()


# The page for a workspace's owners


def page(user: User, cast: Cast, query: str = "") -> Any:
    client = Client()
    client.force_login(user)
    return client.get(f"/workspaces/{cast.workspace.public_id}/activity/{query}")


def test_details_are_said_in_the_readers_language(catalogues: None) -> None:
    details = {"role": "editor", "before": "viewer", "by_mail": True, "money": None, "of": "usr_" + "a" * 24}
    with translation.override("de"):
        assert (
            in_words(details)
            == f"Rolle Bearbeiter, vorher Betrachter, per E-Mail ja, Kosten -, von usr_{'a' * 24}"
        )


def test_owners_see_what_was_done_in_their_workspace_and_nothing_else(cast: Cast) -> None:
    elsewhere = actions.create_workspace(name="Elsewhere", by=cast.owner)
    add_member(cast.workspace, user=cast.stranger, role="viewer", by=cast.owner)
    actions.change_role(cast.workspace, user=cast.stranger, role="editor", by=cast.owner)
    actions.remove_member(cast.workspace, user=cast.stranger, by=cast.stranger)
    html = page(cast.owner, cast).content.decode()
    for words in (
        "created an invitation",
        "joined by an invitation",
        "role editor, before viewer",
        "left the workspace",
        "<bdi>sam</bdi>",
    ):
        assert words in html, words
    told = re.sub(r"<details.*?</details>", "", html.split('<ul class="rows">')[1], flags=re.DOTALL)
    assert not re.search(r"usr_\w{20,}", told), "ids are for who asks for details"
    assert "created the workspace" not in html and elsewhere.public_id not in html.split("<main")[1]
    for user, status in ((cast.editor, 403), (cast.viewer, 403), (cast.stranger, 404)):
        assert page(user, cast).status_code == status


def test_long_logs_come_in_pages_that_hold_each_event_once(cast: Cast) -> None:
    for number in range(120):
        record(Verb.MEMORY_EDITED, by=cast.owner, workspace=cast.workspace, details={"number": number})
    seen: list[str] = []
    query = ""
    for _ in range(3):
        html = page(cast.owner, cast, query).content.decode()
        seen += re.findall(r"number (\d+)", html)
        found = re.search(r'href="(\?before=[^"]+)"', html)
        query = found[1] if found else ""
    assert [int(number) for number in seen] == list(range(119, -1, -1))
    assert not query


# The admin


@pytest.fixture
def staff(cast: Cast) -> Client:
    boss = make_user("boss", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(boss)
    return client


def test_what_staff_do_in_the_admin_is_theirs_not_the_owners(cast: Cast, staff: Client) -> None:
    path = f"/admin/workspaces/workspace/{cast.workspace.pk}/change/"
    form = {
        "name": "Renamed",
        "description": "",
        "memberships-TOTAL_FORMS": "0",
        "memberships-INITIAL_FORMS": "0",
    }
    assert staff.post(path, form).status_code == 302
    events = AuditEvent.objects.filter(workspace_id=cast.workspace.public_id).order_by("id")
    assert [(event.verb, event.by_name) for event in events] == [
        ("workspace_changed", "boss"),
        ("admin_changed", "boss"),
    ]
    assert events[1].details == {"kind": "workspace", "fields": ["name"]}


def test_an_action_over_many_rows_is_one_event_with_their_ids(cast: Cast, staff: Client) -> None:
    people = [cast.editor, cast.viewer]
    run_action(staff, "/admin/workspaces/user/", "close", *people)
    event = AuditEvent.objects.get(verb="admin_action")
    assert event.details["count"] == 2
    assert set(event.details["ids"]) == {person.public_id for person in people}
    assert event.details["what"] == "action_close_the_account_can_be_reopened"
    closed = AuditEvent.objects.filter(verb="account_closed").values_list("target", flat=True)
    assert set(closed) == {person.public_id for person in people}


def test_the_admin_shows_the_log_and_changes_nothing(cast: Cast, staff: Client) -> None:
    record(Verb.EXPORTED, by=cast.owner, workspace=cast.workspace, details={"memories": 12})
    event = AuditEvent.objects.get(verb="exported")
    page = staff.get("/admin/workspaces/auditevent/").content.decode()
    assert "olive" in page and "memories 12" in page
    change = f"/admin/workspaces/auditevent/{event.pk}/change/"
    assert staff.get(change).status_code == 200
    assert staff.post(change, {"by_name": "nobody"}).status_code == 403
    assert staff.post(f"/admin/workspaces/auditevent/{event.pk}/delete/", {"post": "yes"}).status_code == 403
    assert staff.get("/admin/workspaces/auditevent/add/").status_code == 403
    form = {"action": "delete_selected", "_selected_action": [event.pk]}
    staff.post("/admin/workspaces/auditevent/", form)
    assert AuditEvent.objects.filter(pk=event.pk).exists()


def test_the_log_is_narrowed_down(cast: Cast, staff: Client) -> None:
    record(Verb.EXPORTED, by=cast.owner, workspace=cast.workspace, details={"memories": 12})
    ids = {
        "ws": cast.workspace.public_id,
        "owner": cast.owner.public_id,
        "stranger": cast.stranger.public_id,
    }
    for query, found in (
        ("verb=exported", True),
        ("verb=signed_in", False),
        ("at__gte=2026-01-01 00:00:00%2B00:00", True),
        ("at__lt=2026-01-01 00:00:00%2B00:00", False),
        ("q={ws}", True),
        ("q={owner}", True),
        ("q={stranger}", False),
        ("q=nonsense%00", False),
        ("verb=kumquat", True),
    ):
        page = staff.get(f"/admin/workspaces/auditevent/?{query.format(**ids)}").content.decode()
        assert ("memories 12" in page) == found


# Actions on memories and chats


def test_memories_are_audited_by_id_and_personal_ones_for_nobody_else(cast: Cast) -> None:
    now = timezone.now()
    memory = make_memory("The kumquat deadline is March 15", cast.owner, cast.workspace)
    mine = make_memory("Olive likes kumquats", cast.owner, scope="user")
    edit_memory(memory, by=cast.editor, now=now, content="The kumquat deadline is April 1")
    delete_memory(memory, by=cast.editor, now=now)
    delete_memory(memory, by=cast.editor, now=now)
    restore_memory(memory, by=cast.owner, now=now)
    delete_memory(mine, by=cast.owner, now=now)
    delete_memory(memory, by=None, now=now)
    events = list(AuditEvent.objects.exclude(verb="signed_in").order_by("id"))
    assert [(event.verb, event.by_name, event.workspace_id) for event in events] == [
        ("memory_edited", "eddie", cast.workspace.public_id),
        ("memory_deleted", "eddie", cast.workspace.public_id),
        ("memory_restored", "olive", cast.workspace.public_id),
        ("memory_deleted", "olive", ""),
    ]
    assert "content" in events[0].details["fields"]
    assert "kumquat" not in str([vars(event) for event in events])


def test_chats_are_audited_and_private_ones_for_nobody_else(cast: Cast) -> None:
    now = timezone.now()
    chat = make_chat(cast.editor, cast.workspace)
    private = make_chat(cast.editor, cast.workspace, is_private=True)
    for each in (chat, private):
        delete_chat(each, by=cast.editor, now=now)
    restore_chat(chat, by=cast.editor, now=now)
    events = AuditEvent.objects.order_by("id")
    assert [(event.verb, event.workspace_id) for event in events] == [
        ("chat_deleted", cast.workspace.public_id),
        ("chat_deleted", ""),
        ("chat_restored", cast.workspace.public_id),
    ]


def test_reading_in_bulk_is_audited_and_looking_is_not(cast: Cast) -> None:
    drafts = [Draft(f"Number {number} is on the list", cast.workspace, cast.owner) for number in range(60)]
    save_memories(drafts, by=cast.owner, now=timezone.now())
    client = Client()
    client.force_login(cast.viewer)
    for address in rolled_back(
        ["/chat/api/workspaces/{ws}/memories?", "/api/v1/memories?workspace_id={ws}&"]
    ):
        where = address.format(ws=cast.workspace.public_id)
        assert len(client.get(f"{where}limit=20").json()["items"]) == 20, address
        assert not AuditEvent.objects.filter(verb="memories_read").exists(), address
        assert len(client.get(f"{where}limit=100").json()["items"]) == 60, address
        event = AuditEvent.objects.get(verb="memories_read")
        assert (event.by_name, event.details) == ("vera", {"count": 60}), address
