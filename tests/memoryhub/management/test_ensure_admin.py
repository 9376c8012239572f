"""The first account, from the environment."""

import pytest
from django.core.management import CommandError, call_command

from workspaces.models import User

pytestmark = pytest.mark.django_db


def set_environment(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name in ("USERNAME", "PASSWORD", "EMAIL"):
        monkeypatch.delenv(f"MEMORYHUB_ADMIN_{name}", raising=False)
    for name, value in values.items():
        monkeypatch.setenv(f"MEMORYHUB_ADMIN_{name.upper()}", value)


def test_it_makes_the_administrator_once(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, username="ada", password="difference engine", email="ada@example.org")
    call_command("ensure_admin")
    call_command("ensure_admin")
    ada = User.objects.get(username="ada")
    assert (ada.is_superuser, ada.is_staff, ada.email) == (True, True, "ada@example.org")
    assert ada.check_password("difference engine")


def test_a_password_that_was_changed_since_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, username="ada", password="difference engine")
    call_command("ensure_admin")
    ada = User.objects.get(username="ada")
    ada.set_password("analytical engine")
    ada.save()
    call_command("ensure_admin")
    ada.refresh_from_db()
    assert ada.check_password("analytical engine")


def test_with_nothing_set_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)
    call_command("ensure_admin")
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"username": "ada"}, "MEMORYHUB_ADMIN_PASSWORD is not set"),
        ({"password": "difference engine"}, "MEMORYHUB_ADMIN_USERNAME is not set"),
        ({"email": "ada@example.org"}, "MEMORYHUB_ADMIN_USERNAME is not set"),
    ],
)
def test_half_an_administrator_is_refused(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], missing: str
) -> None:
    set_environment(monkeypatch, **values)
    with pytest.raises(CommandError, match=missing):
        call_command("ensure_admin")
