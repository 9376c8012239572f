# ruff: noqa: RUF001  letters that look alike are tested
"""Usernames that look like another's are refused by every route; existing ones keep working."""

import sys
import threading
import unicodedata
from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from tests.api import type_password_again
from tests.factories import PASSWORD, make_user
from tests.rollback import rolled_back
from workspaces.models import User
from workspaces.models.users import _prototypes, looks_of

pytestmark = pytest.mark.django_db
ADD = "/admin/workspaces/user/add/"
# Each looks like "admin", "Ivan" or "modern".
LIKE_ADMIN = [
    "Admin",
    "ADMIN",
    "ａｄｍｉｎ",
    "admín",
    "adm1n",
    "admln",
    "admlN",
    "\u0251dmin",
    "adrnin",
    "𝐚𝐝𝐦𝐢𝐧",
    "ádmin",
    "ᴀᴅᴍɪɴ",
    "adminʼ",
    "ʻadmin",
    "admꞌin",
    "admin'",
    "admin.",
    "-admin_",
]
HIDING = [
    "ad\u200bmin",
    "admin\u200d",
    "\u2060admin",
    "ad\u00admin",
    "\ufeffadmin",
    "admin\u3164",
    "ad\u202emin",
    "ad\x00min",
]
MIXED = [
    "\u0430dmin",
    "adm\u0456n",
    "\u0391dmin",
    "p\u03b1ul",
    "ol\u0456ve",
    "n\u0456na",
    "x\u0564y",
    "\u13aaom",
]
ALLOWED = [
    "olive", "nina_2", "o.brien@example.org", "O'Neil@example.org", "josé", "ольга", "Ελένη", "張偉", "たなか",
    "田中さくら", "김민수", "محمد", "דוד", "अमर", "Zoë", "i-am-new", "O1O", "z+y",
]  # fmt: skip


@pytest.fixture
def boss() -> Client:
    client = Client()
    client.force_login(make_user("superv", is_staff=True, is_superuser=True))
    type_password_again(client)
    return client


def sign_up(name: str) -> Any:
    data = {"username": name, "email": "", "password1": PASSWORD, "password2": PASSWORD}
    return Client().post("/accounts/signup/", data)


def test_what_looks_alike_has_a_look_in_common() -> None:
    for name in LIKE_ADMIN:
        assert set(looks_of(name)) & set(looks_of("admin")), name
    for one, other in (
        ("Ivan", "lvan"),
        ("ΝΙΚΑ", "NIKA"),
        ("сосо", "coco"),
        ("modem", "modern"),
        ("Iris", "iris"),
        ("ЕММА", "emma"),
        ("емма", "Emma"),
        ("ТОМ", "tom"),
        ("ΤΟΜ", "Tom"),
        ("МАХ", "max"),
        ("Мах", "MAX"),
        ("ᴘᴀᴜʟ", "paul"),
        ("أحمـد", "أحمد"),
    ):
        assert set(looks_of(one)) & set(looks_of(other)), (one, other)
    for one, other in (
        ("nav", "hah"),
        ("olive", "oliver"),
        ("anna", "hanna"),
        ("person1", "person2"),
        ("张伟", "张体"),
        ("さくら", "さーくら"),
        ("olive", "before-olive"),
        ("emma", "erma"),
        ("рома", "roma"),
    ):
        assert not set(looks_of(one)) & set(looks_of(other)), (one, other)


def test_every_sign_comes_to_one_look() -> None:
    """A cycle of look-alikes would make the search for the canonical character endless.

    Only a character that has a prototype, or another form in NFKD or lower case, can be part of one.
    """
    signs = [chr(code) for code in range(sys.maxunicode) if not 0xD800 <= code < 0xE000]
    changing = [
        sign
        for sign in signs
        if sign in _prototypes() or unicodedata.normalize("NFKD", sign).casefold() != sign
    ]
    assert all(looks_of("".join(changing[at : at + 150])) for at in range(0, len(changing), 150))


def test_no_name_that_looks_like_admin_is_made(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    make_user("admin")
    mallory = make_user("mallory")
    people = set(User.objects.values_list("username", flat=True))
    for name in rolled_back([*LIKE_ADMIN, *HIDING, "\u0430dmin"]):
        for make in (User.objects.create_user, User.objects.create_superuser):
            with pytest.raises(ValidationError):
                make(name)
        with pytest.raises(ValidationError):
            User(pk=mallory.pk, username=name).save(update_fields=["username"])
        assert set(User.objects.values_list("username", flat=True)) == people, ascii(name)
    for name in ("adm1n", "\u0430dmin"):
        _try_pages_and_commands(name, mallory, boss, monkeypatch)
        assert set(User.objects.values_list("username", flat=True)) == people, ascii(name)


def _try_pages_and_commands(name: str, mallory: User, boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    password = "a quiet evening"
    boss.post(
        ADD, {"username": name, "usable_password": "true", "password1": password, "password2": password}
    )
    boss.post(f"/admin/workspaces/user/{mallory.pk}/change/", {"username": name, "memory_default": ""})
    monkeypatch.setenv("MEMORYHUB_ADMIN_USERNAME", name)
    monkeypatch.setenv("MEMORYHUB_ADMIN_PASSWORD", password)
    with pytest.raises(CommandError, match="ADMIN_USERNAME"):
        call_command("ensure_admin")
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", password)
    with pytest.raises(CommandError):
        call_command("createsuperuser", username=name, email="", interactive=False)
    with pytest.raises(CommandError, match="Nobody can be called"):
        call_command("seed_demo", username=name, stdout=StringIO())


def test_name_of_two_alphabets_is_refused_whoever_is_there() -> None:
    for name in rolled_back(MIXED):
        page = sign_up(name)
        assert page.status_code == 200 and "mixes alphabets" in page.content.decode(), ascii(name)
        with pytest.raises(ValidationError):
            make_user(name)


def test_names_of_every_language_are_made() -> None:
    for name in rolled_back(ALLOWED):
        make_user(name)
        assert User.objects.get(username=unicodedata.normalize("NFKC", name)).looks, ascii(name)
    assert sign_up("田中さくら").status_code == 302


def make_as_before(name: str) -> User:
    """Create a user as older versions did, without the check."""
    User.objects.bulk_create([User(username=name, looks=[])])
    person = User.objects.get(username=name)
    person.set_password(PASSWORD)
    person.save()
    return person


def test_people_who_look_alike_from_before_sign_in_and_are_changed_as_ever(boss: Client) -> None:
    make_user("admin")
    twin = make_as_before("\u0430dmin")
    assert (
        Client().post("/accounts/login/", {"login": twin.username, "password": PASSWORD}).status_code == 302
    )
    form = {
        "username": twin.username,
        "email": "twin@example.org",
        "first_name": "Twin",
        "memory_default": "",
    }
    assert boss.post(f"/admin/workspaces/user/{twin.pk}/change/", form).status_code == 302
    twin.refresh_from_db()
    assert (twin.first_name, twin.email) == ("Twin", "twin@example.org")
    twin.save()
    User.objects.only("email").get(pk=twin.pk).save()
    deferred = User.objects.defer("username").get(pk=twin.pk)
    assert deferred.username == twin.username
    deferred.save()


def test_a_person_may_write_their_own_name_otherwise(boss: Client) -> None:
    olive = make_user("olive")
    boss.post(f"/admin/workspaces/user/{olive.pk}/change/", {"username": "Olive", "memory_default": ""})
    olive.refresh_from_db()
    assert olive.username == "Olive"
    assert sign_up("olive").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_of_two_alike_at_once_one_is_made() -> None:
    start, refused = threading.Barrier(2), []

    def make(name: str) -> None:
        try:
            start.wait()
            make_user(name)
        except ValidationError:
            refused.append(name)
        finally:
            connection.close()

    threads = [threading.Thread(target=make, args=[name]) for name in ("olive", "0live")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1 and User.objects.count() == 1
