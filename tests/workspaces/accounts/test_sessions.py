"""A user's sessions: listed, ended, and ended by what invalidates them."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.signals import user_login_failed
from django.contrib.sessions.models import Session
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.conftest import Cast
from tests.factories import PASSWORD, make_user
from tests.migrated import ROOT, environment
from tests.raw_search import places_with
from workspaces.access import default_workspace
from workspaces.accounts import sessions
from workspaces.accounts import sign_in as accounts
from workspaces.models import AuditEvent, SignIn, User

pytestmark = pytest.mark.django_db
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.0 Mobile/15E148 Safari/604.1"
)


def sign_in(user: User, user_agent: str = FIREFOX, **headers: str) -> Client:
    client = Client(headers={"user-agent": user_agent, **headers})
    form = {"login": user.username, "password": PASSWORD}
    assert client.post("/accounts/login/", form).status_code == 302
    return client


def is_signed_in(client: Client) -> bool:
    return client.get("/profile/").status_code == 200


def test_writing_into_a_session_does_not_make_it_longer(cast: Cast) -> None:
    client = sign_in(cast.owner)
    assert is_signed_in(client)
    session = client.session
    session["written"] = "to"
    session.save()
    Session.objects.update(expire_date=timezone.now() + timedelta(days=14))
    SignIn.objects.update(created_at=timezone.now() - timedelta(days=13))
    sessions.sweep(now=timezone.now())
    assert is_signed_in(client)
    SignIn.objects.update(created_at=timezone.now() - timedelta(days=15))
    sessions.sweep(now=timezone.now())
    assert not is_signed_in(client)


def test_the_profile_lists_my_sessions_and_says_which_is_this(cast: Cast) -> None:
    here, there = sign_in(cast.owner), sign_in(cast.owner, IPHONE)
    sign_in(cast.viewer)
    html = here.get("/profile/").content.decode()
    assert html.count("Firefox on Linux") == 1
    assert html.count("This one") == 1
    assert "Safari on iPhone" in html and "127.0.0.0/24" in html
    assert html.count("/profile/sessions/ses_") == 1  # only the other one can be ended
    assert here.session.session_key not in html and there.session.session_key not in html


def test_a_session_ends_after_the_days_that_are_set(cast: Cast, settings: Any, tmp_path: Path) -> None:
    said = "import django; from django.conf import settings; print(settings.SESSION_COOKIE_AGE)"
    env = environment(tmp_path, MEMORYHUB_SESSION_DAYS="3", DJANGO_SETTINGS_MODULE="memoryhub.settings")
    age = int(subprocess.check_output([sys.executable, "-c", said], env=env, cwd=ROOT, text=True))
    assert age == 3 * 86_400
    settings.SESSION_COOKIE_AGE = age
    client = sign_in(cast.owner)
    assert client.cookies["sessionid"]["max-age"] == age
    session = Session.objects.get(session_key=client.session.session_key)
    assert timedelta(0) <= timezone.now() + timedelta(days=3) - session.expire_date < timedelta(minutes=5)
    Session.objects.update(expire_date=timezone.now() + timedelta(minutes=1))
    assert is_signed_in(client)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))  # with the old cookies
    assert not is_signed_in(client)


def test_a_session_is_ended_by_its_person_alone_and_the_others_stay(cast: Cast) -> None:
    here, phone = sign_in(cast.owner), sign_in(cast.owner, IPHONE)
    this, other = (SignIn.objects.get(session_key=each.session.session_key) for each in (here, phone))
    end = f"/profile/sessions/{other.public_id}/end/"
    for user in (cast.editor, cast.stranger):
        assert sign_in(user).post(end).status_code == 404
    assert is_signed_in(phone)
    assert "That session is signed out" in here.post(end, follow=True).content.decode()
    assert is_signed_in(here) and not is_signed_in(phone)
    assert here.post(end).status_code == 404
    event = AuditEvent.objects.get(verb="session_ended")
    assert (event.by_name, event.target) == ("olive", other.public_id)
    assert here.post(f"/profile/sessions/{this.public_id}/end/")["Location"] == "/accounts/login/"
    assert not is_signed_in(here), "ending this session signs out"


def test_all_others_end_at_once(cast: Cast) -> None:
    here = sign_in(cast.owner)
    others = [sign_in(cast.owner, IPHONE) for _ in range(3)]
    stranger = sign_in(cast.viewer)
    done = here.post("/profile/sessions/end-others/", follow=True)
    assert "3 other sessions were signed out" in done.content.decode()
    assert is_signed_in(here) and is_signed_in(stranger)
    assert not any(is_signed_in(other) for other in others)


def test_a_new_password_ends_every_other_session(cast: Cast) -> None:
    here, phone = sign_in(cast.owner), sign_in(cast.owner, IPHONE)
    new = "another horse battery"
    form = {"oldpassword": PASSWORD, "password1": new, "password2": new}
    assert here.post("/accounts/password/change/", form).status_code == 302
    assert is_signed_in(here) and not is_signed_in(phone)
    assert not Session.objects.filter(session_key=phone.session.session_key).exists()
    html = here.get("/profile/").content.decode()
    assert html.count("This one") == 1 and "iPhone" not in html


def test_a_password_given_by_an_administrator_leaves_no_session_in_the_list(cast: Cast) -> None:
    sign_in(cast.owner)
    cast.owner.set_password("given by somebody else")
    cast.owner.save()
    assert sessions.live_sign_ins(cast.owner) == []


def test_signing_out_takes_the_session_from_the_list(cast: Cast) -> None:
    here, phone = sign_in(cast.owner), sign_in(cast.owner, IPHONE)
    phone.post("/accounts/logout/")
    assert "iPhone" not in here.get("/profile/").content.decode()
    assert SignIn.objects.filter(user=cast.owner).count() == 1


def test_last_seen_is_written_once_a_minute(cast: Cast) -> None:
    here = sign_in(cast.owner)
    key = here.session.session_key
    long_ago = timezone.now() - timedelta(days=3)
    SignIn.objects.filter(session_key=key).update(last_seen_at=long_ago)
    here.get("/workspaces/")
    assert SignIn.objects.get(session_key=key).last_seen_at == long_ago
    caches["process"].delete(f"seen:{key}")
    here.get("/workspaces/")
    assert SignIn.objects.get(session_key=key).last_seen_at > long_ago


def test_a_session_from_before_this_list_joins_it_when_used(cast: Cast) -> None:
    here = sign_in(cast.owner)
    SignIn.objects.all().delete()
    caches["process"].delete(f"seen:{here.session.session_key}")
    assert "This one" in here.get("/profile/").content.decode()


def test_the_sweep_takes_what_is_over(cast: Cast) -> None:
    old, new = sign_in(cast.owner), sign_in(cast.owner)
    now = timezone.now()
    Session.objects.filter(session_key=old.session.session_key).update(expire_date=now - timedelta(days=1))
    assert sessions.sweep(now=now) == 1
    assert [each.session_key for each in SignIn.objects.all()] == [new.session.session_key]


def test_what_a_browser_says_of_itself_is_kept_in_our_words() -> None:
    for user_agent, device in (
        (FIREFOX, "Firefox on Linux"),
        (IPHONE, "Safari on iPhone"),
        (
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36",
            "Chrome on Android",
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_0) AppleWebKit/605 Version/18 Safari/605",
            "Safari on Mac",
        ),
        ("curl/8.9.1", "curl"),
        ("<script>alert(1)</script>", ""),
        ("x" * 100_000, ""),
        ("", ""),
    ):
        assert sessions.device_of(user_agent) == device, user_agent[:80]


# The audit log


def told(**where: Any) -> list[tuple[str, str, str]]:
    events = AuditEvent.objects.filter(**where).order_by("id")
    return [(event.verb, event.by_name, event.target) for event in events]


def test_signing_in_failing_and_out_are_noted(cast: Cast) -> None:
    Client().post("/accounts/login/", {"login": "olive", "password": "wrong horse"})
    Client().post("/accounts/login/", {"login": "kumquat horse", "password": "wrong"})
    client = sign_in(cast.owner)
    client.post("/accounts/logout/")
    assert told() == [
        ("sign_in_failed", "", cast.owner.public_id),
        ("sign_in_failed", "", ""),
        ("signed_in", "olive", ""),
        ("signed_out", "olive", ""),
    ]
    assert "kumquat" not in str(list(AuditEvent.objects.values()))
    event = AuditEvent.objects.get(verb="signed_in")
    assert event.network == "127.0.0.0/24" and event.request_id
    assert event.details == {"two_factor": False}


def test_a_wrong_password_of_who_is_signed_in_is_noted_and_never_the_password(cast: Cast) -> None:
    client = sign_in(cast.owner)
    wrong = "kumquat horse battery"
    assert client.post("/accounts/reauthenticate/", {"password": wrong}).status_code == 200
    change = {
        "oldpassword": wrong,
        "password1": "another horse battery",
        "password2": "another horse battery",
    }
    assert client.post("/accounts/password/change/", change).status_code == 200
    failed = AuditEvent.objects.filter(verb="reauthentication_failed").order_by("id")
    assert [(event.by_name, event.details) for event in failed] == [
        ("olive", {"method": "password"}),
        ("olive", {"method": "password_change"}),
    ]
    assert not AuditEvent.objects.filter(verb="sign_in_failed").exists()
    assert places_with("kumquat") == []


def test_guessing_a_password_again_and_again_ends_and_the_log_with_it(cast: Cast) -> None:
    client = sign_in(cast.owner)
    answers = [client.post("/accounts/reauthenticate/", {"password": "wrong"}).status_code for _ in range(15)]
    assert answers[-1] == 429
    assert AuditEvent.objects.filter(verb="reauthentication_failed").count() <= 10


def test_a_flood_of_unknown_names_from_many_addresses_does_not_fill_the_log() -> None:
    for number in range(accounts.MOST_UNKNOWN + 40):
        user_login_failed.send(sender=None, credentials={"username": f"nobody{number}"}, request=None)
    events = AuditEvent.objects.filter(verb="sign_in_failed")
    assert accounts.MOST_UNKNOWN <= events.count() <= 2 * accounts.MOST_UNKNOWN, "two minutes at most"
    assert events.filter(details__more="not_noted").exists()


def test_signing_up_and_a_new_password_are_noted() -> None:
    client = Client()
    data = {"username": "nina", "email": "", "password1": PASSWORD, "password2": PASSWORD}
    client.post("/accounts/signup/", data)
    new = "another horse battery"
    client.post("/accounts/password/change/", {"oldpassword": PASSWORD, "password1": new, "password2": new})
    verbs = [verb for verb, _, _ in told(by_name="nina")]
    assert verbs == ["signed_up", "signed_in", "password_changed"]


def test_a_name_with_a_nul_or_of_great_length_is_a_failed_sign_in() -> None:
    make_user("nina", email="nina@example.org")
    for name in ("\x00", "nina\x00", "n" * 5000, "nina@example.org"):
        assert Client().post("/accounts/login/", {"login": name, "password": "wrong"}).status_code == 200


def test_who_only_holds_a_session_cannot_add_an_address_that_resets_the_password(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.owner)
    added = {"action_add": "", "email": "thief@example.com"}
    answer = client.post("/accounts/email/", added)
    assert answer["Location"].startswith("/accounts/reauthenticate/")
    assert not EmailAddress.objects.exists()
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    client.post("/accounts/email/", added)
    assert EmailAddress.objects.get().email == "thief@example.com"


@pytest.mark.django_db(transaction=True)
def test_a_session_that_cannot_be_noted_still_reads(cast: Cast) -> None:
    client = sign_in(cast.owner)
    default_workspace(cast.owner)  # created on the first visit
    caches["process"].clear()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
        # The page of a workspace also stores it in the session as the last one.
        paths = ("/profile/", f"/workspaces/{cast.workspace.public_id}/")
        assert [client.get(path).status_code for path in paths] == [200, 200]
        assert client.post("/workspaces/", {"name": "Launch"}).status_code == 503
    finally:
        connection.close()


def test_signing_in_with_the_password_confirms_who_one_is(cast: Cast, client: Client) -> None:
    """For fifteen minutes; opening a session in another way does not."""
    cast.owner.set_password("Long-pass-4711")
    cast.owner.save()
    client.force_login(cast.owner)
    assert client.get("/profile/delete/").status_code == 302
    client.logout()
    client.post("/accounts/login/", {"login": cast.owner.username, "password": "Long-pass-4711"})
    assert client.get("/profile/delete/").status_code == 200
    session = client.session
    session["account_authentication_methods"][-1]["at"] -= 15 * 60 + 1
    session.save()
    assert client.get("/profile/delete/").status_code == 302
