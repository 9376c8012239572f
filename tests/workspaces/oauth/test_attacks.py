"""Attacks on the OAuth sign-in, for every security property of it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone

from memoryhub.errors import Invalid
from tests.conftest import Cast
from tests.factories import make_workspace
from tests.rollback import rolled_back
from tests.workspaces.oauth.programs import (
    BACK,
    HERE,
    VERIFIER,
    address,
    ask,
    browser_of,
    challenge_of,
    client_id,
    consent,
    exchange,
    opens,
    refresh,
    register,
    said_in,
    signed_in,
)
from workspaces.accounts import program_authorizations
from workspaces.actions.workspaces import change_role, delete_workspace, remove_member
from workspaces.models import ApiKey, Membership, OAuthClient, OAuthCode, OAuthToken, User

pytestmark = pytest.mark.django_db


def error_of(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]


# Registering


UNSAFE = [
    "javascript:alert(1)",
    "JAVASCRIPT:alert(1)//",
    "data:text/html,x",
    "http://evil.example/cb",
    "http://127.0.0.1.evil.example/cb",
    "https://user:pw@evil.example/",
    "https://good.example/#x",
    "file:///etc/passwd",
    "https://",
    "//evil.example",
    "https://good.example/" + "a" * 500,
    "https://a.example;sandbox/cb",
    "https://*/cb",
    "https://a,b/cb",
    "microsoft-edge:https://evil.example/cb",
    "googlechromes://evil.example/cb",
    "x-safari-https://evil.example/cb",
    "web+x://localhost/cb",
    "ms-word:ofe|u|https://evil.example/x",
    "search-ms:query=x",
    "opener:go?to=https%3A//evil.example",
]


def test_nobody_registers_an_address_that_is_not_safe() -> None:
    for wrong in UNSAFE:
        with pytest.raises(Invalid, match="redirect_uris"):
            program_authorizations.register("Claude", [BACK, wrong], now=timezone.now())
    assert error_of(register(redirect_uris=[BACK, UNSAFE[0]])) == (400, "invalid_redirect_uri")
    assert not OAuthClient.objects.exists()


MALFORMED = [
    "",
    "[]",
    "null",
    '{"redirect_uris": 7}',
    '{"redirect_uris": []}',
    "{" * 9999,
    '{"redirect_uris": ["' + "x" * 70_000,
]


def test_a_malformed_registration_is_refused_in_oauths_form() -> None:
    for body in rolled_back(MALFORMED):
        answer = Client().post("/oauth/register", body, content_type="application/json")
        assert answer.status_code in {400, 413} and answer.json()["error"], body[:12]
        assert not OAuthClient.objects.exists()


def test_what_a_program_says_of_itself_is_cleaned_and_gives_it_nothing() -> None:
    said = register(
        client_name="Claude\u202e\x07 <script>" + "x" * 900,
        token_endpoint_auth_method="client_secret_basic",
        scope="admin openid",
        grant_types=["authorization_code", "password"],
    ).json()
    program = OAuthClient.objects.get()
    assert program.name.startswith("Claude <script>") and len(program.name) == 60
    assert (said["scope"], said["token_endpoint_auth_method"]) == ("read write", "none")
    assert "client_secret" not in said and "password" not in said["grant_types"]


def test_a_flood_of_registrations_is_slowed_capped_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [register().status_code for _ in range(11)] == [201] * 10 + [429]
    assert error_of(register()) == (429, "temporarily_unavailable")
    monkeypatch.setattr(program_authorizations, "MOST_UNUSED", 20)
    now = timezone.now()
    for _ in range(30):
        newest = program_authorizations.register("Flood", [BACK], now=now)
    assert OAuthClient.objects.count() <= 20 and OAuthClient.objects.filter(pk=newest.pk).exists()
    assert (
        program_authorizations.sweep_clients(now=now + timedelta(days=1, minutes=1))
        and not OAuthClient.objects.exists()
    )


# The page


WRONG = {
    "other redirect": {"redirect_uri": "https://evil.example/cb"},
    "path": {"redirect_uri": BACK + "/../x"},
    "prefix": {"redirect_uri": BACK + "x"},
    "host": {"redirect_uri": "http://127.0.0.1.evil.example:33418/callback"},
    "user": {"redirect_uri": "http://127.0.0.1:33418@evil.example/callback"},
    "no such program": {"client_id": "app_" + "a" * 24},
    "nul": {"client_id": "app_\0"},
    "plain": {"code_challenge_method": "plain"},
    "no challenge": {"code_challenge": None},
    "empty challenge": {"code_challenge": ""},
    "short challenge": {"code_challenge": "a"},
    "token": {"response_type": "token"},
    "other server": {"resource": "https://evil.example/mcp"},
    "look-alike": {"resource": HERE + ".evil.example/mcp"},
    "no door": {"resource": HERE + "/admin"},
    "long state": {"state": "x" * 5000},
}


def test_a_wrong_request_sends_nobody_anywhere(cast: Cast) -> None:
    """Registered addresses are no exception: anyone may register one (open redirects)."""
    program, browser = client_id(), browser_of(cast.editor)
    for how, changes in WRONG.items():
        url = address(**{"client_id": program} | changes)  # type: ignore[arg-type]
        for answer in (browser.get(url), browser.post(url, {"answer": "yes"})):
            assert answer.status_code in {400, 404} and "Location" not in answer, how
    refused = browser.post(url, {"answer": "no"})
    assert refused.status_code in {400, 404} and "Location" not in refused
    assert browser.get(address(program) + "&client_id=x").status_code == 400, "twice"
    assert not OAuthCode.objects.exists()


def test_the_page_cannot_be_framed_forged_or_answered_without_a_fresh_password(cast: Cast) -> None:
    url, sent = (
        address(client_id()),
        {"workspace": cast.workspace.public_id, "scope": "write", "answer": "yes"},
    )
    assert "/accounts/login/" in Client().get(url)["Location"]
    stale = Client()
    stale.force_login(cast.editor)
    assert "/accounts/reauthenticate/" in stale.get(url)["Location"]
    assert "/accounts/reauthenticate/" in stale.post(url, sent)["Location"]
    page = browser_of(cast.editor).get(url)
    assert page["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in page["Content-Security-Policy"]
    assert "form-action 'self' http://127.0.0.1:33418;" in page["Content-Security-Policy"]
    forged = Client(enforce_csrf_checks=True)
    forged.cookies = browser_of(cast.editor).cookies
    assert forged.post(url, sent).status_code == 403
    assert not OAuthCode.objects.exists()


def test_the_name_of_a_program_shows_and_ends_nothing_that_stands_around_it() -> None:
    for name in ("\u3164", "\u2800\u034f", "\u115f \u200b"):
        assert register(client_name=name).json()["client_name"] == "A program", ascii(name)
    name = register(client_name="Claude” in? It was checked by your administrator. “x").json()["client_name"]
    assert not set('“”"') & set(name)


def test_the_whole_address_of_a_programs_scheme_is_shown(cast: Cast) -> None:
    program = client_id(redirect_uris=["cursor://localhost/cb"])
    page = browser_of(cast.editor).get(address(program, redirect_uri="cursor://localhost/cb"))
    assert b"cursor://localhost/cb" in page.content and b"a program on this computer" not in page.content


def test_who_does_not_say_yes_gives_nothing(cast: Cast) -> None:
    browser, url = browser_of(cast.editor), address(client_id())
    for answer in ("no", ""):
        said = said_in(consent(browser, url, cast.workspace, answer=answer))
        assert (said["error"], said["state"], said["iss"]) == ("access_denied", "s1", HERE), answer
    assert not OAuthCode.objects.exists()


def test_nobody_gives_more_than_they_have_or_than_was_asked_for(cast: Cast) -> None:
    program = client_id()
    for person, workspace, changes in (
        (cast.viewer, cast.workspace, {}),  # a viewer, write
        (cast.stranger, cast.workspace, {"scope": "read"}),
        (cast.editor, make_workspace(owner=cast.stranger), {}),
        (cast.editor, cast.workspace, {"scope": "admin"}),
    ):
        answer = consent(browser_of(person), address(program), workspace, **changes)
        assert answer.status_code == 422, (person, changes)
    only_read = address(program, scope="read openid")
    assert consent(browser_of(cast.editor), only_read, cast.workspace).status_code == 422, (
        "write was not asked for"
    )
    assert not OAuthCode.objects.exists()


# The code


def test_a_code_opens_only_for_who_began_once_and_in_time(cast: Cast) -> None:
    program, other = client_id(), client_id()
    browser = browser_of(cast.editor)
    url = address(program)
    code = said_in(consent(browser, url, cast.workspace))["code"]
    for changes, error in (
        ({"code_verifier": "x" * 43}, "invalid_grant"),
        ({"code_verifier": challenge_of(VERIFIER)}, "invalid_grant"),  # plain
        ({"code_verifier": ""}, "invalid_grant"),
        ({"code_verifier": None}, "invalid_request"),
        ({"redirect_uri": "https://evil.example/cb"}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"code": code + "x"}, "invalid_grant"),
        ({"resource": f"{HERE}/v1"}, "invalid_target"),
        ({"resource": "https://evil.example/mcp"}, "invalid_target"),
        ({"grant_type": "password"}, "invalid_request"),
    ):
        assert error_of(exchange(**{"client_id": program, "code": code} | changes)) == (400, error), changes
    assert error_of(exchange(other, code)) == (400, "invalid_grant")
    assert error_of(exchange("app_x", code)) == (401, "invalid_client")
    tokens = exchange(program, code).json()
    assert opens(tokens["access_token"]) == 406
    assert error_of(exchange(program, code, code_verifier="x" * 43)) == (400, "invalid_grant")
    assert opens(tokens["access_token"]) == 406, "who has no verifier ends nothing either"
    assert error_of(exchange(program, code)) == (400, "invalid_grant")
    assert opens(tokens["access_token"]) == 401, "used twice: what it gave is revoked"
    assert error_of(refresh(program, tokens["refresh_token"])) == (400, "invalid_grant")
    late = said_in(consent(browser, url, cast.workspace))["code"]
    OAuthCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert error_of(exchange(program, late)) == (400, "invalid_grant")


def test_what_changes_between_consent_and_code_counts(cast: Cast) -> None:
    program = client_id()
    code = said_in(consent(browser_of(cast.editor), address(program), cast.workspace))["code"]
    changes: list[Callable[[], object]] = [
        lambda: remove_member(cast.workspace, user=cast.editor, by=cast.owner),
        lambda: User.objects.filter(pk=cast.editor.pk).update(is_active=False),
        lambda: change_role(cast.workspace, user=cast.editor, role="viewer", by=cast.owner),
    ]
    for change in rolled_back(changes):
        change()
        assert error_of(exchange(program, code)) == (400, "invalid_grant")
        assert not ApiKey.objects.exists()


# Tokens


def test_a_token_opens_the_doors_it_is_for_and_no_others(cast: Cast) -> None:
    token = signed_in(cast.editor, cast.workspace)["access_token"]
    doors = {
        "/mcp": 406,
        "/v1/models": 200,
        f"/api/v1/memory-nodes?workspace_id={cast.workspace.public_id}": 200,
    }
    assert {path: opens(token, path) for path in doors} == {
        path: 406 if path == "/mcp" else 401 for path in doors
    }
    assert opens(signed_in(cast.editor, cast.workspace, resource="/v1")["access_token"], "/mcp") == 401
    all_doors = signed_in(cast.editor, cast.workspace, resource="")["access_token"]
    assert {path: opens(all_doors, path) for path in doors} == doors
    assert opens(all_doors, "/chat/api/account") == 403, "what takes no key takes no token"
    assert (
        opens(token[:-1] + ("y" if token[-1] == "x" else "x"))
        == opens("mha_" + "a" * 43)
        == opens("mha_\0")
        == 401
    )


def test_each_of_the_person_loses_what_they_lose(cast: Cast) -> None:
    got = signed_in(cast.editor, cast.workspace)
    Membership.objects.filter(user=cast.editor, workspace=cast.workspace).delete()
    assert error_of(refresh(got["client_id"], got["refresh_token"])) == (400, "invalid_grant")
    gone = make_workspace(owner=cast.owner, name="Gone")
    there = signed_in(cast.owner, gone)
    delete_workspace(gone, by=cast.owner)
    assert opens(there["access_token"]) == 401
    assert error_of(refresh(there["client_id"], there["refresh_token"])) == (400, "invalid_grant")
    closed = signed_in(cast.owner, cast.workspace)
    User.objects.filter(pk=cast.owner.pk).update(is_active=False)
    assert opens(closed["access_token"]) == 401
    assert error_of(refresh(closed["client_id"], closed["refresh_token"])) == (400, "invalid_grant")


def test_refresh_tokens_are_for_one_use_and_a_second_use_ends_all(cast: Cast) -> None:
    first = signed_in(cast.editor, cast.workspace)
    program = first["client_id"]
    second = refresh(program, first["refresh_token"]).json()
    assert opens(second["access_token"]) == opens(first["access_token"]) == 406
    assert error_of(refresh(client_id(), second["refresh_token"])) == (400, "invalid_grant"), (
        "another program"
    )
    assert opens(second["access_token"]) == 406
    assert error_of(refresh(program, first["refresh_token"], scope="all")) == (400, "invalid_scope")
    assert opens(second["access_token"]) == 401, "also where something else is wrong"
    assert error_of(refresh(program, first["refresh_token"])) == (400, "invalid_grant")
    assert error_of(refresh(program, second["refresh_token"])) == (400, "invalid_grant")
    assert ApiKey.objects.get().revoked_at is not None


def test_scope_never_grows_by_refreshing(cast: Cast) -> None:
    got = signed_in(cast.editor, cast.workspace, scope="read")
    assert got["scope"] == "read"
    program = got["client_id"]
    assert error_of(refresh(program, got["refresh_token"], scope="read write")) == (400, "invalid_scope")
    assert refresh(program, got["refresh_token"]).json()["scope"] == "read"
    wide = signed_in(cast.editor, cast.workspace)
    narrow = refresh(wide["client_id"], wide["refresh_token"], scope="read").json()
    key = program_authorizations.verify_access(narrow["access_token"], path="/mcp", now=timezone.now())
    assert (narrow["scope"], key.scope) == ("read", "read")
    again = refresh(wide["client_id"], narrow["refresh_token"]).json()
    assert again["scope"] == "read write", "what was agreed to, as RFC 6749 has it"
    assert error_of(refresh(wide["client_id"], again["refresh_token"], resource=f"{HERE}/v1")) == (
        400,
        "invalid_target",
    )


def test_tokens_end_in_time_and_by_being_revoked(cast: Cast) -> None:
    got = signed_in(cast.editor, cast.workspace)
    now = timezone.now()
    OAuthToken.objects.filter(kind="access").update(expires_at=now)
    assert opens(got["access_token"]) == 401
    new = refresh(got["client_id"], got["refresh_token"]).json()
    other = client_id()
    assert ask("/oauth/revoke", client_id=other, token=new["access_token"]).status_code == 200
    assert opens(new["access_token"]) == 406, "another program revokes nothing"
    assert ask("/oauth/revoke", client_id=got["client_id"], token="mhr_x").status_code == 200
    gone = ask("/oauth/revoke", client_id=got["client_id"], token=new["refresh_token"])
    assert gone.status_code == 200, gone.content
    assert opens(new["access_token"]) == 401
    assert program_authorizations.sweep_tokens(now=now + timedelta(days=31)) == 5
    assert not OAuthToken.objects.exists()


def test_the_person_revokes_it_where_their_keys_are(cast: Cast) -> None:
    got = signed_in(cast.editor, cast.workspace)
    key = ApiKey.objects.get()
    browser = browser_of(cast.editor)
    page = browser.get("/profile/").content.decode()
    assert "Claude" in page and "connected by signing in" in page and "never used" in page
    assert [opens(got["access_token"]) for _ in range(2)] == [406, 406]
    used = " ".join(browser.get("/profile/").content.decode().split())
    assert "last used" in used and "· 2 calls" in used and "never used" not in used
    assert browser_of(cast.owner).post(f"/profile/keys/{key.public_id}/revoke/").status_code == 404
    listed = browser.get("/chat/api/keys").json()["items"]
    assert [(each["id"], each["signed_in"]) for each in listed] == [(key.public_id, True)]
    browser.post(f"/profile/keys/{key.public_id}/revoke/")
    assert opens(got["access_token"]) == 401
    assert error_of(refresh(got["client_id"], got["refresh_token"])) == (400, "invalid_grant")


def test_signing_in_again_takes_the_place_of_the_last_time(cast: Cast) -> None:
    program, browser = client_id(), browser_of(cast.editor)
    first, second = (
        exchange(program, said_in(consent(browser, address(program), cast.workspace))["code"]).json()
        for _ in "12"
    )
    assert (opens(first["access_token"]), opens(second["access_token"])) == (401, 406)
    assert ApiKey.objects.filter(revoked_at=None).get().name == "Claude"
    signed_in(cast.editor, cast.workspace)
    assert set(ApiKey.objects.filter(revoked_at=None).values_list("name", flat=True)) == {
        "Claude",
        "Claude 2",
    }


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_wins_and_then_both_lose(cast: Cast) -> None:
    """Several codes exchanged at once leave one authorization; a code or token used twice leaves none."""
    program, browser = client_id(), browser_of(cast.editor)

    def new_code() -> str:
        return said_in(consent(browser, address(program), cast.workspace))["code"]

    def at_once(*requests: Callable[[], Any]) -> list[Any]:
        def once(request: Callable[[], Any]) -> Any:
            try:
                return request()
            finally:
                connection.close()

        with ThreadPoolExecutor(len(requests)) as pool:
            return list(pool.map(once, requests))

    codes = [new_code() for _ in range(3)]
    answers = at_once(*(partial(exchange, program, code) for code in codes))
    assert {each.status_code for each in answers} == {200}
    assert ApiKey.objects.filter(revoked_at=None).get().name == "Claude"
    for what in ("code", "refresh token"):
        cache.clear()  # rate limits
        request = partial(exchange, program, new_code())
        if what == "refresh token":
            request = partial(refresh, program, request().json()["refresh_token"])
        answers = at_once(*[request] * 3)
        assert sorted(each.status_code for each in answers) == [200, 400, 400], what
        won = next(each.json() for each in answers if each.status_code == 200)
        assert opens(won["access_token"]) == 401, what
        assert not ApiKey.objects.filter(revoked_at=None).exists(), what


def test_hostile_bodies_are_refused_in_oauths_form() -> None:
    bodies = ("", "a" * 70_000, "grant_type=&client_id=%00", "client_id[]=1", "%ff%fe=%ff")
    for path in rolled_back(["/oauth/token", "/oauth/revoke", "/oauth/register"]):
        for body in bodies:
            answer = Client().post(path, body, content_type="application/x-www-form-urlencoded")
            assert answer.status_code in {400, 401, 413} and answer.json()["error"], (path, body[:30])
        assert Client().get(path).status_code == 405


def test_what_is_no_form_is_refused_in_oauths_form() -> None:
    for kind, body in (
        ("multipart/form-data; boundary=x", "--x\r\n\r\ngarbage\r\n--x--"),
        ("multipart/form-data", "x"),
        ("application/json", "{}"),
        ("application/x-www-form-urlencoded; charset=utf-16", "a=b"),
        ("application/x-www-form-urlencoded", "&".join(f"a{number}=1" for number in range(1_500))),
    ):
        for path in ("/oauth/token", "/oauth/revoke"):
            answer = Client().post(path, body, content_type=kind)
            assert error_of(answer) == (400, "invalid_request"), (path, kind)
