"""A worker of runs in its own process, as the queue's are, with a shorter timeout for dead workers.

``python -m tests.chat.runs.work_loop STEPS_AT_ONCE``
"""

import os
import sys
import time
from contextlib import suppress
from datetime import timedelta

import django


def main(at_once: int) -> None:
    from django.db import DatabaseError, InterfaceError, close_old_connections

    from chat.runs import transitions, worker

    transitions.STALE, worker.BEAT_SECONDS = timedelta(seconds=3), 0.3
    parent = os.getppid()
    while os.getppid() == parent:  # it never outlives the test
        close_old_connections()  # as the queue does before each job
        with suppress(DatabaseError, InterfaceError):
            worker.work(seconds=60, at_once=at_once)
        time.sleep(0.2)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    most, sys.argv = int(sys.argv[1]), ["manage.py", "qcluster"]  # uses the database settings of the worker
    django.setup()
    main(most)
