"""Static files, files of documents and memories, languages."""

from __future__ import annotations

from memoryhub.files.file_stores import file_stores
from memoryhub.settings.process import BASE_DIR, DATA_DIR, env
from memoryhub.settings.web import DEBUG

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
FORMAT_MODULE_PATH = ["memoryhub.formats"]
LOCALE_PATHS = [DATA_DIR / "locale"]  # what `manage.py prepare` makes of memoryhub/locale
TIME_ZONE = "UTC"
USE_TZ = True
