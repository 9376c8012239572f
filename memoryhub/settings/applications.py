"""What the project is put together of."""

from __future__ import annotations

from memoryhub.settings.process import BASE_DIR

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
    "memoryhub.http.middleware.ProbesMiddleware",  # before hosts and https are asked for: monitors come by address
    "memoryhub.http.middleware.OriginMiddleware",  # what follows is timed, counted, and logged under its id
    "memoryhub.http.from_replicas.ReadingMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "memoryhub.http.compression.CompressedPagesMiddleware",
    "memoryhub.http.middleware.StorableCookiesMiddleware",
    "memoryhub.http.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "memoryhub.languages.LanguageMiddleware",
    "memoryhub.http.time_zones.TimeZoneMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",  # of every page, unless it says otherwise
    "workspaces.accounts.sessions.LastSeenMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "memoryhub.http.middleware.SecurityHeadersMiddleware",
    "memoryhub.http.middleware.DomainErrorMiddleware",
    "workspaces.accounts.two_factor.TwoFactorMiddleware",
]
SESSION_ENGINE = "memoryhub.http.session_store"
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
