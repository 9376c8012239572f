"""Stored text in prompts: it cannot leave its line, close its block or hide from a reviewer."""

from datetime import UTC, datetime

from chat.prompting.context import Conversation, Line, build_prompt
from chat.prompting.prompt_text import escape
from memoryhub.llm.base import Capabilities


def test_ordinary_text_of_every_script_stays_as_it_is() -> None:
    for text in (
        "Zoë likes crème brûlée",
        "我的截止日期是三月",
        "می\u200cخواهم",  # noqa: RUF001  (Persian)
        "👩\u200d🚀 is me",
        "עברית and more",
    ):
        assert escape(text) == text


def test_a_prompt_is_built_of_words_alone() -> None:
    """The prompt is built without a database, as endpoints that store no chats do."""
    capabilities = Capabilities(has_tools=False, can_extract=True, context_tokens=16_384, local=True)
    conversation = Conversation(
        question=Line("user", "And tomorrow?", 3),
        earlier=[Line("assistant", "Sunny.", 2), Line("user", "What is the weather?", 1)],
        summary="They talked about <weather>.",
    )
    built = build_prompt(conversation, [], capabilities, now=datetime(2026, 3, 10, tzinfo=UTC))
    said = [(message.role, message.content) for message in built.messages]
    assert said[2:] == [("user", "What is the weather?"), ("assistant", "Sunny."), ("user", "And tomorrow?")]
    assert said[1][1].endswith("They talked about &lt;weather&gt;.")
    assert (built.history, built.begins, built.seen_from) == ((1, 2), 2, None)
