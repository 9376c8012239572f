"""Django's database sessions, loaded with a prebuilt query."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from memoryhub.database.queries import Ready

_SESSION = Ready(
    lambda key, now: Session.objects.filter(session_key=key, expire_date__gt=now), key=str, now=datetime
)


class SessionStore(db.SessionStore):
    """Django's database sessions, loaded with a prebuilt query because it is the first query of every request."""

    def _get_session_from_db(self) -> Any:
        found = _SESSION.first(key=self.session_key, now=timezone.now())
        if found is None:
            self._session_key = None
        return found
