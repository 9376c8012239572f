"""Hostile text through every field, back on every page: always escaped, never active markup, script or link."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from django.test import Client
from django.utils import timezone

from chat.chats.services import delete_chat
from chat.models import MessageRole, MessageStatus
from chat.rendering.markdown import Budget, render_markdown
from chat.rendering.rendered import MESSAGE_STEPS
from chat.turns.remembering import remember_message
from memories.models import Receipt
from memories.writing.gate import edit_memory
from tests.factories import make_chat, make_memory, make_message, make_user, make_workspace

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
def test_no_page_takes_what_people_write_for_markup() -> None:
    now = timezone.now()
    owner, other = make_user("olive", first_name=EVIL[:150], last_name=EVIL[:150]), make_user("eddie")
    workspace = make_workspace(owner=owner, editor=other, name=EVIL)
    workspace.description = EVIL
    workspace.save()
    chat = make_chat(owner, workspace, title=EVIL)
    question = make_message(chat, EVIL, author=other)
    answer = make_message(
        chat, EVIL, role=MessageRole.ASSISTANT, reply_to=question, status=MessageStatus.FAILED, error=EVIL
    )
    older = make_memory(EVIL, owner, workspace, category=EVIL[:50], tags=(EVIL[:40],), key=EVIL)
    memory = remember_message(question, by=owner, now=now).memory
    memory = edit_memory(memory, by=other, now=now, content=f"{EVIL} edited", category=EVIL[:50])
    type(memory).objects.filter(pk=memory.pk).update(may_replace=older, source_type=EVIL[:50])
    receipt = Receipt.objects.create(
        message_id=answer.public_id,
        workspace=workspace,
        user=owner,
        ranking="hybrid",
        threshold=0.3,
        degraded=EVIL,
    )
    receipt.items.create(
        memory=memory,
        position=1,
        score=0.5,
        content=EVIL,
        used=True,
        reason=EVIL[:100],
        score_parts={EVIL: 0.5},
    )
    ws, room, msg = workspace.public_id, chat.public_id, answer.public_id
    client = Client()
    client.force_login(owner)
    for path in (
        f"/workspaces/{ws}/",
        "/workspaces/",
        "/profile/",
        f"/workspaces/{ws}/settings/",
        f"/workspaces/{ws}/chats/list/?q={EVIL}",
        f"/chats/{room}/",
        f"/chats/{room}/row/",
        f"/chats/{room}/rename/",
        f"/chats/{room}/messages/{msg}/",
        f"/workspaces/{ws}/memories/",
        f"/workspaces/{ws}/memories/?part=list&q={EVIL[:8]}&category={EVIL}",
        f"/workspaces/{ws}/memories/{memory.public_id}/",
        f"/workspaces/{ws}/memories/{memory.public_id}/edit/?as={EVIL}",
        f"/workspaces/{ws}/memories/{memory.public_id}/history/",
        f"/receipts/{msg}/",
        f"/chats/{EVIL}/",
        f"/accounts/login/?next={EVIL}",
    ):
        page = client.get(path, follow=True).content.decode()
        assert Page(page).found == [], path
        assert "14{" not in page and "alert(2)</script" not in page, path
    delete_chat(chat, by=owner, now=now)
    for path, data in (
        (f"/workspaces/{ws}/settings/", {"name": EVIL * 9, "description": EVIL}),
        (f"/workspaces/{ws}/members/", {"username": EVIL, "role": EVIL}),
        (f"/workspaces/{ws}/delete/", {"confirm": EVIL}),
        (f"/workspaces/{ws}/memories/add/", {"new-content": "", "new-category": EVIL}),
        (f"/workspaces/{ws}/memories/{memory.public_id}/delete/?as={EVIL}", {}),
    ):
        response = client.post(path, data, headers={"HX-Request": "true"})
        assert Page(response.content.decode()).found == [], path
        assert "alert" not in str(response.headers)


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


@pytest.mark.parametrize("text", MARKDOWN)
def test_no_answer_becomes_more_than_prose(text: str) -> None:
    assert Page(render_markdown(text, Budget(MESSAGE_STEPS))).found == []
