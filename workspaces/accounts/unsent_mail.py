"""Email backend that sends immediately. Failed mails are stored and retried by the worker for a day."""

import json
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from smtplib import SMTPDataError, SMTPException, SMTPRecipientsRefused, SMTPSenderRefused
from typing import Any

from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.smtp import EmailBackend
from django.db import transaction
from django.utils import timezone

from memoryhub import encryption
from memoryhub.mail import SMTP
from workspaces.models import WaitingMail

logger = logging.getLogger(__name__)
TRIED_FOR = timedelta(days=1)
LONGEST_WAIT = timedelta(hours=1)
FAILURES = (SMTPException, OSError)


class RetryingBackend(EmailBackend):
    """Django's SMTP backend, but mails that cannot be sent are stored and retried later."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        sent = 0
        for message in email_messages:
            try:
                sent += super().send_messages([message]) or 0
            except FAILURES as error:
                if is_for_good(error):
                    raise
                _save(message, error, now=timezone.now())
                sent += 1
        return sent


def is_for_good(error: Exception) -> bool:
    """Return whether the server refused this mail permanently (SMTP code 5xx), so that a retry is useless."""
    if isinstance(error, SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    return isinstance(error, SMTPSenderRefused | SMTPDataError) and error.smtp_code >= 500


def retry(*, now: datetime, seconds: float) -> int:
    """Send the stored mails that are due, for at most ``seconds``. Return the number sent.

    Stops at a failure that affects all mails, such as an unreachable server.
    """
    begun, sent = timezone.now(), 0
    while timezone.now() - begun < timedelta(seconds=seconds):
        with transaction.atomic():
            due = WaitingMail.objects.filter(next_attempt_at__lte=now).order_by("next_attempt_at", "pk")
            mail = due.select_for_update(skip_locked=True).first()
            if mail is None:
                break
            try:
                _send(mail)
            except FAILURES as error:
                _put_off(mail, error, now=now)
                if not is_for_good(error):
                    WaitingMail.objects.filter(next_attempt_at__lte=now).update(
                        next_attempt_at=now + timedelta(minutes=1)
                    )
                    break
            except encryption.Unsealable:
                mail.delete()
                logger.error(
                    "A mail that waited was sealed with a key that is gone; it is not sent any more."
                )
            else:
                mail.delete()
                sent += 1
    return sent


def _save(message: EmailMessage, error: Exception, *, now: datetime) -> None:
    whole: Any = message.message()
    payload = {
        "from": message.from_email,
        "to": message.recipients(),
        "mail": whole.as_bytes(linesep="\r\n").decode("ascii", "surrogateescape"),
    }
    WaitingMail.objects.create(
        sealed=encryption.seal(json.dumps(payload)),
        created_at=now,
        next_attempt_at=now + timedelta(minutes=1),
    )
    logger.warning("A mail could not be sent (%s); it will be tried again.", type(error).__name__)


def _send(mail: WaitingMail) -> None:
    payload: dict[str, Any] = json.loads(encryption.unseal(mail.sealed))
    backend: Any = get_connection(SMTP)
    with backend:
        raw = payload["mail"].encode("ascii", "surrogateescape")
        backend.connection.sendmail(payload["from"], payload["to"], raw)


def _put_off(mail: WaitingMail, error: Exception, *, now: datetime) -> None:
    if is_for_good(error) or now - mail.created_at > TRIED_FOR:
        mail.delete()
        logger.error("A mail was given up: %s.%s", type(error).__module__, type(error).__qualname__)
        return
    mail.attempts += 1
    mail.next_attempt_at = now + min(LONGEST_WAIT, timedelta(minutes=2**mail.attempts))
    mail.save(update_fields=["attempts", "next_attempt_at"])
