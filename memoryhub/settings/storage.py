"""Settings of storage: the database and its replicas, caches, files, and the queue of background jobs."""

import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from memoryhub.environment import LIBPQ_NAMES, SOON, database_from_url, libpq_settings, value_or_file
from memoryhub.local.postgres import connection_settings
from memoryhub.settings.process import BASE_DIR, DATA_DIR, PROCESS_ROLE, RUNNING_WORKER, env
from memoryhub.settings.web import DEBUG
from memoryhub.stored_files import file_stores

DATABASE_URL = value_or_file(os.environ, "DATABASE_URL") or ""
EMBEDDED_DATABASE = not DATABASE_URL
POOLER_URL = env.optional("POOLER_URL")
if POOLER_URL and not DATABASE_URL:
    raise ImproperlyConfigured(
        "MEMORYHUB_POOLER_URL needs DATABASE_URL beside it: the database that it pools."
    )
# Connections that need their own session, such as LISTEN, bypass the pooler.
LISTEN_AT = libpq_settings(database_from_url(DATABASE_URL)) if POOLER_URL else {}

# Replicas of the primary, used for reads (memoryhub.database.replicas).
REPLICA_URLS = env.words("REPLICA_URLS")
REPLICA_LAG = env.number("REPLICA_LAG", 10.0, low=0.1, high=3600)  # maximum delay of reads in seconds
if REPLICA_URLS and not DATABASE_URL:
    raise ImproperlyConfigured(
        "MEMORYHUB_REPLICA_URLS needs DATABASE_URL beside it: the primary that they follow."
    )

# Backups: the passphrase for their keys, and hooks. AFTER_RESTORE maps each function that repeats forgetting in a
# restored database to the tables that the function reads in a newer database.
BACKUP_PASSPHRASE = env.optional("BACKUP_PASSPHRASE") or ""
BACKUP_DAYS = env.integer("BACKUP_DAYS", 7, low=0, high=3650)  # `doctor` reports older backups; 0: never
AFTER_BACKUP = ["workspaces.audit.record_backup"]  # called with size in bytes and installation id
# Tables with the columns file_name and sha256, and the folder of their files, in subfolders of two letters.
FILES_OF = {
    "memories_asset": "assets",
    "workspaces_document": "documents",
    "workspaces_documentversion": "documents",
}
AFTER_RESTORE = {
    "memories.forgetting.for_good.forget_again": ["memories_tombstone"],
    "workspaces.retention.forget_again": ["workspaces_auditevent"],
    "workspaces.accounts.invitations.close_again": ["workspaces_invitation"],
    "chat.chats.sharing.close_again": ["chat_sharelink"],
}


# Further checks of `doctor`: functions that yield sentences.
DOCTOR_ASKS = ["workspaces.management.commands.reseal.in_short"]


def _database() -> dict[str, Any]:
    if DATABASE_URL:
        database = database_from_url(DATABASE_URL)
    else:
        embedded = connection_settings(DATA_DIR)
        database = {ours: embedded[theirs] for ours, theirs in LIBPQ_NAMES.items() if theirs in embedded}
        database["OPTIONS"] = {}
    if POOLER_URL and PROCESS_ROLE == "web":
        # Each transaction may use another session, so statements are not prepared and cursors do not outlive one.
        database = database_from_url(POOLER_URL, "MEMORYHUB_POOLER_URL") | {
            "DISABLE_SERVER_SIDE_CURSORS": True
        }
        database["OPTIONS"]["prepare_threshold"] = None
    # With replicas the timeout is shorter: reads use a replica, and writes are retried (memoryhub.database).
    return _connected(database, wait=3 if REPLICA_URLS else 15)


def _replica(url: str) -> dict[str, Any]:
    database = database_from_url(url, "MEMORYHUB_REPLICA_URLS")
    database["OPTIONS"] = {**SOON, "target_session_attrs": "any"} | database["OPTIONS"]
    return _connected(database, wait=2)


def _connected(database: dict[str, Any], *, wait: float) -> dict[str, Any]:
    """Add this process's connection options to a database's settings. ``wait`` is the pool's timeout in seconds."""
    database["ENGINE"] = "django.db.backends.postgresql"
    # Prepare statements of server-side binding cursors (memoryhub.database.queries) at once. Django's own never are.
    database["OPTIONS"].setdefault("prepare_threshold", 0)
    # /readyz finds workers by this name in pg_stat_activity.
    database["OPTIONS"]["application_name"] = f"memoryhub {PROCESS_ROLE}"
    if RUNNING_WORKER:
        # The cluster forks, so each worker has a persistent connection instead of a shared pool.
        database |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
    elif PROCESS_ROLE == "web":
        database["ENGINE"] = "memoryhub.database"
        # After five seconds of failed attempts, which become ever rarer, the next request connects again.
        # Connections live for half a day: while its disk is full, Postgres accepts no new ones, but they still read.
        waits = {"timeout": wait, "max_idle": 120, "max_lifetime": 12 * 3600, "reconnect_timeout": 5}
        database["OPTIONS"]["pool"] = {"min_size": 2, "max_size": 20, **waits}
    return database


DATABASES = {"default": _database()}
DATABASES |= {f"replica {number}": _replica(url) for number, url in enumerate(REPLICA_URLS, 1)}
REPLICAS = [alias for alias in DATABASES if alias != "default"]
DATABASE_ROUTERS = ["memoryhub.database.replicas.Router"] if REPLICAS else []
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {
    # Rate limits of sign-ins and used one-time codes, shared by all web processes. It is so large that an attacker
    # cannot evict entries. A migration of workspaces creates its table.
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "workspaces_cache",
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    },
    # Data of one process: when it last updated "last seen", and the queue's statistics.
    "process": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 20_000},
    },
}


# Static files, files of documents and memories, languages.

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = DEBUG
FILE_STORES, FILES_STAY_HERE = file_stores(env)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    **FILE_STORES,
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "memoryhub.http.static_files.OneFileStorage"
    },
}
LANGUAGE_CODE = "en"
# Languages with their native names. docs/languages.md says what is translated.
LANGUAGES = [
    ("en", "English"),
    ("de", "Deutsch"),
    ("es", "Español"),
    ("fr", "Français"),
    ("pt-br", "Português (Brasil)"),
    ("zh-hans", "简体中文"),
    ("ar", "العربية"),
]
FORMAT_MODULE_PATH = ["memoryhub.formats"]
LOCALE_PATHS = [DATA_DIR / "locale"]  # compiled from memoryhub/locale by `manage.py prepare`
TIME_ZONE = "UTC"
USE_TZ = True


# Background jobs.

WORKERS = env.integer("WORKERS", 2, low=1, high=64)
JOB_TIMEOUT = env.integer("JOB_TIMEOUT", 90, low=1, high=3600)
Q_CLUSTER = {
    "name": "memoryhub",
    "orm": "default",
    "cache": "process",  # for statistics, which are written twice a second and only read locally
    "workers": WORKERS,
    "timeout": JOB_TIMEOUT,
    "retry": JOB_TIMEOUT + max(2, JOB_TIMEOUT // 3),  # seconds until a killed worker's job is retried
    "max_attempts": 5,
    "bulk": 1,
    "recycle": 100_000,  # effectively never, because worker_health treats a worker's end as a loss
    "queue_limit": WORKERS,
    "save_limit": 1000,
    "poll": 0.2,
    "catch_up": False,
    "label": "Background jobs",
}
