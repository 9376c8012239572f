"""The tool by which the model keeps the running summary of its chat."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from chat.models import SUMMARY_LENGTH, ToolOutcome
from chat.prompting.short_term import TOOL_NAME, set_summary
from chat.tools.base import Arguments, ChatTool, Result, ToolCaller, ToolTrouble
from memories.judging.secret_filter import find_personal
from memories.writing.drafts import cut_at_word
from memoryhub.errors import Conflict, SecretRefused
from memoryhub.llm.base import Speaker


class Summary(Arguments):
    summary: Annotated[str, StringConstraints(min_length=1)]


def update(caller: ToolCaller, asked: Summary) -> Result:
    if find_personal(asked.summary):
        raise ToolTrouble("not stored", ToolOutcome.REFUSED)
    turn = caller.turn
    if turn is None:
        raise ToolTrouble("there is no chat whose summary could be kept")
    try:
        row = set_summary(
            turn.chat,
            cut_at_word(asked.summary, SUMMARY_LENGTH),
            by=caller.person,
            now=caller.now,
            answer=turn.answer,
        )
    except SecretRefused:
        raise ToolTrouble("not stored", ToolOutcome.REFUSED) from None
    except Conflict as error:
        raise ToolTrouble(error.message) from None
    return Result("Short-term memory updated.", ToolOutcome.NOTED, output=row.summary)


UPDATE_SHORT_TERM_MEMORY = ChatTool(
    TOOL_NAME,
    "Replace this chat's summary, which the user's other chats see.",
    Summary,
    update,
    Speaker.MODEL,
    is_aside=True,
)
