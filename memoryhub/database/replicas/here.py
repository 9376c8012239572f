"""What a thread is at: kept apart from what asks databases, since their connections ask for it."""

from __future__ import annotations

import threading
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.db.utils import OperationalError

from memoryhub.database.replicas.servers import server


class _Here(threading.local):
    only_reads = False  # its request could be answered by a replica
    stands_in = False  # and is, all of it
    usual: Any = None  # the primary's connection, while another is in its place


here = _Here()


def refuse_in_vain(alias: str) -> None:
    """Raise OperationalError instead of waiting for a server that is away, where another may answer."""
    has_another = here.only_reads or alias != DEFAULT_DB_ALIAS
    if settings.REPLICAS and has_another and server(alias).check():
        raise OperationalError("the server is away")
