"""Two-factor sign-in: set up, requested, and the only accepted proof once it is on."""

import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.db import connection
from django.test import Client

from memoryhub.encryption import unseal
from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import PASSWORD, make_user
from tests.raw_search import places_with
from workspaces.accounts.two_factor import reseal
from workspaces.models import ApiKey, AuditEvent, User

pytestmark = pytest.mark.django_db
BASE = "/accounts/two-factor"


def code_of(secret: str) -> str:
    """Return the code that the authenticator app shows now."""
    counters = list(yield_hotp_counters_from_time())  # the half minutes before and after as well
    return format_hotp_value(hotp_value(secret, counters[len(counters) // 2]))


def forget_used_codes() -> None:
    """Forget used codes, as after half a minute, for a test that needs another one."""
    cache.clear()


def signed_in(user: User) -> Client:
    client = Client()
    client.post("/accounts/login/", {"login": user.username, "password": PASSWORD})
    return client


def type_password(client: Client) -> None:
    assert client.post("/accounts/reauthenticate/", {"password": PASSWORD}).status_code == 302


def turn_on(user: User, *, later: bool = True) -> tuple[Client, str]:
    """Return a client that has turned it on, just now or a while ago, and the secret."""
    client = signed_in(user)
    type_password(client)
    page = client.get(f"{BASE}/totp/activate/").content.decode()
    found = re.search(r'<code class="new-key__text"[^>]*>([A-Z2-7]+)</code>', page)
    assert found is not None
    done = client.post(f"{BASE}/totp/activate/", {"code": code_of(found[1])})
    assert done.status_code == 302, done.content.decode()
    if later:
        forget_used_codes()
    return client, found[1]


@pytest.fixture
def on(cast: Cast, django_capture_on_commit_callbacks: Any) -> tuple[Client, str]:
    with django_capture_on_commit_callbacks(execute=True):
        return turn_on(cast.owner)


def recovery_codes(user: User) -> list[str]:
    codes = Authenticator.objects.get(user=user, type=Authenticator.Type.RECOVERY_CODES).wrap()
    return list(codes.get_unused_codes())


def test_setting_it_up_asks_who_you_are_and_a_wrong_code_turns_nothing_on(cast: Cast) -> None:
    client, activate = signed_in(cast.owner), f"{BASE}/totp/activate/"
    assert client.get(activate)["Location"].startswith("/accounts/reauthenticate/?next=")
    assert "Off." in client.get(f"{BASE}/").content.decode()
    type_password(client)
    page = client.get(activate)
    assert 'src="data:image/svg+xml;base64,' in page.content.decode(), "the picture loads nothing"
    assert "img-src 'self' data:" in page["Content-Security-Policy"]
    assert "no-store" in page["Cache-Control"]
    assert "Incorrect code" in client.post(activate, {"code": "000000"}).content.decode()
    assert not Authenticator.objects.exists()


def test_with_an_unverified_address_it_can_be_turned_on(cast: Cast) -> None:
    """Addresses are never verified here, so otherwise no one with an address could."""
    data = {"username": "nina", "email": "nina@example.org", "password1": PASSWORD, "password2": PASSWORD}
    Client().post("/accounts/signup/", data)
    turn_on(User.objects.get(username="nina"))
    assert Authenticator.objects.filter(user__username="nina").count() == 2


def test_signing_in_takes_the_code_after_the_password(cast: Cast, on: tuple[Client, str]) -> None:
    client = Client()
    answer = client.post("/accounts/login/", {"login": "olive", "password": PASSWORD})
    assert answer["Location"] == f"{BASE}/authenticate/"
    assert client.get("/profile/").status_code == 302  # the password alone gives no access
    assert "Incorrect code" in client.post(f"{BASE}/authenticate/", {"code": "000000"}).content.decode()
    assert client.get("/profile/").status_code == 302
    assert client.post(f"{BASE}/authenticate/", {"code": code_of(on[1])}).status_code == 302
    assert client.get("/profile/").status_code == 200
    event = AuditEvent.objects.filter(verb="signed_in").first()
    assert event is not None and event.details == {"two_factor": True}
    failed = AuditEvent.objects.get(verb="sign_in_failed")
    assert (failed.target, failed.details) == (cast.owner.public_id, {"step": "code"})


def test_a_wrong_code_of_who_is_signed_in_is_noted(cast: Cast, on: tuple[Client, str]) -> None:
    assert "Incorrect code" in on[0].post(f"{BASE}/reauthenticate/", {"code": "000000"}).content.decode()
    failed = AuditEvent.objects.get(verb="reauthentication_failed")
    assert (failed.by_name, failed.details) == ("olive", {"method": "code"})


def test_the_code_that_activates_counts_nowhere_else(cast: Cast) -> None:
    client, secret = turn_on(cast.owner, later=False)
    code = code_of(secret)
    assert "Incorrect code" in client.post(f"{BASE}/reauthenticate/", {"code": code}).content.decode()
    other = Client()
    other.post("/accounts/login/", {"login": "olive", "password": PASSWORD})
    assert "Incorrect code" in other.post(f"{BASE}/authenticate/", {"code": code}).content.decode()
    assert other.get("/profile/").status_code == 302


def test_a_used_code_stays_used_as_long_as_it_is_valid(cast: Cast, on: tuple[Client, str]) -> None:
    """The code of the next half minute is valid for over a minute, as a phone's clock may be fast."""
    newest = format_hotp_value(hotp_value(on[1], max(yield_hotp_counters_from_time())))
    for expected in (302, 200):
        client = Client()
        client.post("/accounts/login/", {"login": "olive", "password": PASSWORD})
        assert client.post(f"{BASE}/authenticate/", {"code": newest}).status_code == expected
        with connection.cursor() as cursor:  # as if half a minute had passed
            cursor.execute("UPDATE workspaces_cache SET expires = expires - interval '31 seconds'")


def test_codes_cannot_be_tried_without_end(cast: Cast, on: tuple[Client, str]) -> None:
    client = Client()
    client.post("/accounts/login/", {"login": "olive", "password": PASSWORD})
    pages = [
        client.post(f"{BASE}/authenticate/", {"code": f"{number:06}"}).content.decode() for number in range(7)
    ]
    assert "Too many failed login attempts" in pages[-1]
    assert "Too many" in client.post(f"{BASE}/authenticate/", {"code": code_of(on[1])}).content.decode()


def test_a_recovery_code_lets_in_once(cast: Cast, on: tuple[Client, str]) -> None:
    code = recovery_codes(cast.owner)[0]
    for expected in (302, 200):
        client = Client()
        client.post("/accounts/login/", {"login": "olive", "password": PASSWORD})
        assert client.post(f"{BASE}/authenticate/", {"code": code}).status_code == expected
    assert len(recovery_codes(cast.owner)) == 9


def test_once_it_is_on_a_password_shows_nothing_any_more(cast: Cast, on: tuple[Client, str]) -> None:
    """A stolen session with the password can neither turn it off nor create a key."""
    client = Client()
    client.post("/accounts/login/", {"login": "olive", "password": PASSWORD})
    client.post(f"{BASE}/authenticate/", {"code": code_of(on[1])})
    forget_used_codes()
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    for path in (f"{BASE}/totp/deactivate/", f"{BASE}/recovery-codes/", f"{BASE}/recovery-codes/generate/"):
        assert "/accounts/" in client.get(path)["Location"], path
    client.post("/profile/keys/", {"name": "Script"})
    assert not ApiKey.objects.exists()
    page = client.get(f"{BASE}/totp/deactivate/", follow=True)
    assert page.redirect_chain[-1][0].startswith(f"{BASE}/reauthenticate/")
    assert "Enter a code" in page.content.decode()
    answer = client.post(f"{BASE}/reauthenticate/?next={BASE}/totp/deactivate/", {"code": code_of(on[1])})
    assert answer["Location"] == f"{BASE}/totp/deactivate/"
    assert client.get(f"{BASE}/totp/deactivate/").status_code == 200


def test_a_password_given_before_it_was_on_shows_nothing_any_more(cast: Cast) -> None:
    early = signed_in(cast.owner)
    assert early.get("/profile/delete/").status_code == 200
    turn_on(cast.owner)
    assert early.get("/profile/delete/")["Location"].startswith(f"{BASE}/reauthenticate/")


def test_a_request_that_waited_for_the_code_goes_on_with_what_was_typed(
    cast: Cast, on: tuple[Client, str]
) -> None:
    from workspaces.access import default_workspace

    client = Client()
    client.post("/accounts/login/", {"login": "olive", "password": PASSWORD})
    client.post(f"{BASE}/authenticate/", {"code": code_of(on[1])})
    forget_used_codes()
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 15 * 60 + 1
    session.save()
    form = {
        "name": "Script",
        "workspace": default_workspace(cast.owner).public_id,
        "scope": "read",
        "expires_at": "30",
    }
    asked = client.post("/profile/keys/", form, follow=True)
    where = asked.redirect_chain[-1][0]
    assert where.startswith(f"{BASE}/reauthenticate/")
    made = client.post(where, {"code": code_of(on[1]), "next": "/profile/keys/"})
    assert "has been created. Copy it now" in made.content.decode()
    assert ApiKey.objects.get().name == "Script"


def test_a_new_password_asks_for_a_code_too(cast: Cast, on: tuple[Client, str]) -> None:
    client = Client()
    client.post("/accounts/login/", {"login": "olive", "password": PASSWORD})
    client.post(f"{BASE}/authenticate/", {"code": code_of(on[1])})
    assert "/accounts/" in client.get("/accounts/password/change/")["Location"]
    new = {"oldpassword": PASSWORD, "password1": "another horse", "password2": "another horse"}
    client.post("/accounts/password/change/", new)
    cast.owner.refresh_from_db()
    assert cast.owner.check_password(PASSWORD)
    without = signed_in(cast.editor)
    assert without.get("/accounts/password/change/").status_code == 200


def test_turning_it_off_takes_the_codes_too(cast: Cast, on: tuple[Client, str]) -> None:
    client, _ = on
    assert "On." in client.get(f"{BASE}/").content.decode()
    assert client.post(f"{BASE}/totp/deactivate/").status_code in {302, 200}
    # The earlier re-authentication was by password, which no longer counts
    if Authenticator.objects.exists():
        client.post(f"{BASE}/reauthenticate/", {"code": code_of(on[1])})
        client.post(f"{BASE}/totp/deactivate/")
    assert not Authenticator.objects.exists()
    verbs = set(AuditEvent.objects.filter(by_name="olive").values_list("verb", flat=True))
    assert {"two_factor_on", "two_factor_off", "recovery_codes_made"} <= verbs


def test_the_codes_are_shown_saved_and_made_anew(cast: Cast, on: tuple[Client, str]) -> None:
    client, secret = on
    client.post(f"{BASE}/reauthenticate/", {"code": code_of(secret)})
    before = recovery_codes(cast.owner)
    html = client.get(f"{BASE}/recovery-codes/").content.decode()
    assert all(code in html for code in before)
    saved = client.get(f"{BASE}/recovery-codes/download/")
    assert saved.content.decode().split() == before
    assert "no-store" in saved["Cache-Control"]
    assert client.post(f"{BASE}/recovery-codes/generate/").status_code == 302
    assert not set(before) & set(recovery_codes(cast.owner))


def staff(name: str, **fields: Any) -> Client:
    client = Client()
    client.force_login(make_user(name, is_staff=True, **fields))
    return client


def turn_off(client: Client, authenticator: Authenticator) -> str:
    """Turn it off in the admin and confirm. Return the next page."""
    path = "/admin/mfa/authenticator/"
    asked = client.post(path, {"action": "turn_off", "_selected_action": [authenticator.pk]})
    found = re.search(r'name="confirmed"\s+value="([^"]+)"', asked.content.decode())
    form = {
        "action": "turn_off",
        "confirmed": found[1] if found else "",
        "_selected_action": [authenticator.pk],
    }
    return client.post(path, form, follow=True).content.decode()


def test_staff_turn_it_off_for_who_lost_the_telephone_and_never_see_a_secret(
    cast: Cast, on: tuple[Client, str]
) -> None:
    boss = staff("boss", is_superuser=True)
    authenticator = Authenticator.objects.get(type=Authenticator.Type.TOTP)
    for path in ("", f"{authenticator.pk}/change/"):
        page = boss.get(f"/admin/mfa/authenticator/{path}").content.decode()
        assert "olive" in page and on[1] not in page and authenticator.data["secret"] not in page
    assert boss.get("/admin/mfa/authenticator/add/").status_code == 403
    type_password_again(boss)
    assert "off for 1 person" in turn_off(boss, authenticator)
    assert not Authenticator.objects.exists()
    event = AuditEvent.objects.get(verb="two_factor_off")
    assert (event.by_name, event.target) == ("boss", cast.owner.public_id)
    assert Client().post("/accounts/login/", {"login": "olive", "password": PASSWORD})["Location"] == "/"


def test_a_moderator_cannot_weaken_anybody(cast: Cast, on: tuple[Client, str]) -> None:
    moderator = make_user("mod", is_staff=True)
    moderator.user_permissions.set(Permission.objects.filter(content_type__app_label="mfa"))
    client = Client()
    client.force_login(moderator)
    type_password_again(client)
    for superuser in (True, False):
        User.objects.filter(pk=cast.owner.pk).update(is_superuser=superuser)
        turn_off(client, Authenticator.objects.get(type=Authenticator.Type.TOTP))
        assert Authenticator.objects.count() == 2


# Storage of its secrets


def sealed_parts() -> dict[str, str]:
    rows = {row.type: row.data for row in Authenticator.objects.all()}
    return {"secret": rows["totp"]["secret"], "seed": rows["recovery_codes"]["seed"]}


def test_secrets_and_recovery_codes_are_nowhere_in_the_database_as_they_are(
    cast: Cast, on: tuple[Client, str]
) -> None:
    secret, parts = on[1], sealed_parts()
    assert unseal(parts["secret"]) == secret
    for text in (secret, unseal(parts["seed"]), *recovery_codes(cast.owner)):
        assert places_with(text) == []


def test_without_its_key_no_code_fits_and_nothing_breaks(
    cast: Cast, on: tuple[Client, str], settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    codes = recovery_codes(cast.owner)
    assert len(codes) == 10
    settings.ENCRYPTION_KEYS = ["a key that came later, without the old one"]
    client = signed_in(cast.owner)
    for code in (code_of(on[1]), code_of(""), codes[0]):
        assert client.post(f"{BASE}/authenticate/", {"code": code}).status_code == 200
    assert client.get("/profile/").status_code == 302
    assert "sealed with a key that is gone" in caplog.text
    assert on[1] not in caplog.text


def test_a_change_of_keys_seals_them_anew(cast: Cast, on: tuple[Client, str], settings: Any) -> None:
    new, old = "the key of next year, long enough", settings.SECRET_KEY
    settings.ENCRYPTION_KEYS = [new, old]
    assert reseal() == 2
    settings.ENCRYPTION_KEYS = [new]
    assert unseal(sealed_parts()["secret"]) == on[1]
    client = signed_in(cast.owner)
    assert client.post(f"{BASE}/authenticate/", {"code": code_of(on[1])}).status_code == 302
    settings.ENCRYPTION_KEYS = ["another key that opens none of them"]
    assert reseal() == 0, "what nobody can open is left as it is"
