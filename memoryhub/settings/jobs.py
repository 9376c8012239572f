"""Background jobs."""

from __future__ import annotations

from memoryhub.settings.process import env

WORKERS = env.integer("WORKERS", 2, low=1, high=64)
JOB_TIMEOUT = env.integer("JOB_TIMEOUT", 90, low=1, high=3600)
Q_CLUSTER = {
    "name": "memoryhub",
    "orm": "default",
    "cache": "process",  # twice a second its statistics, which nobody reads from elsewhere
    "workers": WORKERS,
    "timeout": JOB_TIMEOUT,
    "retry": JOB_TIMEOUT + max(2, JOB_TIMEOUT // 3),  # a killed worker's job is taken up again after this
    "max_attempts": 5,
    "bulk": 1,
    "recycle": 100_000,  # a worker that ends itself looks like a lost one to the watchdog
    "queue_limit": WORKERS,
    "save_limit": 1000,
    "poll": 0.2,
    "catch_up": False,
    "label": "Background jobs",
}
