"""A user's sessions: list them by browser, and end them."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.core.cache import caches
from django.db import DatabaseError, transaction
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _

from memoryhub.errors import NotFound
from memoryhub.monitoring import request_origin
from workspaces.audit import Verb, record
from workspaces.models import SignIn, User

SEEN_EVERY = 60  # seconds between two writes of "last seen"
# The order matters: a browser's User-Agent also contains names of browsers further down.
BROWSERS = (
    ("Edge", r"\bEdg(?:e|A|iOS)?/"),
    ("Opera", r"\bOPR/"),
    ("Samsung Internet", r"\bSamsungBrowser/"),
    ("Firefox", r"\b(?:Firefox|FxiOS)/"),
    ("Chrome", r"\b(?:Chrome|Chromium|CriOS|HeadlessChrome)/"),
    ("Safari", r"\bSafari/"),
    ("curl", r"^curl/"),
)
SYSTEMS = (
    ("iPhone", r"\biPhone\b"),
    ("iPad", r"\biPad\b"),
    ("Android", r"\bAndroid\b"),
    ("Windows", r"\bWindows\b"),
    ("Mac", r"\bMac OS X\b|\bMacintosh\b"),
    ("ChromeOS", r"\bCrOS\b"),
    ("Linux", r"\bLinux\b"),
)


class LastSeenMiddleware:
    """Middleware that stores when a session was last used, at most once a minute.

    It writes before the view runs, so that a streaming response needs no database connection afterwards.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        key = request.session.session_key
        if key and f"seen:{key}" not in caches["process"] and isinstance(request.user, User):
            with suppress(DatabaseError):  # a read-only database must not prevent reading
                record_use(request, request.user, now=timezone.now())
        return self.get_response(request)


def record_use(request: HttpRequest, user: User, *, now: datetime) -> None:
    """Store that this session was used now, with its browser and network."""
    key = request.session.session_key
    if not key:
        return
    caches["process"].set(f"seen:{key}", 1, SEEN_EVERY)
    network = request_origin.network_of(request_origin.client_address(request))
    device = device_of(request.headers.get("User-Agent", ""))
    seen = {"user": user, "device": device, "network": network, "last_seen_at": now}
    if not SignIn.objects.filter(session_key=key).update(**seen):
        SignIn.objects.get_or_create(session_key=key, defaults={**seen, "created_at": now})


def live_sign_ins(user: User) -> list[SignIn]:
    """Return the user's open sessions. Two queries."""
    sign_ins = list(SignIn.objects.filter(user=user))
    keys = [sign_in.session_key for sign_in in sign_ins]
    sessions = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    live = {session.session_key for session in sessions if _opens(session, user)}
    return [sign_in for sign_in in sign_ins if sign_in.session_key in live]


def end_session(session_id: str, *, by: User) -> SignIn:
    """End one of the user's own sessions immediately. Return its row, which is deleted.

    Raises NotFound for another user's session.
    """
    sign_in = SignIn.objects.filter(user=by, public_id=session_id).first()
    if sign_in is None:
        raise NotFound(_("This session does not exist, or it is not yours."))
    _end([sign_in], by=by)
    return sign_in


def end_other_sessions(user: User, *, keep: str | None, by: User | None) -> int:
    """End all sessions of a user, except the one with the key ``keep``. Return the number ended."""
    return _end(list(SignIn.objects.filter(user=user).exclude(session_key=keep or "")), by=by)


def sweep(*, now: datetime) -> int:
    """Delete expired sessions, and ``SignIn`` rows whose session no longer exists. Return the number of these rows.

    A session is also deleted once it is older than SESSION_COOKIE_AGE. Its own expiry may be later, because every write
    extends it, and because the setting may have been lowered since.
    """
    longest = timedelta(seconds=settings.SESSION_COOKIE_AGE)
    old = SignIn.objects.filter(created_at__lt=now - longest).values("session_key")
    Session.objects.filter(session_key__in=old).delete()
    Session.objects.filter(expire_date__lt=now).delete()
    live = Session.objects.values("session_key")
    return SignIn.objects.exclude(session_key__in=live).delete()[0]


def device_of(user_agent: str) -> str:
    """Return a name such as "Firefox on Linux" from a User-Agent header, or an empty string if none is recognized."""
    browser = next((name for name, shape in BROWSERS if re.search(shape, user_agent[:500])), "")
    system = next((name for name, shape in SYSTEMS if re.search(shape, user_agent[:500])), "")
    return f"{browser} on {system}" if browser and system else browser or system


def _end(sign_ins: list[SignIn], *, by: User | None) -> int:
    """Delete these sign-ins with their sessions. Return how many sessions were still open."""
    with transaction.atomic():
        open_ones = Session.objects.filter(session_key__in=[sign_in.session_key for sign_in in sign_ins])
        keys = set(open_ones.values_list("session_key", flat=True))
        open_ones.delete()
        SignIn.objects.filter(pk__in=[sign_in.pk for sign_in in sign_ins]).delete()
        for sign_in in sign_ins:
            if sign_in.session_key in keys:
                record(Verb.SESSION_ENDED, by=by, target=sign_in.public_id)
    return len(keys)


def _opens(session: Session, user: User) -> bool:
    """Return whether the session is still valid for this user. A password change invalidates older sessions."""
    data = session.get_decoded()
    return data.get(SESSION_KEY) == str(user.pk) and constant_time_compare(
        data.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()
    )
