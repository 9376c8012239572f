"""Django's Postgres backend, which never gives out a pooled connection that was cut while it lay idle.

Django's own ``CONN_HEALTH_CHECKS`` asks the server each time, and psycopg's pool then waits one second, two, four …
between the connections that fail: after a restart of the server most requests would end in PoolTimeout.

With replicas nobody waits for a server that is away where another answers.
"""

from __future__ import annotations

import select
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.db.backends.postgresql import base
from psycopg_pool import PoolTimeout

from memoryhub.database.replicas import refuse_in_vain

ATTEMPTS = 5  # to get the primary, each as long as the pool waits


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: Any) -> Any:
        found = self._given_out(conn_params)
        for _ in range(self.pool.max_size if self.pool else 0):
            if not was_cut(found):
                break
            found.close()
            self.pool.putconn(found)  # which replaces it, since it is closed
            refuse_in_vain(self.alias)
            found = self._given_out(conn_params)
        return found

    def _given_out(self, conn_params: Any) -> Any:
        for last in (False,) * (ATTEMPTS - 1) + (True,):
            try:
                return super().get_new_connection(conn_params)
            except PoolTimeout:
                if last or not settings.REPLICAS or self.alias != DEFAULT_DB_ALIAS:
                    raise
                refuse_in_vain(self.alias)
        raise AssertionError("the last attempt returns or raises")


def was_cut(connection: Any) -> bool:
    """Return whether an idle connection has something to read, which means that it was closed. No round trip."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
