"""Logs, and who may read the metrics."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from memoryhub.settings.process import env

LOG_LEVEL = env.text("LOG_LEVEL", "INFO").upper()
if LOG_LEVEL not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
    raise ImproperlyConfigured(
        f"MEMORYHUB_LOG_LEVEL is {LOG_LEVEL!r}, but must be one of DEBUG, INFO, WARNING, ERROR."
    )
LOG_FORMAT = env.text("LOG_FORMAT", "plain").lower()
if LOG_FORMAT not in {"plain", "json"}:
    raise ImproperlyConfigured(f"MEMORYHUB_LOG_FORMAT is {LOG_FORMAT!r}, but must be plain or json.")
METRICS_TOKEN = env.text("METRICS_TOKEN")  # empty: /metrics is not there
if METRICS_TOKEN and len(METRICS_TOKEN) < 16:
    raise ImproperlyConfigured("MEMORYHUB_METRICS_TOKEN is shorter than 16 characters.")
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
        # A line for each request, for programs that collect them; a person's console is spared.
        "memoryhub.requests": {"level": "INFO" if LOG_FORMAT == "json" else "WARNING"},
        "uvicorn": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        # Addresses as they were asked for: some are as good as a password.
        "uvicorn.access": {"level": "WARNING"},
        "django.server": {"handlers": ["console"], "level": LOG_LEVEL, "propagate": False},
        # At DEBUG these quote statements with their values, and what is sent to a model.
        "django.db.backends": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        # It says where it found its keys and its store's address, each time.
        "botocore": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},
        # It says on every job that it was put into the queue, taken and done.
        "django-q": {"level": "DEBUG" if LOG_LEVEL == "DEBUG" else "WARNING"},
    },
}
