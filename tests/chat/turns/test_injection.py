"""A corpus of hostile memories stays inert: one line of data each in the prompt, text on the pages."""

import re
import unicodedata

from django.utils import timezone

from chat.prompting.context import recalled_block
from chat.prompting.prompt_text import escape
from memories.judging.extraction.with_language_model import render_conversation
from memories.models import Memory
from memories.recalling.ranked_search import Recalled
from tests.chat.hostile_memories import HOSTILE

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
