"""Links that set a password: sent by mail or not created, and never in a log."""

import logging
import re
from io import StringIO
from logging.config import dictConfig
from typing import Any

import pytest
from django.conf import settings as all_settings
from django.core import mail
from django.core.mail.backends import smtp
from django.test import Client

from memoryhub.environment import mail_from_url
from memoryhub.monitoring.logs import Formatter, JsonFormatter
from tests.factories import make_user
from workspaces.accounts.unsent_mail import RetryingBackend

pytestmark = pytest.mark.django_db
DUMMY = "django.core.mail.backends.dummy.EmailBackend"
PAGE = "/accounts/password/reset/"


@pytest.fixture(params=["plain", "json"])
def everything_logged(request: Any) -> Any:
    """Return the output of the project's logging at level DEBUG, in either format."""
    stream = StringIO()
    named = {name: {**logger, "level": "DEBUG"} for name, logger in all_settings.LOGGING["loggers"].items()}
    named |= {name: {"level": all_settings.LOGGING["loggers"][name]["level"]} for name in ("uvicorn.access",)}
    console = {**all_settings.LOGGING["handlers"]["console"], "formatter": request.param, "stream": stream}
    root = {"handlers": ["console"], "level": "DEBUG"}
    before = logging.root.handlers[:]
    dictConfig({**all_settings.LOGGING, "loggers": named, "handlers": {"console": console}, "root": root})
    yield stream.getvalue
    dictConfig(all_settings.LOGGING)
    logging.root.handlers[:] = before


def link_of(address: str) -> str:
    Client().post(PAGE, {"email": address})
    return next(word for word in str(mail.outbox[-1].body).split() if "/password/reset/key/" in word)


def test_a_links_key_reaches_no_log_whatever_is_asked_with_it(everything_logged: Any) -> None:
    make_user("nina", email="nina@example.org")
    path = link_of("nina@example.org").removeprefix("http://testserver")
    key = path.rstrip("/").rsplit("/", 1)[-1]
    assert len(key) > 20
    client = Client(raise_request_exception=False)
    client.put(path)  # 405, which Django logs with its path
    client.get(f"{path}more/")  # 404
    client.get(path, headers={"host": "elsewhere.example"})  # 400
    Client(enforce_csrf_checks=True).post(path)  # 403
    client.get(path, follow=True)
    for name in ("uvicorn.access", "uvicorn.error", "django.server", "django.request", "anything"):
        logging.getLogger(name).info('%s - "%s %s HTTP/%s" %d', "1.2.3.4:5", "GET", path, "1.1", 302)
        logging.getLogger(name).error("Internal Server Error: %s", path)
    written = everything_logged()
    assert "Internal Server Error: /accounts/password/reset/key/…" in written
    assert key not in written and key.split("-", 1)[1] not in written


def test_uvicorns_own_lines_of_requests_are_not_written() -> None:
    """However the server starts: they would contain the address."""
    assert not logging.getLogger("uvicorn.access").isEnabledFor(logging.INFO)


@pytest.mark.parametrize("form", [Formatter("{message}", style="{"), JsonFormatter()], ids=["plain", "json"])
@pytest.mark.parametrize("page", ["password/reset/key/", "confirm-email/"])
def test_a_key_is_left_out_of_a_line_and_of_what_an_error_says(form: logging.Formatter, page: str) -> None:
    path = f"/accounts/{page}3-abc123-0123456789abcdef/"
    try:
        raise ValueError(f"no such page: https://hub.example.org{path}")
    except ValueError as error:
        record = logging.LogRecord(
            "x", 40, "", 0, "GET %s", (path,), (type(error), error, error.__traceback__)
        )
    line = form.format(record)
    assert "0123456789abcdef" not in line and line.count("…") == 2
    record = logging.LogRecord("x", 40, "", 0, "GET /accounts/password/reset/done/", (), None)
    assert "reset/done/" in form.format(record)


def test_without_mail_no_link_is_made_and_the_page_says_whom_to_ask(
    settings: Any, everything_logged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMAIL_BACKEND = DUMMY
    made: list[Any] = []
    monkeypatch.setattr("allauth.account.internal.flows.password_reset.request_password_reset", made.append)
    make_user("nina", email="nina@example.org")
    for page in (Client().get(PAGE), Client().post(PAGE, {"email": "nina@example.org"})):
        assert "Ask your administrator" in page.content.decode()
        assert '<input type="email"' not in page.content.decode()
    assert not made
    assert "reset/key" not in everything_logged()


def test_nothing_that_is_sent_is_printed_by_default() -> None:
    """Django's console backend would write every link into the log of the web process."""
    source = (all_settings.BASE_DIR / "memoryhub/settings/accounts.py").read_text()
    named = re.findall(r"[\w.]*mail\w*\.\w*(?:\.\w+)*Backend", source)
    assert named == ["workspaces.accounts.unsent_mail.RetryingBackend", DUMMY]
    assert issubclass(RetryingBackend, smtp.EmailBackend), "it sends, or keeps what it could not"


def test_a_mail_server_that_fails_leaves_the_page_and_writes_no_link(
    everything_logged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, messages: list[Any]) -> None:
        raise OSError(messages[0].body)

    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", fail)
    make_user("nina", email="nina@example.org")
    done = Client().post(PAGE, {"email": "nina@example.org"}, follow=True)
    assert "Check your email" in done.content.decode()
    written = everything_logged()
    assert "A mail was not sent: builtins.OSError" in written
    assert "nina@example.org" not in written and "reset/key/" not in written


def test_the_address_of_a_mail_server_is_read() -> None:
    read = mail_from_url
    assert read("smtp://me:p%40ss@mail.example.org") == ("mail.example.org", 587, "me", "p@ss", True, False)
    assert read("smtps://mail.example.org") == ("mail.example.org", 465, "", "", False, True)
    assert read("smtp://localhost") == ("localhost", 25, "", "", False, False)
    assert read("smtp://127.0.0.1:2525/") == ("127.0.0.1", 2525, "", "", False, False)
    for wrong in (
        "mail.example.org",
        "http://mail",
        "smtp://",
        "smtp://h:port",
        "smtp://h/path",
        "smtp://h?tls=no",
    ):
        with pytest.raises(Exception, match="MEMORYHUB_SMTP_URL must look like"):
            read(wrong)
