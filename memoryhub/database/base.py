"""A variant of Django's Postgres backend that never returns a pooled connection that was closed while idle.

Django's own ``CONN_HEALTH_CHECKS`` makes psycopg's pool query the server each time and wait one, two, four … seconds
after each failed connection, so that most requests would end in PoolTimeout after a restart of the server.

With replicas, requests do not wait for an unavailable server if another server can answer.
"""

from __future__ import annotations

import select
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.db.backends.postgresql import base
from django.db.utils import OperationalError
from psycopg_pool import PoolTimeout

from memoryhub.database.replicas import refuse_in_vain, stands_in

ATTEMPTS = 5  # attempts to connect to the primary, each with the pool's timeout


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: Any) -> Any:
        if stands_in() and self.alias == DEFAULT_DB_ALIAS:
            raise OperationalError("the primary is away")
        found = self._given_out(conn_params)
        for _ in range(self.pool.max_size if self.pool else 0):
            if not was_cut(found):
                break
            found.close()
            self.pool.putconn(found)  # the pool replaces closed connections
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
    """Return whether an idle connection was closed by the server: its socket is readable. Sends nothing."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
