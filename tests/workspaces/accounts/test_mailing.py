"""Mail is stored encrypted while no server accepts it, and sent later: against a fake SMTP server."""

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from smtplib import SMTPDataError, SMTPRecipientsRefused, SMTPServerDisconnected
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from memoryhub import mail
from tests.admin_pages import run_action, said, staff
from tests.factories import make_user
from workspaces import tasks
from workspaces.accounts import unsent_mail
from workspaces.models import WaitingMail

pytestmark = pytest.mark.django_db
LINK = "https://hub.example.org/accounts/password/reset/key/secret"


class Smtp:
    """A minimal SMTP server. ``refuses``: the code with which it answers recipients."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        self.port = self.listener.getsockname()[1]
        self.taken: list[str] = []
        self.refuses = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        try:
            while True:
                client, _ = self.listener.accept()
                client.settimeout(20)
                with client, client.makefile("rwb", buffering=0) as stream:
                    self._talk(stream)
        except OSError:
            return  # it was closed

    def _talk(self, stream: Any) -> None:
        stream.write(b"220 here\r\n")
        while line := stream.readline().decode().upper():
            if line.startswith("DATA"):
                stream.write(b"354 go on\r\n")
                lines = list(iter(stream.readline, b".\r\n"))
                self.taken.append(b"".join(lines).decode())
            code = self.refuses if line.startswith("RCPT") and self.refuses else 250
            stream.write(f"{221 if line.startswith('QUIT') else code} said\r\n".encode())
            if line.startswith("QUIT"):
                return


@pytest.fixture
def server(settings: Any) -> Iterator[Smtp]:
    made = Smtp()
    settings.EMAIL_BACKEND = "workspaces.accounts.unsent_mail.RetryingBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", made.port
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    yield made
    made.listener.close()


def post(to: str = "vera@example.org") -> None:
    EmailMessage("Schlüssel", f"Öffne {LINK}", None, [to]).send()


def test_what_a_server_takes_is_gone_and_what_it_does_not_waits_sealed(
    server: Smtp, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    post()
    assert (len(server.taken), WaitingMail.objects.count()) == (1, 0)
    settings.EMAIL_PORT = 1  # nothing listens there
    post()
    post("second@example.org")
    [waiting, _] = WaitingMail.objects.order_by("pk")
    assert "could not be sent (ConnectionRefusedError); it will be tried again" in caplog.text
    assert LINK not in waiting.sealed
    assert "vera" not in waiting.sealed
    now = timezone.now() + timedelta(minutes=2)
    assert unsent_mail.retry(now=now, seconds=20) == 0
    waiting.refresh_from_db()
    assert (waiting.attempts, waiting.next_attempt_at) == (2, now + timedelta(minutes=4))
    assert unsent_mail.retry(now=now, seconds=20) == 0, "the others wait, too"
    settings.EMAIL_PORT = server.port
    assert unsent_mail.retry(now=now + timedelta(minutes=5), seconds=20) == 2
    assert (len(server.taken), WaitingMail.objects.count()) == (3, 0)
    assert server.taken[1].split("\r\n\r\n")[1] == server.taken[0].split("\r\n\r\n")[1]
    assert tasks.retry_mail() == "0 mails sent"


def test_it_is_given_up_after_a_day_or_where_it_is_refused_for_good(server: Smtp, settings: Any) -> None:
    server.refuses = 550
    with pytest.raises(SMTPRecipientsRefused):
        post()
    server.refuses = 451
    post()
    assert WaitingMail.objects.count() == 1
    later = timezone.now() + timedelta(hours=1)
    assert unsent_mail.retry(now=later, seconds=20) == 0
    assert WaitingMail.objects.count() == 1
    assert unsent_mail.retry(now=later + timedelta(days=1), seconds=20) == 0
    assert WaitingMail.objects.count() == 0
    assert not unsent_mail.is_for_good(SMTPServerDisconnected("away"))
    assert unsent_mail.is_for_good(SMTPDataError(554, b"spam"))


def test_what_waits_is_sealed_anew_and_sent_once_the_old_key_is_gone(server: Smtp, settings: Any) -> None:
    gone, old, new = "g" * 40, "o" * 40, "n" * 40
    settings.EMAIL_PORT = 1  # nothing listens there
    for key in (gone, old):
        settings.ENCRYPTION_KEYS = [key]
        post(f"{key[0]}@example.org")
    settings.ENCRYPTION_KEYS, out = [new, old], StringIO()
    for _ in range(2):
        call_command("reseal", stdout=out)
    assert out.getvalue().count("1 mails that wait are under the first key") == 2
    assert out.getvalue().count("1 mails are sealed with a key that is not there") == 2
    settings.ENCRYPTION_KEYS, settings.EMAIL_PORT = [new], server.port
    assert unsent_mail.retry(now=timezone.now() + timedelta(minutes=2), seconds=20) == 1
    assert len(server.taken) == 1 and not WaitingMail.objects.exists()


def test_a_test_mail_says_what_the_server_said(server: Smtp, settings: Any) -> None:
    boss = staff(username="root", is_superuser=True)
    vera, nobody = make_user("vera", email="vera@example.org"), make_user("norbert")

    def tried(person: Any) -> str:
        return said(run_action(boss, "/admin/workspaces/user/", "test_mail", person))[0]

    assert tried(vera) == "The server has taken a mail to vera@example.org."
    assert tried(nobody) == "None of them gave an address."
    server.refuses = 550
    assert "SMTPRecipientsRefused" in tried(vera)
    assert WaitingMail.objects.count() == 0
    settings.EMAIL_BACKEND = mail.NONE
    assert tried(vera) == "There is no server for mail: set MEMORYHUB_SMTP_URL."


def test_only_who_has_an_account_is_sent_a_link(client: Client, mailoutbox: list[EmailMessage]) -> None:
    make_user("nina", email="nina@example.org")
    for address in ("stranger@elsewhere.example", "nina@example.org"):
        assert client.post("/accounts/password/reset/", {"email": address}).status_code == 302
    (sent,) = mailoutbox
    assert (sent.to, sent.subject) == (["nina@example.org"], "Password Reset Email")
    assert sent.body.startswith("Hello,\n\n") and sent.body.rstrip().endswith("\n\nMemoryHub · testserver")
