"""Mail to users. Without a configured server no mail is sent or logged."""

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from django.conf import settings
from django.core.mail import get_connection, send_mail
from django.db import transaction

logger = logging.getLogger(__name__)
NONE = "django.core.mail.backends.dummy.EmailBackend"
SMTP = "django.core.mail.backends.smtp.EmailBackend"
LONGEST_NAME = 60
# Patterns that mail programs turn into links.
OPENS = re.compile(r"://|(?<=\w)(?:[.\u3002\uff0e\uff61](?=[^\W\d])|@(?=\w))")


def is_set() -> bool:
    """Return whether a mail server is configured (``MEMORYHUB_SMTP_URL``)."""
    return bool(settings.EMAIL_BACKEND != NONE)


def send(subject: str, text: str, to: Iterable[str]) -> None:
    """Send a mail to each address after the transaction commits. Delivery errors are logged."""
    for address in dict.fromkeys(to):
        transaction.on_commit(partial(_send, subject, text, address))


def _send(subject: str, text: str, address: str) -> None:
    with failures_logged():
        send_mail(subject, text, None, [address])


def as_name(typed: str) -> str:
    """Return a user's name for a mail: one short line that no mail program turns into a link."""
    line = OPENS.sub(r"\g<0> ", " ".join(typed.split()))
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1].rstrip()}…"


def try_out(address: str) -> str:
    """Send a test mail without retries. Return the server's error, or an empty string if the mail was accepted."""
    try:
        connection = get_connection(None if settings.EMAIL_BACKEND.startswith("django.") else SMTP)
        send_mail("MemoryHub", "Mail from this MemoryHub arrives.", None, [address], connection=connection)
    except Exception as error:  # a server may cause any error
        return f"{type(error).__name__}: {error}"[:300]
    return ""


@contextmanager
def failures_logged() -> Iterator[None]:
    """Log errors of the block instead of raising them."""
    try:
        yield
    except Exception as error:  # a server may cause any error
        # The error's message is not logged, because servers repeat the address in it.
        logger.error("A mail was not sent: %s.%s", type(error).__module__, type(error).__qualname__)
