"""The web server: where it listens, whom it answers, how it is reached."""

from __future__ import annotations

import os

from django.core.exceptions import ImproperlyConfigured

from memoryhub.settings.process import env

HOST = env.text("HOST", "127.0.0.1")
PORT = env.integer("PORT", 8000, low=1, high=65535)
# A Python process works on one core at a time; a second one also answers while the first is started again.
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
TRUSTED_PROXIES = env.integer("TRUSTED_PROXIES", 0, low=0, high=10)  # whose X-Forwarded-For is believed
ALLAUTH_TRUSTED_PROXY_COUNT = TRUSTED_PROXIES
STREAMS_AT_ONCE = env.integer("STREAMS_AT_ONCE", 2000, low=1, high=1_000_000)  # per process; more is 503
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = env.integer("SESSION_DAYS", 14, low=1, high=365) * 86_400
SECURE_SSL_REDIRECT = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
