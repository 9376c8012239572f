"""Static files, documents, languages."""

from __future__ import annotations

from pathlib import Path

from memoryhub.document_store import document_store
from memoryhub.settings.process import BASE_DIR, DATA_DIR, FILES_DIR, env
from memoryhub.settings.web import DEBUG

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = DEBUG
DOCUMENT_STORE, DOCUMENTS_STAY_HERE = document_store(env, Path(FILES_DIR or DATA_DIR) / "documents")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "documents": DOCUMENT_STORE,
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "memoryhub.http.static_files.OneFileStorage"
    },
}
LANGUAGE_CODE = "en"
# By the names that people who speak them give them. What is translated: docs/languages.md.
LANGUAGES = [
    ("en", "English"),
    ("de", "Deutsch"),
    ("es", "Español"),
    ("fr", "Français"),
    ("pt-br", "Português (Brasil)"),
    ("zh-hans", "简体中文"),
    ("ar", "العربية"),
]
LOCALE_PATHS = [DATA_DIR / "locale"]  # what `manage.py prepare` makes of memoryhub/locale
TIME_ZONE = "UTC"
USE_TZ = True
