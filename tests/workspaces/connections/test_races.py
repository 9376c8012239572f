"""Two requests at once, each on a connection of its own."""

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from memoryhub.errors import Conflict, NotFound
from tests.factories import make_connection, make_user
from tests.races import Work
from workspaces.actions import model_connections
from workspaces.models import User
from workspaces.models.language_models import Connection

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "One", "base_url": "https://api.example.org/v1", "model": "m"}


@pytest.fixture
def olive(settings: Settings) -> User:
    settings.PEOPLE_MAY_CONNECT = True
    return make_user("olive")


def test_the_last_one_that_a_person_may_have_is_made_once(
    olive: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_connections, "MOST_OWN", 1)
    now = timezone.now()
    with transaction.atomic():
        model_connections.create_connection(by=olive, now=now, **VALUES)
        other = Work(lambda: model_connections.create_connection(by=olive, now=now, **VALUES))
        assert other.waits_for_a_lock()
    assert isinstance(other.end(), Conflict)
    assert Connection.objects.count() == 1


def test_one_alone_is_the_default_for_everyone() -> None:
    admin, now = make_user("ada", is_staff=True, is_superuser=True), timezone.now()
    one, two = make_connection(), make_connection()
    with transaction.atomic():
        model_connections.update_connection(one, by=admin, now=now, is_default=True)
        other = Work(lambda: model_connections.update_connection(two, by=admin, now=now, is_default=True))
        assert other.waits_for_a_lock()
    assert not isinstance(other.end(), Exception)
    assert Connection.objects.get(is_default=True) == two


def test_a_change_of_what_is_being_deleted_brings_no_key_back(olive: User) -> None:
    now, mine = timezone.now(), make_connection(olive)
    with transaction.atomic():
        model_connections.delete_connection(mine, by=olive, now=now)
        other = Work(lambda: model_connections.update_connection(mine, by=olive, now=now, api_key="sk-again"))
        assert other.waits_for_a_lock()
    assert isinstance(other.end(), NotFound)
    assert not Connection.objects.exists()


def test_two_changes_of_one_both_hold(olive: User) -> None:
    now, mine = timezone.now(), make_connection(olive)
    with transaction.atomic():
        model_connections.update_connection(mine, by=olive, now=now, model="other")
        other = Work(lambda: model_connections.update_connection(mine, by=olive, now=now, name="Renamed"))
        assert other.waits_for_a_lock()
    other.end()
    mine.refresh_from_db()
    assert (mine.model, mine.name) == ("other", "Renamed")
