"""Hostile text through every field, back on every page: always escaped, never active markup, script or link."""

import re
from html.parser import HTMLParser

import pytest
from django.test import Client

from chat.rendering.markdown import Budget, render_markdown
from chat.rendering.stored_html import MESSAGE_STEPS
from tests.factories import make_memory, make_user
from workspaces.access import default_workspace

EVIL = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{ 7|add:7 }}{% now 'Y' %}"
HANDLER = re.compile(r"^(on|hx-on)")
OURS = {"/", "#"}
# Re-encoded by the server
PICTURE = re.compile(r"/workspaces/ws_\w+/documents/doc_\w+/picture/\?version=\d+")


class Page(HTMLParser):
    """The elements and attributes of a page that could act, as a browser parses it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        # An artifact's frame has its own origin: tests/functional/test_artifacts.py attacks from within.
        is_artifact = tag == "iframe" and named.get("sandbox") == "allow-scripts"
        is_picture = tag == "img" and PICTURE.fullmatch(named.get("src") or "")
        acts = tag in {"img", "iframe", "object", "embed", "style", "base", "math"}
        if acts and not (is_artifact or is_picture):
            self.found.append(tag)
        if tag == "script" and not (named.get("src") or "").startswith("/static/"):
            self.found.append("script")
        for name, value in attrs:
            if HANDLER.match(name) or name in {"style", "srcdoc", "xlink:href"}:
                self.found.append(f"{tag} {name}")
            if name in {"href", "src", "action", "formaction", "hx-get", "hx-post"} and value:
                if tag not in {"a"} and value[0] not in OURS:
                    self.found.append(f"{tag} {name}={value}")
                if re.match(r"\s*(javascript|data|vbscript):", value, re.IGNORECASE):
                    self.found.append(f"{tag} {name}={value}")


@pytest.mark.django_db
def test_no_page_takes_what_stands_in_its_address_for_markup() -> None:
    """Stored text and forms are tried by tests/test_xss_everywhere.py."""
    owner = make_user("olive")
    workspace, memory = default_workspace(owner), make_memory("Tea", owner)
    client = Client()
    client.force_login(owner)
    place = f"/workspaces/{workspace.public_id}"
    for path in (
        f"{place}/chats/list/?q={EVIL}",
        f"{place}/memories/?part=list&q={EVIL[:8]}&category={EVIL}",
        f"{place}/memories/{memory.public_id}/edit/?as={EVIL}",
        f"/chats/{EVIL}/",
        f"/accounts/login/?next={EVIL}",
    ):
        page = client.get(path, follow=True).content.decode()
        assert Page(page).found == [], path
        assert "14{" not in page and "alert(2)</script" not in page, path


MARKDOWN = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](\\x01javascript:alert(1))",
    "[x](vbscript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "<javascript:alert(1)>",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/pixel.png)",
    "[x]: javascript:alert(1)\n\n[x]",
    '[x](https://a.example "onmouseover=alert(1) x=\\"")',
    '```"><img src=x onerror=alert(1)>\ncode\n```',
    "```html\n<script>alert(1)</script>\n```",
    '```python" onload="alert(1)\nx = 1\n```',
    "~~~<svg/onload=alert(1)>\nx\n~~~",
    "`<img src=x onerror=alert(1)>`",
    "| <img src=x onerror=alert(1)> |\n|---|\n| [x](javascript:alert(1)) |",
    "# <svg onload=alert(1)>",
    "<div style='position:fixed;inset:0'>cover</div>",
    "<form action=https://evil.example><input name=password></form>",
    "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
]


def test_answer_is_rendered_without_active_markup() -> None:
    for text in MARKDOWN:
        assert Page(render_markdown(text, Budget(MESSAGE_STEPS))).found == [], text
