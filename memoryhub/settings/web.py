"""Settings of the web server: addresses, cookies, installed apps, middleware, webhooks, and the REST API."""

import os

from django.core.exceptions import ImproperlyConfigured

from memoryhub.settings.process import BASE_DIR, env

HOST = env.text("HOST", "127.0.0.1")
PORT = env.integer("PORT", 8000, low=1, high=65535)
# A Python process uses one core; a second process also answers while the first restarts.
WEB_PROCESSES = env.integer("WEB_PROCESSES", min(2, os.cpu_count() or 1), low=1, high=64)
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
TRUSTED_PROXIES = env.integer("TRUSTED_PROXIES", 0, low=0, high=10)  # number of proxies in front
ALLAUTH_TRUSTED_PROXY_COUNT = TRUSTED_PROXIES
STREAMS_AT_ONCE = env.integer("STREAMS_AT_ONCE", 2000, low=1, high=1_000_000)  # per process; more get 503
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = env.integer("SESSION_DAYS", 14, low=1, high=365) * 86_400
SECURE_SSL_REDIRECT = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"


# Installed apps, middleware and templates.

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
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.socialaccount.providers.github",
    "allauth.socialaccount.providers.gitlab",
    "allauth.socialaccount.providers.google",
    "django_htmx",
    "template_partials",
    "django_q",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]
MIDDLEWARE = [
    "memoryhub.http.middleware.ProbesMiddleware",  # before host and HTTPS checks, which monitors would fail
    "memoryhub.http.middleware.OriginMiddleware",  # early, because it times and logs everything that follows
    "memoryhub.http.middleware.ReadingMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "memoryhub.http.middleware.CompressedPagesMiddleware",
    "memoryhub.http.middleware.StorableCookiesMiddleware",
    "memoryhub.http.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "memoryhub.http.middleware.LanguageMiddleware",
    "memoryhub.http.middleware.TimeZoneMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",  # for all views without login_not_required
    "workspaces.accounts.sessions.LastSeenMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "memoryhub.http.middleware.SecurityHeadersMiddleware",
    "memoryhub.http.middleware.DomainErrorMiddleware",
    "workspaces.accounts.two_factor.TwoFactorMiddleware",
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
            ],
        },
    }
]


# REST, its schema, and webhooks.

WEBHOOKS_INTERNAL = env.flag("WEBHOOKS_INTERNAL", False)  # allow webhooks in this network
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["workspaces.api.exceptions.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "workspaces.api.schema.Schema",
    "EXCEPTION_HANDLER": "workspaces.api.exceptions.exception_handler",
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
        "workspaces.api.schema.add_examples",
    ],
    "ENUM_NAME_OVERRIDES": {
        "ScopeEnum": "memories.models.Scope.values",
        "OrganisationScopeEnum": "memories.api.v1.serializers.SCOPE_WORDS",
        "KeyScopeEnum": "workspaces.models.KeyScope.values",
        "WebhookEventEnum": "workspaces.models.WebhookEvent.values",
        "DeliveryStatusEnum": "workspaces.models.DeliveryStatus.values",
        "DocumentStatusEnum": "workspaces.models.documents.DocumentStatus.values",
        "ArtifactKindEnum": "workspaces.models.ArtifactKind.values",
        "RunStatusEnum": "chat.models.RunStatus.values",
        "RunModeEnum": "chat.models.RunMode.values",
        "RunEntryKindEnum": "chat.api.runs.KINDS",
        "AnswerModeEnum": "chat.api.serializers.MODES",
        "FoundTypeEnum": "memories.api.serializers.TYPES",
    },
}
