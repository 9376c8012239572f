"""Conversations: chats, their messages, and what is kept beside them."""

from chat.models.chats import (
    ABANDONED_AFTER,
    MESSAGE_LENGTH,
    TITLE_LENGTH,
    Chat,
    ChatQuerySet,
    Message,
    MessageQuerySet,
    MessageRole,
    MessageStatus,
    MessageWords,
)
from chat.models.imports import (
    Import,
    ImportKind,
    ImportQuerySet,
    ImportRow,
    ImportStatus,
)
from chat.models.marks import ChatMark, ChatTag
from chat.models.program_turn import PassingTurn
from chat.models.ratings import AnswerRating
from chat.models.readers import PersonalUse, was_reader
from chat.models.runs import (
    Run,
    RunEntry,
    RunEvent,
    RunMode,
    RunStatus,
    RunStep,
    RunStepStatus,
    RunTask,
)
from chat.models.saved_prompts import SavedPrompt
from chat.models.shares import ShareLink, ShareLinkQuerySet
from chat.models.sources import AnswerSource
from chat.models.steps import (
    Mode,
    Step,
    StepKind,
    StepOutcome,
)
from chat.models.summaries import SUMMARY_LENGTH, Compaction, ShortTermMemory
from chat.models.tool_calls import ToolCall, ToolOutcome, ToolStatus

__all__ = [
    "ABANDONED_AFTER",
    "MESSAGE_LENGTH",
    "SUMMARY_LENGTH",
    "TITLE_LENGTH",
    "AnswerRating",
    "AnswerSource",
    "Chat",
    "ChatMark",
    "ChatQuerySet",
    "ChatTag",
    "Compaction",
    "Import",
    "ImportKind",
    "ImportQuerySet",
    "ImportRow",
    "ImportStatus",
    "Message",
    "MessageQuerySet",
    "MessageRole",
    "MessageStatus",
    "MessageWords",
    "Mode",
    "PassingTurn",
    "PersonalUse",
    "Run",
    "RunEntry",
    "RunEvent",
    "RunMode",
    "RunStatus",
    "RunStep",
    "RunStepStatus",
    "RunTask",
    "SavedPrompt",
    "ShareLink",
    "ShareLinkQuerySet",
    "ShortTermMemory",
    "Step",
    "StepKind",
    "StepOutcome",
    "ToolCall",
    "ToolOutcome",
    "ToolStatus",
    "was_reader",
]
