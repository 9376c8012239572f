"""Deliberately wrong queries wherever the application asks its own rule, and what came of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.db.models import Model, QuerySet, Value

from memoryhub.database import prepared
from memoryhub.database.acting import who
from memoryhub.database.ready import Ready
from workspaces.models import Role

# Of everything that somebody wrote, without any filter.
WRONG = (
    "SELECT content FROM memories_memory UNION ALL SELECT content FROM chat_message UNION ALL "
    "SELECT title FROM chat_chat UNION ALL SELECT text FROM workspaces_documentpassage UNION ALL "
    "SELECT title FROM workspaces_document UNION ALL SELECT content FROM workspaces_artifactversion UNION ALL "
    "SELECT text FROM chat_savedprompt UNION ALL SELECT objective FROM chat_run UNION ALL "
    "SELECT content FROM memories_receiptitem UNION ALL SELECT name FROM memories_memorynode"
)


def with_a_rule() -> set[type[QuerySet[Model]]]:
    """The kinds of rows that say themselves who sees them."""
    found = {type(model._default_manager.all()) for model in apps.get_models()}
    return {rows for rows in found if hasattr(rows, "visible_to")}


def _made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made once a process asks the rule each time, and nothing of a test stays."""

    def all_of(self: Any, *, limit: int | None = None, **values: Any) -> list[Any]:
        return list(self._make(**values)[:limit])

    monkeypatch.setattr(Ready, "all", all_of)
    monkeypatch.setattr(Ready, "count", lambda self, **values: self._make(**values).count())


def forget_to_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The application's own rule taken out: everybody is an owner everywhere."""
    _made_anew(monkeypatch)
    for rows in with_a_rule():
        rule = rows.visible_to  # type: ignore[attr-defined]

        def visible_to(self: Any, *given: Any, rule: Any = rule) -> Any:
            needs_role = "role" in rule(self, *given).query.annotations
            return self.annotate(role=Value(Role.OWNER)) if needs_role else self

        monkeypatch.setattr(rows, "visible_to", visible_to)


class Asked:
    """By door: for whom the database was asked there, and all the texts that the wrong queries gave."""

    def __init__(self) -> None:
        self.door, self.doors = "", list[str]()
        self.whose = defaultdict[str, set[int]](set)
        self.texts = defaultdict[str, set[str]](set)
        self._is_asking = False

    @contextmanager
    def at(self, door: str) -> Iterator[None]:
        self.door = door
        self.doors.append(door)
        yield
        self.door = ""

    def ask(self) -> None:
        """By Django's cursor, one of its own that is prepared, and inside of a transaction."""
        if not self.door or self._is_asking:
            return
        self._is_asking = True
        try:
            with connection.cursor() as cursor:
                cursor.execute(WRONG)
                found = cursor.fetchall()
            found += prepared.rows(WRONG, ())
            with transaction.atomic():
                found += prepared.rows(WRONG, ())
        finally:
            self._is_asking = False
        self.whose[self.door].add(who())
        self.texts[self.door] |= {text for (text,) in found}


def ask_wrongly(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """From now on, beside each question of the application's own rule."""
    asked = Asked()
    _made_anew(monkeypatch)
    for rows in with_a_rule():
        rule = rows.visible_to  # type: ignore[attr-defined]

        def visible_to(self: Any, *given: Any, rule: Any = rule) -> Any:
            asked.ask()
            return rule(self, *given)

        monkeypatch.setattr(rows, "visible_to", visible_to)
    return asked
