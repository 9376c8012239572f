"""Django's sessions in the database, which are the system's to read and write: whoever reads one is signed in by it."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends import db

from memoryhub.database.acting import as_system


class SessionStore(db.SessionStore):
    def load(self) -> Any:
        with as_system():
            return super().load()

    def exists(self, session_key: str) -> bool:
        with as_system():
            return super().exists(session_key)

    def save(self, must_create: bool = False) -> None:
        with as_system():
            super().save(must_create)

    def delete(self, session_key: str | None = None) -> None:
        with as_system():
            super().delete(session_key)
