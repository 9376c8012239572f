"""The entry point of the web server."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
application = get_asgi_application()

from memoryhub.llm.registry import get_chat_model  # noqa: E402  after Django is set up

get_chat_model()  # its client takes half a second to import: better now than in somebody's first turn
