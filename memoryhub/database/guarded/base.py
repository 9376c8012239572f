"""Tells Postgres, transaction by transaction, for whom it is asked (``memoryhub.database.acting``).

A person's statement runs as a role that owns nothing, under policies that look at whose rows they are
(``workspaces.isolation``). Nothing of it outlives a transaction, so it holds behind PgBouncer and no connection of the
pool carries somebody over: outside of ``atomic`` the role is set and the statement run in one transaction and one
roundtrip, as one text or by a pipeline; within it the role is set when it changes. The system's statements are sent as
they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from django.conf import settings

from memoryhub.database import acting
from memoryhub.database.pooled import base

ROLE = "memoryhub_rows"
_BECOME = "SELECT memoryhub_become(%s::bigint)"  # made by `manage.py row_security --enable`
_UNKNOWN = -1  # after a savepoint was rolled back, and with it what was set since


class DatabaseWrapper(base.DatabaseWrapper):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._set_for = acting.SYSTEM  # in this transaction
        self.execute_wrappers.append(self._for_whom_it_is)

    def _for_whom_it_is(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        if not settings.ROW_SECURITY:  # it was turned off since, in a test: threads keep their connections
            return execute(sql, params, many, context)
        person = acting.who()
        if self.in_atomic_block or not self.connection.autocommit:
            self.set_person()
            return execute(sql, params, many, context)
        if person == acting.SYSTEM:
            return execute(sql, params, many, context)
        if self._is_text(sql, many, context):
            answer = execute(f"{_BECOME % person}; {sql}", params, many, context)
            context["cursor"].cursor.nextset()  # past what came of becoming
            return answer
        with self.wrap_database_errors, self.connection.pipeline():
            self._ask(_BECOME, person)
            return execute(sql, params, many, context)

    @staticmethod
    def _is_text(sql: Any, many: bool, context: Any) -> bool:
        """Whether it is sent with its values in it, as Django's own are: then both are one text, a third as dear."""
        return (
            not many and isinstance(sql, str) and isinstance(context["cursor"].cursor, psycopg.ClientCursor)
        )

    def set_person(self) -> None:
        """For whom the rest of this transaction is, unless it is so already. Also before a COPY, which asks nobody."""
        person = acting.who()
        if person == self._set_for:
            return
        with self.wrap_database_errors:
            if self._set_for != acting.SYSTEM:  # only the connection's own role may look up whose workspaces
                self._ask(f"SET LOCAL ROLE {self._own_role()}")
            if person != acting.SYSTEM:
                self._ask(_BECOME, person)
        self._set_for = person

    def _own_role(self) -> str:
        given = self.settings_dict["OPTIONS"].get("assume_role")
        return self.ops.quote_name(given) if given else "NONE"

    def _ask(self, statement: str, *values: int) -> None:
        psycopg.Cursor(self.connection).execute(statement, values or None)

    def chunked_cursor(self) -> Any:
        """A cursor of the server cannot be in a pipeline: without a transaction its rows come all at once."""
        if settings.ROW_SECURITY and not self.in_atomic_block and acting.who() != acting.SYSTEM:
            return self.cursor()
        return super().chunked_cursor()

    def _set_autocommit(self, autocommit: bool) -> None:
        self._set_for = acting.SYSTEM
        super()._set_autocommit(autocommit)  # type: ignore[misc]  # the stubs lack it

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # the stubs lack it
        self._set_for = acting.SYSTEM

    def _rollback(self) -> None:
        self._set_for = acting.SYSTEM
        super()._rollback()  # type: ignore[misc]  # the stubs lack it

    def _savepoint_rollback(self, sid: str) -> None:
        with self.wrap_database_errors:  # past the wrapper: nothing else may be asked after a failure
            psycopg.Cursor(self.connection).execute(self.ops.savepoint_rollback_sql(sid))
        self._set_for = _UNKNOWN

    def connect(self) -> None:
        self._set_for = acting.SYSTEM
        super().connect()
