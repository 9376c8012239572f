"""The tools of a named assistant: what it remembers itself is recalled in its chats alone."""

from __future__ import annotations

from typing import Annotated

from pydantic import AllowInfNan

from chat.tools.base import Arguments, ChatTool, Result, ToolCaller, within
from chat.tools.memory import RECALLED, Category, Limit, Query, Statement, recalled, store
from memories.recalling.recall import recall_for
from memoryhub.llm.base import Speaker


class OwnRecall(Arguments):
    query: Query
    k: Limit = RECALLED


class OwnSave(Arguments):
    text: Statement
    kind: Category | None = None
    importance: Annotated[float, *within(0, 1), AllowInfNan(False)] = 0.5


def ltm_recall(caller: ToolCaller, asked: OwnRecall) -> Result:
    found = recall_for(caller, asked.query, limit=asked.k, ranking="longterm")
    return recalled(found, reader=caller.person)


def ltm_remember(caller: ToolCaller, asked: OwnSave) -> Result:
    return store(
        caller,
        asked.text,
        category=asked.kind,
        importance=asked.importance,
        agent=caller.agent,
    )


LTM_RECALL = ChatTool(
    "ltm_recall",
    "Look up your own long-term memory.",
    OwnRecall,
    ltm_recall,
    Speaker.MEMORY,
    kept=frozenset({"query", "k"}),
)
LTM_REMEMBER = ChatTool(
    "ltm_remember",
    "Keep one fact for your later chats; importance 0 to 1. Never secrets.",
    OwnSave,
    ltm_remember,
    Speaker.MODEL,
    kept=frozenset({"kind", "importance"}),
)
