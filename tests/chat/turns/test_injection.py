"""A corpus of hostile memories stays inert: one line of data each in the prompt, text on the pages."""

from __future__ import annotations

import re
import unicodedata

import pytest
from django.test import Client
from django.utils import timezone

from chat.models import MessageRole
from chat.prompting.context import recalled_block
from chat.prompting.labels import escape
from memories.judging.extraction.candidates import render_conversation
from memories.models import Memory, Receipt
from memories.recalling.ranked_search import Recalled
from tests.chat.hostile_memories import HOSTILE
from tests.chat.views.test_xss import Page
from tests.factories import make_chat, make_memory, make_message, make_user
from workspaces.access import default_workspace

OPEN, CLOSE = "<recalled-memories>", "</recalled-memories>"
ITEM = re.compile(r"- \([^()]*, \d{4}-\d\d-\d\d\) ")
# Characters that look like angle brackets.
BRACKETS = "<>"
BRACKETS += "\uff1c\uff1e\ufe64\ufe65"
BRACKETS += "\u2039\u203a\u27e8\u27e9\u3008\u3009\u276e\u276f\u1438\u1433\u02c2\u02c3\u2329\u232a"


def memory_of(text: str, **fields: str) -> Memory:
    return Memory(content=text, created_at=timezone.now(), public_id="mem_" + "a" * 24, **fields)


def test_each_stays_one_line_of_data_before_the_model() -> None:
    for field in ["content", "category"]:
        for text in HOSTILE:
            fields = {"text": text} if field == "content" else {"text": "Harmless", "category": text[:50]}
            hostile, harmless = memory_of(**fields), memory_of("Olive likes tea")
            block = recalled_block([Recalled(each, 1.0, {}) for each in (hostile, harmless)])
            assert block.startswith(f"{OPEN}\n"), (text, field)
            assert block.endswith(f"\n{CLOSE}"), (text, field)
            inside = block[len(OPEN) : -len(CLOSE)]
            items = [line for line in inside.split("\n") if line.startswith("- (")]
            assert len(items) == 2, "no item more, none less"
            assert len(inside.splitlines()) == 4, (
                "the opening's end, the line that says it is data, and two items"
            )
            assert items[1].endswith("Olive likes tea"), (text, field)
            for item in items:
                assert not set(item) & set(BRACKETS), (text, field)
                assert not [sign for sign in item if is_unseen(sign)], (text, field)
            if field == "content":
                assert ITEM.match(items[0]), (text, field)


def is_unseen(sign: str) -> bool:
    """Return whether a character is invisible. Joiners and emoji selectors are allowed, since people write
    with them.
    """
    if sign in "\u200c\u200d\ufe0e\ufe0f":
        return False
    selects_a_variant = ord(sign) in range(0xFE00, 0xFE10) or ord(sign) in range(0xE0100, 0xE01F0)
    return unicodedata.category(sign) in {"Cf", "Cc"} or selects_a_variant


def test_escaping_keeps_what_people_write() -> None:
    assert escape("3 < 4 & 5 > 4") == "3 &lt; 4 &amp; 5 &gt; 4"
    for text in ("Zürich, naïve, 東京, مرحبا, हिन्दी, 👍🏽", "“quotes” — dashes… €5 ½ x² C# C++ a_b"):
        assert escape(text) == text


def test_each_stays_within_its_message_when_a_conversation_is_mined() -> None:
    for text in HOSTILE:
        rendered = render_conversation([("user", text), ("assistant", "Fine")])
        assert rendered.startswith("<conversation>\n"), text
        assert rendered.endswith("\n</conversation>"), text
        lines = rendered.split("\n")[1:-1]
        assert lines[-1] == "assistant: Fine", text
        assert all(line.startswith("user: ") for line in lines[:-1]), text
        assert not any("<" in line or ">" in line for line in lines), text


@pytest.mark.django_db
def test_none_of_them_acts_on_a_page() -> None:
    person = make_user("olive")
    workspace, chat = default_workspace(person), make_chat(person)
    answer = make_message(
        chat, "Noted.", MessageRole.ASSISTANT, reply_to=make_message(chat, "Remember all of this")
    )
    receipt = Receipt.objects.create(
        message_id=answer.public_id, workspace=workspace, user=person, ranking="hybrid", threshold=0.3
    )
    memories = []
    for position, text in enumerate(HOSTILE, start=1):
        memory = make_memory(text.strip() or "blank", person, category=text.strip()[:50] or None)
        receipt.items.create(
            memory=memory, position=position, score=0.5, content=text, used=position % 2 == 1
        )
        memories.append(memory)
    Memory.objects.filter(pk=memories[0].pk).update(may_replace=memories[1])
    client = Client()
    client.force_login(person)
    base = f"/workspaces/{workspace.public_id}/memories/"
    pages = [f"/chats/{chat.public_id}/", f"/receipts/{answer.public_id}/"]
    for memory in memories:
        pages += [f"{base}{memory.public_id}/{page}" for page in ("", "edit/", "history/")]
    before = ""
    while True:  # the whole panel
        html = client.get(base, {"before": before} if before else {}).content.decode()
        assert Page(html).found == []
        more = re.search(r"before=(mem_\w+)", html)
        if more is None:
            break
        before = more[1]
    for page in pages:
        response = client.get(page)
        assert response.status_code == 200, page
        assert Page(response.content.decode()).found == [], page
