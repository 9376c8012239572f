"""The ASGI application of the web server."""

import gc
import os
from typing import Any

import django

gc.disable()  # garbage collection took a sixth of the start, and modules are never freed
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402  after Django is set up
from django.core.asgi import get_asgi_application  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from memoryhub.database.startup import refuse_to_serve_other_version  # noqa: E402
from memoryhub.http.body_limit import BodyLimit  # noqa: E402
from memoryhub.http.static_files import StaticFiles  # noqa: E402
from memoryhub.llm.registry import get_chat_model  # noqa: E402

refuse_to_serve_other_version()
djangos_own: Any = get_asgi_application()
django_application = StaticFiles(djangos_own)
most = max(settings.IMPORT_MAX_BYTES, settings.ASSET_MAX_BYTES) + 2**20  # and the form besides its file
application = BodyLimit(django_application, most)

# Each takes half a second, which would otherwise delay the first turn and the first page.
get_chat_model()
_ = get_resolver().url_patterns
gc.freeze()
gc.enable()
