"""Settings of every process: environment, data folder, role, keys and logs."""

import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from memoryhub.environment import Environment

env = Environment("MEMORYHUB_")
BASE_DIR = Path(__file__).resolve().parents[2]
DATA_DIR: Path = env.path("DATA_DIR", BASE_DIR / "var")
FILES_DIR = env.optional("FILES_DIR")  # a folder shared by several hosts; None: the data folder
RUNNING_WORKER = "qcluster" in sys.argv[1:2]
RUNNING_COMMAND = Path(sys.argv[0]).name == "manage.py"
RUNNING_SERVER = "uvicorn" in Path(sys.argv[0]).parts[-2:]  # run as a module or as a script
RUNNING_PROBES = RUNNING_SERVER and "memoryhub.worker_asgi:application" in sys.argv
PROCESS_ROLE = (
    "worker" if RUNNING_WORKER else "command" if RUNNING_COMMAND else "probes" if RUNNING_PROBES else "web"
)


def _kept_key(name: str) -> str:
    """Return the environment's key, or one that is generated and stored once. Raises ImproperlyConfigured."""
    if key := env.secret(name, 32):
        return key
    path = DATA_DIR / name.lower().replace("_", "-")
    try:
        DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            draft = path.with_suffix(f".{os.getpid()}")
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_urlsafe(50))
            try:
                # Atomic. If two processes start at once, both use the first key.
                with suppress(FileExistsError):
                    os.link(draft, path)
            finally:
                draft.unlink()
        return path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"MEMORYHUB_DATA_DIR is {str(DATA_DIR)!r}, which cannot be written: {error.strerror}."
        ) from None


SECRET_KEY = _kept_key("SECRET_KEY")
# The key for hashes of forgotten texts. Separate from SECRET_KEY, which may be changed to end all sessions.
FORGET_KEY = _kept_key("FORGET_KEY")
# So that several hosts can share them.
KEYS_ARE_GIVEN = bool(env.optional("SECRET_KEY") and env.optional("FORGET_KEY"))
# Keys of stored secrets (memoryhub.encryption): the first encrypts, all decrypt. If empty, SECRET_KEY is used.
ENCRYPTION_KEYS = env.words("ENCRYPTION_KEYS")
if any(len(key) < 32 for key in ENCRYPTION_KEYS):
    raise ImproperlyConfigured("MEMORYHUB_ENCRYPTION_KEYS has a key that is shorter than 32 characters.")


# Logs, and access to the metrics.

LOG_LEVEL = env.text("LOG_LEVEL", "INFO").upper()
if LOG_LEVEL not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
    raise ImproperlyConfigured(
        f"MEMORYHUB_LOG_LEVEL is {LOG_LEVEL!r}, but must be one of DEBUG, INFO, WARNING, ERROR."
    )
LOG_FORMAT = env.text("LOG_FORMAT", "plain").lower()
if LOG_FORMAT not in {"plain", "json"}:
    raise ImproperlyConfigured(f"MEMORYHUB_LOG_FORMAT is {LOG_FORMAT!r}, but must be plain or json.")
METRICS_TOKEN = env.secret("METRICS_TOKEN", 16)  # if empty, /metrics does not exist
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": "memoryhub.monitoring.logs.Formatter",
            "format": "{asctime} {levelname} {name}{request}: {message}",
            "style": "{",
        },
        "json": {"()": "memoryhub.monitoring.logs.JsonFormatter"},
    },
    "filters": {"refusals": {"()": "memoryhub.monitoring.logs.RefusalFilter"}},
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["refusals"]},
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        # A line for each request, only in JSON logs, which programs collect.
        "memoryhub.requests": {"level": "INFO" if LOG_FORMAT == "json" else "WARNING"},
        "uvicorn": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        # Would log full URLs, some of which contain keys.
        "uvicorn.access": {"level": "WARNING"},
        "django.server": {"handlers": ["console"], "level": LOG_LEVEL, "propagate": False},
        # At DEBUG these log SQL with its values, and texts sent to models.
        "django.db.backends": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        # Logs the source of its keys and the store's address each time.
        "botocore": {"level": "WARNING"},
        # Logs each part of a backup that it uploads.
        "smart_open": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},
        # Logs three lines for each job: queued, started and finished.
        "django-q": {"level": "DEBUG" if LOG_LEVEL == "DEBUG" else "WARNING"},
    },
}
