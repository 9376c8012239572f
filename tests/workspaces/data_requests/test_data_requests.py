"""A copy of one's data and the deletion of one's account: asked for, due, carried out, refused, withdrawn."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from chat.exchange.kept_about import ABOUT, HIDDEN, LEFT_OUT
from memories.models import Memory
from memoryhub.errors import Conflict, Invalid, NotFound
from memoryhub.monitoring.metrics import DatabaseState
from tests.admin_pages import run_action, said, staff
from tests.api import Api, error_of, type_password_again
from tests.conftest import Cast, make_cast
from tests.factories import (
    make_asset,
    make_chat,
    make_connection,
    make_key_text,
    make_memory,
    make_user,
    make_workspace,
)
from tests.races import Work
from workspaces.accounts.closing import close_account
from workspaces.accounts.leaving import delete_account
from workspaces.data_requests import requests
from workspaces.data_requests.carrying_out import carry_out
from workspaces.models import (
    AuditEvent,
    DataRequest,
    Membership,
    RequestKind,
    SignIn,
    User,
    Workspace,
)

pytestmark = pytest.mark.django_db
COPY, DELETION = RequestKind.COPY, RequestKind.DELETION
LIST = "/admin/workspaces/datarequest/"


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    type_password_again(client)
    return client


def ask(person: User, kind: RequestKind = DELETION, *, days_ago: int = 0) -> DataRequest:
    return requests.ask(person, kind, now=timezone.now() - timedelta(days=days_ago))


def fetched(person: User, asked: DataRequest) -> dict[str, bytes]:
    """The files of the ZIP, as it comes over REST."""
    api = Api(person)
    type_password_again(api.client)
    answer = api.get(f"account/requests/{asked.public_id}/copy")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    with zipfile.ZipFile(io.BytesIO(b"".join(answer))) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


# Asking


def test_a_request_says_who_what_and_when_it_is_due(cast: Cast, settings: Any) -> None:
    now = timezone.now()
    made = requests.ask(cast.owner, DELETION, now=now)
    assert (made.state, made.person, made.due_at) == ("open", cast.owner.public_id, now + timedelta(days=30))
    settings.DATA_REQUEST_DAYS = 10
    assert requests.ask(cast.editor, DELETION, now=now).due_at == now + timedelta(days=10)
    assert AuditEvent.objects.filter(verb="data_requested", by_id=cast.owner.public_id).get().details == {
        "kind": "deletion"
    }


def test_asked_twice_it_is_one_and_once_it_ended_another_can_be_asked(cast: Cast) -> None:
    first, copy = ask(cast.owner), ask(cast.owner, COPY)
    assert (ask(cast.owner), ask(cast.owner, COPY)) == (first, copy)
    requests.withdraw(first, by=cast.owner, now=timezone.now())
    assert ask(cast.owner) != first
    DataRequest.objects.filter(pk=copy.pk).update(expires_at=timezone.now())
    assert ask(cast.owner, COPY) != copy


def test_where_none_are_taken_none_is_and_the_page_says_so(cast: Cast, settings: Any) -> None:
    settings.DATA_REQUEST_DAYS = 0
    with pytest.raises(Conflict):
        ask(cast.owner)
    page = signed_in(cast.owner).get("/profile/requests/").content.decode()
    assert "are not accepted here" in page and 'value="copy"' not in page


def test_an_account_that_was_closed_meanwhile_asks_for_nothing(cast: Cast) -> None:
    close_account(cast.editor, by=None, now=timezone.now())
    with pytest.raises(NotFound):
        ask(cast.editor)


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_the_second_finds_the_first() -> None:
    cast = make_cast()

    def asking() -> DataRequest:
        return ask(cast.owner)

    works = [Work(asking), Work(asking)]
    found = [work.end() for work in works]
    assert found[0] == found[1]
    assert DataRequest.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_refusing_and_withdrawing_at_once_one_holds() -> None:
    cast = make_cast()
    asked, now = ask(cast.owner), timezone.now()
    works = [
        Work(lambda: requests.withdraw(asked, by=cast.owner, now=now)),
        Work(lambda: requests.refuse(asked, reason="No", by=cast.stranger, now=now)),
    ]
    ended = [work.end() for work in works]
    assert sorted(type(each).__name__ for each in ended) == ["Conflict", "DataRequest"]


# The copy


def test_a_copy_holds_the_export_what_is_kept_about_them_and_their_files(cast: Cast) -> None:
    memory = make_memory("The kiln is hot at noon", cast.owner, cast.workspace)
    asset = make_asset(memory, name="../kiln.txt", content=b"900 degrees")
    SignIn.objects.create(user=cast.owner, session_key="s" * 32, device="Firefox on Linux")
    files = fetched(cast.owner, ask(cast.owner, COPY))
    [attached] = [name for name in files if name.startswith("files/")]
    assert files[attached] == b"900 degrees"
    assert attached.startswith(f"files/{asset.public_id}-") and "/" not in attached.removeprefix("files/")
    exported = lines(files["memoryhub.jsonl"])
    assert exported[0]["type"] == "memoryhub"
    assert "The kiln is hot at noon" in [line.get("content") for line in exported]
    about = lines(files["about-you.jsonl"])
    kinds = {line["table"]: line for line in about}
    assert kinds["workspaces.User"]["username"] == "olive"
    assert kinds["workspaces.DataRequest"]["kind"] == "copy"
    assert kinds["workspaces.AuditEvent"]["verb"] == "exported"
    assert "Firefox on Linux" in [line.get("device") for line in about]
    assert b"memoryhub.jsonl" in files["README.txt"]


def test_a_copy_holds_nothing_that_opens_something_and_no_keys_of_rows(cast: Cast) -> None:
    key = make_key_text(cast.owner, cast.workspace)
    make_connection(cast.owner, api_key="sk-kumquat")
    session = SignIn.objects.create(user=cast.owner, session_key="k" * 32)
    about = fetched(cast.owner, ask(cast.owner, COPY))["about-you.jsonl"].decode()
    for secret in (key, "kumquat", session.session_key, cast.owner.password, "sealed", "hash"):
        assert secret not in about
    person = next(line for line in lines(about.encode()) if line["table"] == "workspaces.User")
    assert "id" not in person and person["public_id"] == cast.owner.public_id


def test_a_copy_holds_nothing_of_others_and_nothing_of_where_they_are_no_more(cast: Cast) -> None:
    make_memory("Secretly mine", cast.editor, cast.workspace, scope="user")
    make_chat(cast.editor, cast.workspace, title="Kumquat plans", is_private=True)
    make_memory("The kettle is green", cast.owner, cast.workspace)
    asked = ask(cast.viewer, COPY)
    before = b"".join(fetched(cast.viewer, asked).values())
    assert b"kettle" in before
    assert not any(word in before for word in (b"Secretly", b"Kumquat"))
    Membership.objects.filter(user=cast.viewer, workspace=cast.workspace).delete()
    assert b"kettle" not in b"".join(fetched(cast.viewer, asked).values())


def test_a_copy_can_be_fetched_for_a_week(cast: Cast) -> None:
    asked = ask(cast.owner, COPY)
    assert (asked.state, asked.expires_at - asked.asked_at) == ("done", timedelta(days=7))  # type: ignore[operator]
    DataRequest.objects.filter(pk=asked.pk).update(expires_at=timezone.now())
    assert signed_in(cast.owner).get(f"/profile/requests/{asked.public_id}/copy/").status_code == 404
    deletion = ask(cast.owner)
    assert signed_in(cast.owner).get(f"/profile/requests/{deletion.public_id}/copy/").status_code == 404


def test_who_sits_down_at_an_open_browser_is_asked_for_the_password(cast: Cast) -> None:
    asked = ask(cast.owner, COPY)
    client, api = Client(), Api(cast.owner)
    client.force_login(cast.owner)
    for page in ("/profile/requests/", f"/profile/requests/{asked.public_id}/copy/"):
        answer = client.get(page)
        assert (answer.status_code, answer["Location"].split("?")[0]) == (302, "/accounts/reauthenticate/")
    for answer in (
        api.get(f"account/requests/{asked.public_id}/copy"),
        api.post("account/requests", {"kind": "copy"}),
    ):
        assert (answer.status_code, error_of(answer)["code"]) == (403, "reauthenticate")


def test_every_table_that_names_a_person_is_in_the_copy_or_left_out_for_a_reason() -> None:
    """A new one fails here until it is decided which."""
    named = {"workspaces.User"}
    for relation in User._meta.get_fields(include_hidden=True):
        if relation.auto_created and not relation.concrete and relation.one_to_many | relation.one_to_one:  # type: ignore[operator,union-attr]
            named.add(relation.related_model._meta.label)  # type: ignore[union-attr]
    assert named == ABOUT.keys() | LEFT_OUT.keys()
    assert not ABOUT.keys() & LEFT_OUT.keys()
    assert {"password", "key_hash", "session_key", "sealed_key", "sealed_secret", "token_hash"} <= HIDDEN


# Its end


def test_the_page_shows_how_it_stands_and_takes_it_back(cast: Cast) -> None:
    client = signed_in(cast.owner)
    assert client.post("/profile/requests/", {"kind": "everything"}).status_code == 422
    assert client.post("/profile/requests/", {"kind": "deletion"}).status_code == 302
    asked = DataRequest.objects.get()
    assert "Withdraw" in client.get("/profile/requests/").content.decode()
    client.post(f"/profile/requests/{asked.public_id}/withdraw/")
    asked.refresh_from_db()
    assert (asked.state, asked.ended_by) == ("withdrawn", cast.owner)
    assert client.post(f"/profile/requests/{asked.public_id}/withdraw/").status_code == 409
    assert Api(cast.owner).get("account/requests").json()["items"][0]["state"] == "withdrawn"


def test_staff_refuse_with_a_reason_that_the_person_reads(
    cast: Cast, mailoutbox: Any, django_capture_on_commit_callbacks: Any
) -> None:
    User.objects.filter(pk=cast.editor.pk).update(email="eddie@example.org")
    asked = ask(cast.editor)
    keeper = staff("view_datarequest", "change_datarequest")
    page = f"{LIST}{asked.pk}/change/"
    assert keeper.post(page, {"reason": " "}).status_code == 200
    with django_capture_on_commit_callbacks(execute=True):
        assert keeper.post(page, {"reason": "You owe us a kiln."}).status_code == 302
    asked.refresh_from_db()
    assert (asked.state, asked.reason) == ("refused", "You owe us a kiln.")
    assert "You owe us a kiln." in signed_in(cast.editor).get("/profile/requests/").content.decode()
    [mail] = mailoutbox
    assert mail.to == ["eddie@example.org"] and "You owe us a kiln." in mail.body
    assert keeper.post(page, {"reason": "Again"}).status_code == 403, "it has ended"
    assert User.objects.filter(pk=cast.editor.pk).exists()
    with pytest.raises(Invalid):
        requests.refuse(ask(cast.editor), reason=" ", by=cast.owner, now=timezone.now())


def test_a_superuser_carries_it_out_and_who_depends_on_it_goes_on(
    cast: Cast, mailoutbox: Any, django_capture_on_commit_callbacks: Any
) -> None:
    """The cast's owner is the only one of a workspace that others use, and alone in another."""
    User.objects.filter(pk=cast.owner.pk).update(email="olive@example.org")
    alone = make_workspace(owner=cast.owner, name="Alone")
    make_memory("Mine", cast.owner, cast.workspace, scope="user")
    asked, copy = ask(cast.owner), ask(cast.owner, COPY)
    root = staff(is_superuser=True)
    type_password_again(root)
    with django_capture_on_commit_callbacks(execute=True):
        assert "1 account deleted." in said(run_action(root, LIST, "delete_accounts", asked))
    assert not User.objects.filter(pk=cast.owner.pk).exists()
    assert not Workspace.objects.filter(pk=alone.pk).exists()
    assert not Memory.objects.filter(content="Mine").exists()
    assert Membership.objects.get(user=cast.editor, workspace=cast.workspace).role == "owner"
    asked.refresh_from_db()
    copy.refresh_from_db()
    assert (asked.state, asked.user, asked.person) == ("done", None, cast.owner.public_id)
    assert asked.ended_by is not None and asked.ended_by.is_superuser
    assert (copy.state, copy.expires_at) == ("done", None)
    assert "olive@example.org" in [mail.to[0] for mail in mailoutbox]
    assert cast.owner.public_id in root.get(LIST).content.decode()


def test_nothing_happens_where_nobody_could_go_on(cast: Cast) -> None:
    for member in (cast.editor, cast.viewer):
        close_account(member, by=None, now=timezone.now())
    asked, root = ask(cast.owner), make_user("root", is_superuser=True)
    with pytest.raises(Conflict, match="Nobody could take over"):
        carry_out(asked, by=root, now=timezone.now())
    asked.refresh_from_db()
    assert asked.state == "open" and User.objects.filter(pk=cast.owner.pk).exists()


def test_an_account_that_was_closed_meanwhile_is_deleted_all_the_same(cast: Cast) -> None:
    asked, root = ask(cast.editor), make_user("root", is_superuser=True)
    close_account(cast.editor, by=None, now=timezone.now())
    carry_out(asked, by=root, now=timezone.now())
    assert not User.objects.filter(pk=cast.editor.pk).exists()
    with pytest.raises(Conflict):
        carry_out(asked, by=root, now=timezone.now())


def test_no_superuser_deletes_their_own_account_in_the_admin(cast: Cast) -> None:
    root = make_user("root", is_superuser=True)
    asked = ask(root)
    with pytest.raises(Conflict):
        carry_out(asked, by=root, now=timezone.now())
    asked.refresh_from_db()
    assert asked.state == "open"


def test_who_deletes_their_account_themselves_is_no_longer_waited_for(cast: Cast) -> None:
    asked = ask(cast.editor)
    refused = requests.refuse(asked, reason="Kumquat", by=cast.owner, now=timezone.now())
    again = ask(cast.editor)
    delete_account(cast.editor)
    for each in (refused, again):
        each.refresh_from_db()
    assert (again.state, refused.state, refused.reason) == ("done", "refused", "")
    assert not DataRequest.objects.open().exists()


# Staff, and what tells of it


def test_staff_without_the_permission_see_none_and_with_it_delete_nobody(cast: Cast) -> None:
    asked = ask(cast.editor)
    others = staff("view_user", "change_user", username="other")
    assert others.get(LIST).status_code == 403
    assert "requests for data" not in others.get("/admin/").content.decode()
    looker = staff("view_datarequest", username="looker")
    assert looker.get(LIST).status_code == 200
    assert looker.post(f"{LIST}{asked.pk}/change/", {"reason": "No"}).status_code == 403
    changer = staff("view_datarequest", "change_datarequest", username="changer")
    type_password_again(changer)
    assert run_action(changer, LIST, "delete_accounts", asked).status_code == 403
    assert User.objects.filter(pk=cast.editor.pk).exists()
    asked.refresh_from_db()
    assert asked.state == "open"


def test_the_overdue_stand_first_and_are_counted(cast: Cast) -> None:
    ended = requests.withdraw(ask(cast.owner, days_ago=90), by=cast.owner, now=timezone.now())
    due, overdue = ask(cast.viewer, days_ago=3), ask(cast.editor, days_ago=40)
    root = staff(is_superuser=True)
    shown = [row.pk for row in root.get(LIST).context["cl"].result_list]
    assert shown == [overdue.pk, due.pk, ended.pk]
    assert [row.pk for row in root.get(f"{LIST}?state=overdue").context["cl"].result_list] == [overdue.pk]
    figures = [figure for group in root.get("/admin/").context["groups"] for figure in group.figures]
    [figure] = [each for each in figures if each.label == "requests for data"]
    assert (figure.value, figure.note, figure.needs_attention) == ("2", "1 overdue.", True)
    [gauge] = [each for each in DatabaseState().collect() if each.name == "memoryhub_data_requests_overdue"]
    assert gauge.samples[0].value == 1


@pytest.mark.django_db(transaction=True)
def test_the_doctor_counts_the_overdue() -> None:
    cast, out = make_cast(), StringIO()
    ask(cast.editor, days_ago=40)
    ask(cast.viewer)
    with pytest.raises(CommandError):  # there is no worker here either
        call_command("doctor", stdout=out)
    assert "requests: 1 " in out.getvalue()
