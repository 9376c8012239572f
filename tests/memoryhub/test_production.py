"""A public installation: Django's deployment checks, headers, cookies, hosts."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.migrated import ROOT, environment

PRODUCTION = {
    "MEMORYHUB_HTTPS": "on",
    "MEMORYHUB_ALLOWED_HOSTS": "hub.example.org",
    "MEMORYHUB_CSRF_TRUSTED_ORIGINS": "https://hub.example.org",
}
ASK = """
import io, json
import django
django.setup()
from django.core.management import call_command
from django.test import Client
checked = io.StringIO()
call_command("check", deploy=True, fail_level="INFO", stdout=checked)
client = Client(headers={"host": "hub.example.org", "x-forwarded-proto": "https"})
def told(response):
    return [response.status_code, dict(response.headers), {
        name: [bool(c["secure"]), bool(c["httponly"]), c["samesite"]] for name, c in response.cookies.items()}]
print(json.dumps({
    "check": checked.getvalue(),
    "page": told(client.get("/accounts/signup/")),
    "admin": told(client.get("/admin/")),
    "plain": told(Client(headers={"host": "hub.example.org"}).get("/accounts/login/")),
    "other host": told(client.get("/accounts/login/", headers={"host": "evil.example"})),
    "probe": told(Client(headers={"host": "10.0.0.1"}).get("/healthz")),
}))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Answers of a separate process, since settings are read once, at the start.

    Only the sign-in page needs the database, which it asks whether any account exists.
    """
    from django.conf import settings

    folder = tmp_path_factory.mktemp("production")
    plain = settings.STORAGES["staticfiles"]  # a manifest would have to be collected first
    static = f"from django.conf import settings; settings.STORAGES['staticfiles'] = {plain!r}"
    command = [sys.executable, "-W", "ignore", "-c", f"{static}\n{ASK}"]
    given = environment(folder, DJANGO_SETTINGS_MODULE="memoryhub.settings", **PRODUCTION)
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_djangos_checks_for_deployment_find_nothing(answers: dict[str, Any]) -> None:
    assert "no issues (0 silenced)" in answers["check"]


def test_pages_carry_every_header(answers: dict[str, Any]) -> None:
    status, headers, _ = answers["page"]
    assert status == 200
    assert headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains; preload"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"]
    assert "no-store" in headers["Cache-Control"]
    policy = headers["Content-Security-Policy"]
    assert "unsafe" not in policy and "default-src 'none'" in policy and "script-src 'self';" in policy
    assert "Server" not in headers and "X-Powered-By" not in headers


def test_cookies_are_for_https_and_this_site_alone(answers: dict[str, Any]) -> None:
    cookies = answers["page"][2]
    assert cookies["csrftoken"] == [
        True,
        False,
        "Lax",
    ]  # pages send it back in a header, so their scripts read it
    for name, (secure, _, same_site) in cookies.items():
        assert secure and same_site in {"Lax", "Strict"}, name


def test_http_is_sent_to_https_and_another_host_nowhere(answers: dict[str, Any]) -> None:
    status, headers, _ = answers["plain"]
    assert (status, headers["Location"]) == (301, "https://hub.example.org/accounts/login/")
    assert answers["other host"][0] == 400
    assert answers["probe"][0] == 200


def test_the_admin_has_scripts_of_its_own_files_only(answers: dict[str, Any]) -> None:
    policy = dict(
        part.strip().split(" ", 1) for part in answers["admin"][1]["Content-Security-Policy"].split(";")
    )
    assert policy["script-src"] == "'self'"
    assert policy["style-src"] == "'self' 'unsafe-inline'"  # its select boxes set styles
