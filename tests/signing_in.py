"""``force_login`` in one statement instead of nineteen: most tests begin with it, many several times.

Django's own is taken where a client is signed in already, and tests about signing in use ``client.login`` or the form.
"""

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.utils import timezone
from django.utils.crypto import get_random_string

from memoryhub.ids import new_id
from workspaces.accounts.sessions import SEEN_EVERY
from workspaces.models import User

# As SessionStore and accounts.sessions write them.
ROWS = """
WITH session AS (INSERT INTO django_session (session_key, session_data, expire_date)
    VALUES (%(key)s, %(said)s, %(until)s))
INSERT INTO workspaces_signin (public_id, user_id, session_key, device, network, created_at, last_seen_at)
VALUES (%(public_id)s, %(user)s, %(key)s, '', '', %(now)s, %(now)s)
"""
djangos_own = Client.force_login


def sign_in(client: Client, user: User, backend: str | None = None) -> None:
    """Sign in as the form does, from an unnamed browser seen just now."""
    if settings.SESSION_COOKIE_NAME in client.cookies:
        djangos_own(client, user, backend)
        return
    now, key = timezone.now(), get_random_string(32)
    said = {
        SESSION_KEY: str(user.pk),
        BACKEND_SESSION_KEY: backend or settings.AUTHENTICATION_BACKENDS[0],
        HASH_SESSION_KEY: user.get_session_auth_hash(),
    }
    until = now + timedelta(seconds=settings.SESSION_COOKIE_AGE)
    row = {"key": key, "said": SessionStore().encode(said), "until": until, "user": user.pk, "now": now}
    with connection.cursor() as cursor:
        cursor.execute(ROWS, row | {"public_id": new_id("ses")})
    caches["process"].set(f"seen:{key}", 1, SEEN_EVERY)
    client.cookies[settings.SESSION_COOKIE_NAME] = key


@pytest.fixture(scope="session", autouse=True)
def _signing_in_is_quick() -> None:
    Client.force_login = sign_in  # type: ignore[assignment, method-assign]


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
