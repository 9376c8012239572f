"""Django's Postgres backend, which never gives out a pooled connection that was cut while it lay idle.

Django's own ``CONN_HEALTH_CHECKS`` asks the server each time, and psycopg's pool then waits one second, two, four …
between the connections that fail: after a restart of the server most requests would end in PoolTimeout.
"""

from __future__ import annotations

import select
from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: Any) -> Any:
        found = super().get_new_connection(conn_params)
        for _ in range(self.pool.max_size if self.pool else 0):
            if not was_cut(found):
                break
            found.close()
            self.pool.putconn(found)  # which replaces it, since it is closed
            found = super().get_new_connection(conn_params)
        return found


def was_cut(connection: Any) -> bool:
    """Whether there is something to read: to an idle connection a server says nothing but its end. No roundtrip."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
