"""The database's settings for code that talks to it without Django's pool."""

from __future__ import annotations

from typing import Any

from django.conf import settings


def psycopg_settings() -> dict[str, Any]:
    """Django's settings of the database in psycopg's words."""
    database = settings.DATABASES["default"]
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    found = {theirs: database[ours] for ours, theirs in names.items() if database.get(ours)}
    return found | {name: value for name, value in database.get("OPTIONS", {}).items() if name != "pool"}
