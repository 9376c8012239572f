"""Every staff permission alone, and all together, against every page of the admin, judged by the data."""

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.urls import reverse

from chat.models import Chat
from memories.models import Memory
from tests.copies import copied
from tests.staff import (
    READING,
    hostile_posts,
    narrowed,
    pages,
    spelled_out,
    texts,
    visit,
)
from tests.staff_world import SHOWN_OF_IT, World, guarded, make_world
from workspaces.models import Budget, User

pytestmark = pytest.mark.django_db
# All models of the project and its libraries, also those that the admin does not list.
LISTED = sorted(admin.site._registry, key=lambda model: model._meta.label)
OTHERS = [model for model in apps.get_models() if model not in LISTED]


@pytest.fixture(scope="module")
def made(module_transaction: None) -> World:
    return make_world()


@pytest.fixture
def world(made: World, db: None) -> World:
    """A world created once; each test finds it unchanged."""
    return copied(made)


def list_of(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def staff_with(world: World, permissions: Iterable[Permission]) -> User:
    world.attacker.user_permissions.set(permissions)
    return User.objects.get(pk=world.attacker.pk)  # permissions are cached on the instance


def attack(
    world: World,
    user: User,
    addresses: Iterable[str] | None = None,
    *,
    may_read: bool = False,
    narrow: bool = True,
    each_field: bool = True,
) -> int:
    """Request pages (all by default), send their forms, and return how many were shown.

    Fails if private data is shown or changed. With ``may_read`` private data may be shown and moderated only; with
    ``narrow`` shown pages are searched for private data as well, and with ``each_field`` forms are sent once for each
    changed field as well.
    """
    theirs = {"memories", "chats"} if may_read else set()
    before, shown = guarded(world), 0

    def look(what: str) -> None:
        now = guarded(world)
        changed = [name for name in now if now[name] != before[name] and name not in theirs]
        assert not changed, f"{changed} by {sorted(user.get_all_permissions())[:4]} with {what}"

    for page in pages(world) if addresses is None else addresses:
        answer = visit(user, page)
        shown += answer is not None and answer.status_code == 200
        assert may_read or SHOWN_OF_IT not in texts(answer), f"{page} tells it"
        for more in narrowed(world, page) if narrow and answer is not None else ():
            assert may_read or SHOWN_OF_IT not in texts(visit(user, more)), f"{more} tells it"
        with transaction.atomic() if answer is not None else nullcontext():
            for data in hostile_posts(world, user, page, answer, each_field=each_field):
                done = visit(user, page, data)
                assert may_read or SHOWN_OF_IT not in texts(done), f"{page} tells it when sent {data}"
                if done is not None:
                    look(f"{page}: {data}")
            if answer is not None:
                transaction.set_rollback(True)
    look("what was refused")
    return shown


def test_the_world_has_a_row_of_everything_the_admin_lists(world: World) -> None:
    """A new list of the admin fails here until its most private row is in ``make_world``."""
    assert set(world.rows) == set(admin.site._registry)
    assert all(world.rows.values())


def test_what_is_looked_for_is_there_for_who_may_see_it(world: World) -> None:
    root = User.objects.get(username="root")
    asked = set(pages(world))
    for row in (*world.rows[Memory][:2], *world.rows[Chat], world.victim):
        page = f"{list_of(type(row))}{row.pk}/change/"
        assert page in asked and SHOWN_OF_IT in texts(visit(root, page)), page


def test_what_is_guarded_is_seen_to_change(world: World) -> None:
    before = guarded(world)
    User.objects.filter(pk=world.victim.pk).update(email="thief@example.com")
    Budget.objects.all().delete()
    assert [name for name, now in guarded(world).items() if now != before[name]] == ["accounts", "budgets"]


def test_one_permission_alone(world: World) -> None:
    """Each permission against the pages of its model; other tests combine all of them.

    Filters of a list are the same for everyone who may see it.
    """
    for model in LISTED:
        permissions = list(Permission.objects.filter(content_type=ContentType.objects.get_for_model(model)))
        assert len(permissions) >= 4, model
        own = [page for page in pages(world) if page.startswith(list_of(model))]
        for permission in permissions:
            user = staff_with(world, [permission])
            attack(world, user, own, narrow=permission.codename.startswith("view_"))


def test_permissions_of_what_the_admin_does_not_show_open_nothing(world: World) -> None:
    kinds = ContentType.objects.get_for_models(*OTHERS).values()
    permissions = Permission.objects.filter(content_type__in=kinds)
    assert len(permissions) >= 4 * len(OTHERS)
    none, every = (attack(world, staff_with(world, given)) for given in ([], permissions))
    assert none == every


def test_every_permission_but_the_two_of_reading_together(world: World) -> None:
    user = staff_with(world, Permission.objects.exclude(codename__in=READING))
    # What the fields change one at a time: with one permission alone, and with all of them
    assert attack(world, user, each_field=False) > 60, "it is the pages that are tried, not refusals"
    for page in pages(world):
        for more in spelled_out(page):
            assert visit(user, more) is None, f"{more} is answered"


def test_every_permission_together_changes_no_account_and_no_right(world: World) -> None:
    user = staff_with(world, Permission.objects.all())
    assert attack(world, user, may_read=True, narrow=False) > 60
