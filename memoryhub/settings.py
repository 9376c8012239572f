"""Every setting of MemoryHub. What the environment may say is read here and nowhere else; docs/options.md lists it."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from memoryhub.document_store import document_store
from memoryhub.environment import Environment, database_from_url, mail_from_url
from memoryhub.local.postgres import connection_settings

env = Environment("MEMORYHUB_")
BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR: Path = env.path("DATA_DIR", BASE_DIR / "var")
RUNNING_WORKER = "qcluster" in sys.argv[1:2]
RUNNING_COMMAND = Path(sys.argv[0]).name == "manage.py"
PROCESS_ROLE = "worker" if RUNNING_WORKER else "command" if RUNNING_COMMAND else "web"

# --- Web server ------------------------------------------------------------------------------------------------------
HOST = env.text("HOST", "127.0.0.1")
PORT = env.integer("PORT", 8000, low=1, high=65535)
# A Python process works on one core at a time; a second one also answers while the first is started again.
WEB_PROCESSES = env.integer("WEB_PROCESSES", min(2, os.cpu_count() or 1), low=1, high=64)
WORKERS = env.integer("WORKERS", 2, low=1, high=64)
DEBUG = env.flag("DEBUG", False)
HTTPS = env.flag("HTTPS", False)
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", f"localhost,127.0.0.1,[::1],{HOST}")
for name in ALLOWED_HOSTS:
    if "/" in name:
        raise ImproperlyConfigured(
            f"MEMORYHUB_ALLOWED_HOSTS has {name!r}, but an entry is a name such as hub.example.org, without https://."
        )
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
for origin in CSRF_TRUSTED_ORIGINS:
    if "://" not in origin:
        raise ImproperlyConfigured(
            f"MEMORYHUB_CSRF_TRUSTED_ORIGINS has {origin!r}, but every entry must start with http:// or https://."
        )


def _kept_key(given: str | None, file_name: str) -> str:
    """The environment's key, or one made once and kept beside the data, so that it survives a restart."""
    if given:
        if len(given) < 32:
            name = file_name.replace("-", "_").upper()
            raise ImproperlyConfigured(f"MEMORYHUB_{name} is shorter than 32 characters.")
        return given
    path = DATA_DIR / file_name
    try:
        DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            draft = path.with_suffix(f".{os.getpid()}")
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_urlsafe(50))
            try:
                # Atomic, and the first of two processes wins: the other's key is as good.
                with suppress(FileExistsError):
                    os.link(draft, path)
            finally:
                draft.unlink()
        return path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"MEMORYHUB_DATA_DIR is {str(DATA_DIR)!r}, which cannot be written: {error.strerror}."
        ) from None


SECRET_KEY = _kept_key(env.optional("SECRET_KEY"), "secret-key")
# Of the hashes of what was forgotten for good: another key than the one that is changed when sessions are to end.
FORGET_KEY = _kept_key(env.optional("FORGET_KEY"), "forget-key")
# Of stored secrets (memoryhub.sealing): the first seals, each unseals. None: the secret key does.
ENCRYPTION_KEYS = env.words("ENCRYPTION_KEYS")
if any(len(key) < 32 for key in ENCRYPTION_KEYS):
    raise ImproperlyConfigured("MEMORYHUB_ENCRYPTION_KEYS has a key that is shorter than 32 characters.")

# --- Applications ----------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "memoryhub",
    "workspaces",
    "memories",
    "chat",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "django_htmx",
    "template_partials",
    "django_q",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]
MIDDLEWARE = [
    "memoryhub.http.middleware.ProbesMiddleware",  # before hosts and https are asked for: monitors come by address
    "memoryhub.http.middleware.OriginMiddleware",  # what follows is timed, counted, and logged under its id
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "memoryhub.http.compression.CompressedPagesMiddleware",
    "memoryhub.http.middleware.StorableCookiesMiddleware",
    "memoryhub.http.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",  # of every page, unless it says otherwise
    "workspaces.accounts.sessions.LastSeenMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "memoryhub.http.middleware.SecurityHeadersMiddleware",
    "memoryhub.http.middleware.DomainErrorMiddleware",
]
ROOT_URLCONF = "memoryhub.urls"
ASGI_APPLICATION = "memoryhub.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# --- Database --------------------------------------------------------------------------------------------------------
DATABASE_URL = os.environ.get("DATABASE_URL", "").strip()
EMBEDDED_DATABASE = not DATABASE_URL

# Of a backup: what its keys are sealed with, and what else is done with a database that was restored.
BACKUP_PASSPHRASE = env.optional("BACKUP_PASSPHRASE") or ""
AFTER_RESTORE = [
    "memories.forgetting.restored.forget_again",
    "workspaces.restored.forget_again",
]


def _database() -> dict[str, Any]:
    if DATABASE_URL:
        database = database_from_url(DATABASE_URL)
    else:
        embedded = connection_settings(DATA_DIR)
        database = {
            "NAME": embedded["dbname"],
            "USER": embedded["user"],
            "HOST": embedded["host"],
            "PORT": embedded["port"],
            "OPTIONS": {},
        }
    database["ENGINE"] = "django.db.backends.postgresql"
    # For the cursors that let the server bind (memoryhub.database.prepared): prepared at once. Django's own never are.
    database["OPTIONS"].setdefault("prepare_threshold", 0)
    # By which /readyz sees in pg_stat_activity that a worker is at work.
    database["OPTIONS"]["application_name"] = f"memoryhub {PROCESS_ROLE}"
    if RUNNING_WORKER:
        # The cluster forks: a kept connection for each worker, never a pool shared over the fork.
        database |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
    elif not RUNNING_COMMAND:
        database["ENGINE"] = "memoryhub.database.pooled"
        # After five seconds in vain a request begins anew to connect: the pool's own attempts come ever more seldom.
        waits = {"timeout": 15, "max_idle": 120, "reconnect_timeout": 5}
        database["OPTIONS"]["pool"] = {"min_size": 2, "max_size": 20, **waits}
    return database


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {
    # Holds the counts of sign-ins and used one-time codes, for all web processes; room enough that nobody pushes theirs
    # out. Its table is made by a migration of workspaces.
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "workspaces_cache",
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    },
    # What a process may note for itself: that it wrote "last seen" a moment ago, the queue's statistics.
    "process": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 20_000},
    },
}

# --- Accounts --------------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "workspaces.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
SIGNUP_OPEN = env.flag("SIGNUP_OPEN", True)
ACCOUNT_ADAPTER = "workspaces.accounts.sign_in.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_FORMS = {"change_password": "workspaces.pages.workspace_forms.NewPasswordForm"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_REAUTHENTICATION_REQUIRED = True  # before addresses are changed: a new password can be sent to them
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = True
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_ADAPTER = "workspaces.accounts.two_factor.MfaAdapter"
MFA_TOTP_ISSUER = "MemoryHub"
MFA_TOTP_TOLERANCE = 1  # a code of half a minute ago still counts: telephones' clocks are not ours
MFA_ALLOW_UNVERIFIED_EMAIL = True  # no address is ever verified here (ACCOUNT_EMAIL_VERIFICATION)
TRUSTED_PROXIES = env.integer("TRUSTED_PROXIES", 0, low=0, high=10)  # whose X-Forwarded-For is believed
ALLAUTH_TRUSTED_PROXY_COUNT = TRUSTED_PROXIES
AUDIT_DAYS = env.integer("AUDIT_DAYS", 365, low=0, high=36_500)  # 0: the audit log is kept for good
# For allauth: how often, in what time, and per address, person or account ("key": the name that was typed).
ACCOUNT_RATE_LIMITS = {
    "login": "30/m/ip",
    "login_failed": "10/m/ip,100/h/ip,5/5m/key",
    "signup": "20/m/ip,100/h/ip",
    "reset_password": "10/m/ip,3/m/key",
    "reauthenticate": "10/m/user",
    "change_password": "5/m/user",
    "register_program": "10/m/ip,60/h/ip",  # by OAuth, without signing in
    "oauth_token": "120/m/ip",
}
# Requests a minute that one person may make, as many of them at once (workspaces.throttles).
THROTTLES = {
    "turns": env.integer("TURN_RATE", 60, low=1, high=1_000_000),
    "uploads": env.integer("UPLOAD_RATE", 60, low=1, high=1_000_000),
    "model tests": 10,  # each makes several requests to somebody's server
    "sendings": 10,  # of what a webhook was told before
}
BODY_SECONDS = env.number("BODY_SECONDS", 20.0, low=1, high=3600)  # then 4 kB a second are asked for
HALF_SENT_REQUESTS = env.integer("HALF_SENT_REQUESTS", 100, low=1, high=1_000_000)  # per address and process
EVENT_STREAMS = env.integer("EVENT_STREAMS", 20, low=1, high=1_000_000)  # per person and process
ANSWER_STREAMS = env.integer("ANSWER_STREAMS", 100, low=1, high=1_000_000)  # the same, of answers under /v1
# What one person may make in all (workspaces.quotas); 0: without a limit.
QUOTAS = {
    "workspaces": env.integer("MAX_WORKSPACES_PER_PERSON", 100, low=0, high=1_000_000),
    "chats": env.integer("MAX_CHATS_PER_PERSON", 10_000, low=0, high=100_000_000),
    "memories": env.integer("MAX_MEMORIES_PER_PERSON", 100_000, low=0, high=100_000_000),
    "bytes": env.integer("MAX_BYTES_PER_PERSON", 5_000_000_000, low=0, high=10**15),
}
KEY_RATE = env.integer("KEY_RATE", 120, low=1, high=1_000_000)  # requests a minute, for each API key
# Without a server for mail none is sent. Printing it instead would put links that set a password into the logs.
_smtp_url = env.optional("SMTP_URL")  # no setting: it has a password
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if _smtp_url else 'dummy'}.EmailBackend"
(EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD, EMAIL_USE_TLS, EMAIL_USE_SSL) = mail_from_url(
    _smtp_url or "smtp://localhost"
)
EMAIL_TIMEOUT = 10  # seconds: somebody waits for the page meanwhile
DEFAULT_FROM_EMAIL = env.text("FROM_EMAIL", "memoryhub@localhost")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# --- Memory ----------------------------------------------------------------------------------------------------------
MEMORY_ENABLED = env.boolean(
    "MEMORY_ENABLED", None
)  # None: off until switched on; False: vetoed for everyone
DEDUPE_THRESHOLD = env.number("DEDUPE_THRESHOLD", 0.92, low=0.0, high=1.0)
RECALL_THRESHOLD = env.number("RECALL_THRESHOLD", 0.57, low=0.0, high=2.0)
RECALL_LIMIT = env.integer("RECALL_LIMIT", 5, low=1, high=20)
MAX_MEMORIES = env.integer("MAX_MEMORIES", 500, low=0, high=10_000_000)
ASSET_MAX_BYTES = env.integer("ASSET_MAX_BYTES", 10_000_000, low=1, high=1_000_000_000)
DOCUMENT_MAX_BYTES = env.integer("DOCUMENT_MAX_BYTES", 50_000_000, low=1, high=1_000_000_000)
DOCUMENT_SECONDS = env.integer("DOCUMENT_SECONDS", 120, low=1, high=3600)
DOCUMENT_MEMORY_MB = env.integer("DOCUMENT_MEMORY_MB", 2048, low=256, high=65_536)
OCR_LANGUAGES = env.text("OCR_LANGUAGES", "eng")  # as tesseract names them, with + between; "none": no OCR
OCR_SECONDS = env.integer("OCR_SECONDS", 600, low=1, high=36_000)
IMPORT_MAX_BYTES = env.integer("IMPORT_MAX_MB", 512, low=1, high=100_000) * 2**20
PURGE_AFTER_DAYS = env.integer("PURGE_AFTER_DAYS", 30, low=0, high=36_500)
SHORT_TERM_MIN_MESSAGES = env.integer("SHORT_TERM_MIN_MESSAGES", 6, low=1, high=1000)
SHORT_TERM_OTHER_CHATS = env.integer("SHORT_TERM_OTHER_CHATS", 3, low=0, high=20)

# --- Models ----------------------------------------------------------------------------------------------------------
LLM_BASE_URL = env.url("LLM_BASE_URL")
EMBEDDED_MODEL = LLM_BASE_URL is None
LLM_API_KEY = env.text("LLM_API_KEY")
LLM_MODEL = env.text("LLM_MODEL")
if LLM_BASE_URL and not LLM_MODEL:
    raise ImproperlyConfigured("MEMORYHUB_LLM_MODEL must name a model when MEMORYHUB_LLM_BASE_URL is set.")
if (LLM_MODEL or LLM_API_KEY) and not LLM_BASE_URL:
    raise ImproperlyConfigured(
        f"MEMORYHUB_LLM_{'MODEL' if LLM_MODEL else 'API_KEY'} needs MEMORYHUB_LLM_BASE_URL beside it. "
        "Leave all three unset for the embedded model."
    )
LLM_HAS_TOOLS = env.flag("LLM_HAS_TOOLS", not EMBEDDED_MODEL)
LLM_CAN_EXTRACT = env.flag("LLM_CAN_EXTRACT", not EMBEDDED_MODEL)
LLM_CONTEXT_TOKENS = env.integer(
    "LLM_CONTEXT_TOKENS", 2048 if EMBEDDED_MODEL else 16_384, low=512, high=10_000_000
)
LLM_MAX_TOKENS = env.integer("LLM_MAX_TOKENS", 400 if EMBEDDED_MODEL else 2048, low=16, high=1_000_000)
LLM_HISTORY_TOKENS = env.integer(
    "LLM_HISTORY_TOKENS", 700 if EMBEDDED_MODEL else 12_000, low=0, high=10_000_000
)
LLM_TIMEOUT = env.number("LLM_TIMEOUT", 60.0, low=1, high=3600)
LLM_LOCAL = env.boolean("LLM_LOCAL", None)  # None: whether its address is of this machine says so
PEOPLE_MAY_CONNECT = env.flag("PEOPLE_MAY_CONNECT", False)  # own connections to models
PEOPLE_MAY_CONNECT_INTERNAL = env.flag(
    "PEOPLE_MAY_CONNECT_INTERNAL", False
)  # and to addresses in this network
WEBHOOKS_INTERNAL = env.flag("WEBHOOKS_INTERNAL", False)  # webhooks to addresses in this network
SEARCH_URL = env.url(
    "SEARCH_URL"
)  # of a SearXNG: with it runs and research may search the web and read pages
EMBEDDING_BASE_URL = env.url("EMBEDDING_BASE_URL")
EMBEDDING_API_KEY = env.text("EMBEDDING_API_KEY")
EMBEDDING_PREVIOUS_API_KEY = env.text("EMBEDDING_PREVIOUS_API_KEY")
EMBEDDING_LOCAL = env.boolean("EMBEDDING_LOCAL", None)  # as LLM_LOCAL
EMBEDDING_MODEL = env.text("EMBEDDING_MODEL")  # "none": no embedder, recall by words
if EMBEDDING_BASE_URL and EMBEDDING_MODEL in {"", "none"}:
    raise ImproperlyConfigured(
        "MEMORYHUB_EMBEDDING_MODEL must name a model when MEMORYHUB_EMBEDDING_BASE_URL is set."
    )
if EMBEDDING_MODEL not in {"", "none"} and not EMBEDDING_BASE_URL:
    raise ImproperlyConfigured(
        "MEMORYHUB_EMBEDDING_MODEL needs MEMORYHUB_EMBEDDING_BASE_URL beside it. Leave both unset for the bundled one."
    )

# --- Background jobs -------------------------------------------------------------------------------------------------
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

# --- Static files, language, API -------------------------------------------------------------------------------------
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = DEBUG
DOCUMENT_STORE, DOCUMENTS_STAY_HERE = document_store(env, DATA_DIR / "documents")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "documents": DOCUMENT_STORE,
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
LANGUAGE_CODE = "en"
# Every word is marked for translation, but none is translated yet: looking each of them up would be a tenth of what a
# page costs, and a browser that asks for another language would get a page half in it, in Django's own sentences.
# Who adds translations sets this and puts Django's LocaleMiddleware after the sessions' above.
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["workspaces.rest.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "workspaces.rest.schema.Schema",
    "EXCEPTION_HANDLER": "workspaces.rest.exception_handler",
    "DATETIME_FORMAT": "%Y-%m-%dT%H:%M:%S.%fZ",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "MemoryHub",
    "DESCRIPTION": "Chat with a model inside workspaces that remember.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "workspaces.rest.examples.add_examples",
    ],
    "ENUM_NAME_OVERRIDES": {
        "ScopeEnum": "memories.models.Scope.values",
        "OrganisationScopeEnum": "memories.api.v1.serializers.SCOPE_WORDS",
        "KeyScopeEnum": "workspaces.models.KeyScope.values",
        "WebhookEventEnum": "workspaces.models.WebhookEvent.values",
        "DeliveryStatusEnum": "workspaces.models.DeliveryStatus.values",
        "DocumentStatusEnum": "workspaces.models.document.DocumentStatus.values",
        "ArtifactKindEnum": "workspaces.models.ArtifactKind.values",
        "RunStatusEnum": "chat.models.RunStatus.values",
        "RunModeEnum": "chat.models.RunMode.values",
        "AnswerModeEnum": "chat.api.serializers.MODES",
        "FoundTypeEnum": "memories.api.serializers.TYPES",
    },
}
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
            "()": "memoryhub.logs.Formatter",
            "format": "{asctime} {levelname} {name}{request}: {message}",
            "style": "{",
        },
        "json": {"()": "memoryhub.logs.JsonFormatter"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
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
        "openai": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},
        # It says on every job that it was put into the queue, taken and done.
        "django-q": {"level": "DEBUG" if LOG_LEVEL == "DEBUG" else "WARNING"},
    },
}
READ_ELSEWHERE = ("ADMIN_USERNAME", "ADMIN_PASSWORD", "ADMIN_EMAIL")  # by manage.py ensure_admin
env.refuse_unknown(*READ_ELSEWHERE)
