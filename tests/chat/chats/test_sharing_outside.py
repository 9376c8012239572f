"""A shared chat as visitors see it: no links into the application, and the same for everyone."""

import re

import pytest
from django.test import Client

from tests.chat.chats.test_sharing import asked, link_to, seen
from tests.conftest import Cast
from tests.factories import make_chat
from workspaces.models import User

pytestmark = pytest.mark.django_db


def test_it_names_no_document_and_leads_nowhere_within(cast: Cast) -> None:
    made, own = make_chat(cast.owner, cast.workspace), "/workspaces/ws_secret/documents/doc_secret/"
    text = (
        f"![Pay <i>list</i>]({own}content/) [page]({own}?passage=0) [host](http://TESTSERVER{own}) "
        f"[port](//testserver:80{own}) [near](workspaces/ws_secret) [odd](http://[{own}) [user](https://a@testserver.{own})\n\n"
        "[out](https://example.org/a?b=1&c=2) [mail](mailto:a@example.org) <https://example.com/>"
    )
    asked(made, "Where?", text)
    html = seen(link_to(made))
    assert "secret" not in html
    for word in ("Pay", "page", "host", "port", "near", "user"):
        assert word in html
    assert re.findall(r'<a href="([^"]+)"', html) == [
        "https://example.org/a?b=1&amp;c=2",
        "mailto:a@example.org",
        "https://example.com/",
    ]
    assert "<img" not in html


def test_it_is_the_same_to_everybody_whatever_language_they_chose(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    asked(chat, "How is the sea?", "Calm.")
    address, german = link_to(chat), Client()
    User.objects.filter(pk=cast.stranger.pk).update(language="de")
    german.force_login(cast.stranger)
    assert german.get(address).content == Client().get(address).content
    for accept in ("de", "en"):
        answer = german.get(address, headers={"Accept-Language": accept})
        assert answer.headers["Content-Language"] == accept, "the browser's"
