"""Creating, changing and deleting connections: permissions, storage of the key, audit log."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection as database
from django.utils import timezone
from pytest_django.fixtures import Settings

from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from memoryhub.llm.metering import Price
from tests.conftest import Cast
from tests.factories import make_chat, make_connection, make_user
from tests.rollback import rolled_back
from workspaces.actions import model_connections
from workspaces.models import AuditEvent, User
from workspaces.models.language_models import Connection

pytestmark = pytest.mark.django_db
NOW = timezone.now()
KEY = "sk-very-secret-0123456789"
VALUES: dict[str, Any] = {
    "name": "Big one",
    "base_url": "https://api.example.org/v1/",
    "model": "big-1",
    "api_key": KEY,
}


@pytest.fixture(autouse=True)
def people_may(settings: Settings) -> None:
    settings.PEOPLE_MAY_CONNECT = True


def admin() -> User:
    return make_user(is_staff=True, is_superuser=True)


def made(by: User, **values: Any) -> Connection:
    return model_connections.create_connection(by=by, now=NOW, **VALUES | values)


def test_the_key_lies_encrypted_and_can_be_read_by_who_calls_the_model(cast: Cast) -> None:
    connection = made(cast.editor)
    stored = Connection.objects.get(pk=connection.pk)
    assert stored.api_key == KEY
    assert stored.base_url == "https://api.example.org/v1"
    assert stored.owner == cast.editor and not stored.is_local
    with database.cursor() as cursor:
        cursor.execute("SELECT row_to_json(c)::text FROM workspaces_connection c")
        assert KEY not in str(cursor.fetchall())


def test_events_name_it_and_hold_neither_key_nor_address(cast: Cast) -> None:
    connection = made(cast.editor)
    model_connections.update_connection(connection, by=cast.editor, now=NOW, model="big-2", api_key="sk-new")
    model_connections.delete_connection(connection, by=cast.editor, now=NOW)
    events = list(AuditEvent.objects.order_by("id"))
    assert [event.verb for event in events] == ["connection_made", "connection_changed", "connection_deleted"]
    assert {event.target for event in events} == {connection.public_id}
    assert events[1].details["fields"] == ["api_key", "model"]
    for event in events:
        assert "sk-" not in str(event.details) and "example" not in str(event.details)


def test_people_have_none_where_the_operator_does_not_allow_it(cast: Cast, settings: Settings) -> None:
    mine = made(cast.editor)
    settings.PEOPLE_MAY_CONNECT = False
    with pytest.raises(Forbidden):
        made(cast.editor)
    with pytest.raises(Forbidden):
        model_connections.update_connection(mine, by=cast.editor, now=NOW, name="Other")
    with pytest.raises(NotFound):
        model_connections.get_connection(cast.editor, mine.public_id)
    model_connections.delete_connection(
        mine, by=cast.editor, now=NOW
    )  # users may always remove their own key
    assert not Connection.objects.exists()


def test_the_shared_ones_are_the_administrators(cast: Cast) -> None:
    shared = made(admin(), shared=True)
    assert shared.owner is None
    assert model_connections.get_connection(cast.viewer, shared.public_id) == shared
    with pytest.raises(Forbidden):
        made(cast.owner, shared=True)
    for change in (model_connections.update_connection, model_connections.delete_connection):
        with pytest.raises(Forbidden):
            change(shared, by=cast.owner, now=NOW)


def test_no_permission_lets_staff_say_where_others_words_go(cast: Cast) -> None:
    shared, helper = made(admin(), shared=True), make_user(is_staff=True)
    helper.user_permissions.set(Permission.objects.filter(content_type__model="connection"))
    helper = User.objects.get(pk=helper.pk)
    with pytest.raises(Forbidden):
        made(helper, shared=True)
    with pytest.raises(Forbidden):
        model_connections.update_connection(
            shared, by=helper, now=NOW, base_url="https://thief.example.com/v1"
        )
    with pytest.raises(Forbidden):
        model_connections.delete_connection(shared, by=helper, now=NOW)


def test_a_persons_own_is_nobody_elses_not_even_an_administrators(cast: Cast) -> None:
    mine = made(cast.editor)
    for other in (cast.owner, cast.stranger, admin()):
        for to in ("use", "change", "delete"):
            with pytest.raises(NotFound):
                model_connections.get_connection(other, mine.public_id, to=to)
        assert mine not in Connection.objects.usable_by(other)


def test_only_administrators_mark_local(cast: Cast) -> None:
    with pytest.raises(Invalid) as refused:
        made(cast.editor, is_local=True)
    assert set(refused.value.fields) == {"is_local"}
    assert made(admin(), shared=True, is_local=True, base_url="http://127.0.0.1:8080/v1").is_local


def test_a_wrong_value_is_named(cast: Cast) -> None:
    for field, value in (
        ("name", " "),
        ("name", "x" * 81),
        ("name", "a\0b"),
        ("model", ""),
        ("model", "x" * 201),
        ("base_url", ""),
        ("base_url", "api.example.org"),
        ("base_url", "ftp://example.org"),
        ("base_url", "https://"),
        ("base_url", "https://exa mple.org"),
        ("base_url", "https://[::1"),
        ("base_url", "https://user:pass@example.org/v1"),
        ("base_url", "https://example.org/v1?key=1"),
        ("base_url", "https://example.org/v1#x"),
        ("base_url", "https://example.org:99999/v1"),
        ("base_url", "https://example.org/" + "x" * 500),
        ("base_url", "file:///etc/passwd"),
        ("base_url", "http://localhost:11434/v1"),
        ("base_url", "http://127.0.0.1/v1"),
        ("base_url", "http://[::1]:8080/v1"),
        ("base_url", "http://169.254.169.254/latest"),
        ("base_url", "http://2130706433/v1"),
        ("base_url", "http://10.0.0.7/v1"),
        ("base_url", "http://nas.local/v1"),
        ("base_url", "http://metadata.google.internal/v1"),
        ("base_url", "http://LOCALHOST./v1"),
        ("api_key", "with space"),
        ("api_key", "line\nbreak"),
        ("api_key", "schlüssel"),
        ("api_key", "x" * 1001),
        ("context_tokens", 511),
        ("context_tokens", 10_000_001),
        ("price_in", Decimal(-1)),
        ("price_out", Decimal(10) ** 9),
        ("price_cached", Decimal("NaN")),
        ("price_in", Decimal("Infinity")),
    ):
        with pytest.raises(Invalid) as refused:
            made(cast.editor, **{field: value})
        assert list(refused.value.fields) == [field]
        assert not Connection.objects.exists()


def test_prices_come_together_and_can_be_taken_away(cast: Cast) -> None:
    connection = made(cast.editor, price_in=Decimal("0.15"), price_out=Decimal("0.6"))
    assert Connection.objects.get().price == Price(Decimal("0.15"), Decimal("0.6"))
    for wrong, missing in (({"price_in": None}, "price_in"), ({"price_out": None}, "price_out")):
        with pytest.raises(Invalid) as refused:
            model_connections.update_connection(connection, by=cast.editor, now=NOW, **wrong)
        assert list(refused.value.fields) == [missing]
    none = dict.fromkeys(model_connections.PRICES)
    assert model_connections.update_connection(connection, by=cast.editor, now=NOW, **none).price is None


def test_administrators_may_name_internal_addresses_and_people_where_the_operator_says_so(
    cast: Cast, settings: Settings
) -> None:
    assert made(admin(), shared=True, base_url="http://10.0.0.7:8000/v1").pk
    settings.PEOPLE_MAY_CONNECT_INTERNAL = True
    assert made(cast.editor, base_url="http://localhost:11434/v1").pk


def test_what_is_marked_local_cannot_be_an_address_on_the_internet() -> None:
    with pytest.raises(Invalid) as refused:
        made(admin(), shared=True, is_local=True, base_url="https://8.8.8.8/v1")
    assert set(refused.value.fields) == {"base_url"}


def test_a_change_leaves_the_key_unless_it_is_given(cast: Cast) -> None:
    connection = made(cast.editor)
    changed = model_connections.update_connection(
        connection, by=cast.editor, now=NOW, model="big-2", has_tools=False
    )
    assert (changed.model, changed.has_tools, changed.api_key) == ("big-2", False, KEY)
    changed = model_connections.update_connection(
        connection, by=cast.editor, now=NOW, base_url="https://api.example.org/v2"
    )
    assert changed.api_key == KEY
    changed = model_connections.update_connection(connection, by=cast.editor, now=NOW, api_key="")
    assert not changed.has_key


def test_the_stored_key_goes_to_no_other_server(cast: Cast) -> None:
    for url in rolled_back(
        ["https://evil.example/v1", "http://api.example.org/v1", "https://api.example.org:8443"]
    ):
        connection = made(cast.editor)
        with pytest.raises(Invalid) as refused:
            model_connections.update_connection(connection, by=cast.editor, now=NOW, base_url=url)
        assert set(refused.value.fields) == {"api_key"}, url
        assert Connection.objects.get(pk=connection.pk).base_url == "https://api.example.org/v1", url
        moved = model_connections.update_connection(
            connection, by=cast.editor, now=NOW, base_url=url, api_key="sk-other"
        )
        assert moved.api_key == "sk-other", url


def test_one_that_nothing_uses_goes_altogether(cast: Cast) -> None:
    used = model_connections.delete_connection(made(cast.editor), by=cast.editor, now=NOW)
    assert (used.workspaces, used.chats, used.sentence()) == (0, 0, "")
    assert not Connection.objects.exists()


def test_one_in_use_leaves_its_name_and_nothing_else(cast: Cast) -> None:
    shared = make_connection(name="House model")
    chat = make_chat(cast.editor, cast.workspace, connection=shared)
    cast.workspace.connection = shared
    cast.workspace.save()
    used = model_connections.delete_connection(shared, by=admin(), now=NOW)
    assert (used.workspaces, used.chats) == (1, 1)
    assert "1 workspace and 1 chat used it" in used.sentence()
    left = Connection.objects.get()
    assert (left.name, left.base_url, left.sealed_key) == ("House model", "", "")
    chat.refresh_from_db()
    assert chat.connection == left
    with pytest.raises(NotFound):
        model_connections.get_connection(cast.editor, shared.public_id)


def test_a_person_has_so_many_at_most(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_connections, "MOST_OWN", 2)
    made(cast.editor), made(cast.editor)
    with pytest.raises(Conflict):
        made(cast.editor)
    assert made(cast.owner).pk


def test_an_account_that_goes_takes_its_connections_with_it(cast: Cast) -> None:
    from workspaces.accounts.account_changes import delete_account

    chat = make_chat(cast.owner, cast.workspace, connection=make_connection(cast.editor))
    gone = delete_account(cast.editor)
    assert gone["connections"] == 1
    assert not Connection.objects.exists()
    chat.refresh_from_db()
    assert chat.connection is None


def test_reseal_moves_every_key_under_the_first_one(settings: Settings) -> None:
    from io import StringIO

    from django.core.management import call_command

    old, new = "o" * 40, "n" * 40
    settings.ENCRYPTION_KEYS = ["gone" * 10]
    lost = make_connection()
    settings.ENCRYPTION_KEYS = [old]
    kept, _without = make_connection(api_key=KEY), make_connection(api_key="")
    settings.ENCRYPTION_KEYS, said = [new, old], StringIO()
    call_command("reseal", stdout=said)
    settings.ENCRYPTION_KEYS = [new]
    kept.refresh_from_db()
    assert kept.api_key == KEY
    assert (
        "1 keys of models" in said.getvalue()
        and "1 keys of models are sealed with a key that is not there" in said.getvalue()
    )
    before = lost.sealed_key
    lost.refresh_from_db()
    assert lost.sealed_key == before
