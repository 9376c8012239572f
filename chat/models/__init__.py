"""Models of chats, messages, runs and imports."""

from chat.models.chats import (
    ABANDONED_AFTER,
    MESSAGE_LENGTH,
    SUMMARY_LENGTH,
    TITLE_LENGTH,
    Chat,
    ChatQuerySet,
    Compaction,
    Message,
    MessageQuerySet,
    MessageRole,
    MessageStatus,
    MessageWords,
    PersonalUse,
    ShortTermMemory,
    was_reader,
)
from chat.models.imports import (
    Import,
    ImportKind,
    ImportQuerySet,
    ImportRow,
    ImportStatus,
)
from chat.models.marks import AnswerRating, ChatMark, ChatTag
from chat.models.program_turns import PassingTurn
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
from chat.models.steps import (
    AnswerSource,
    Mode,
    Step,
    StepKind,
    StepOutcome,
)
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
