"""Models of chats, messages, runs and imports."""

from chat.models.answer_steps import AnswerSource, Mode, Step, StepKind, StepOutcome
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
    PassingTurn,
    PersonalUse,
    ShortTermMemory,
    was_reader,
)
from chat.models.imports import Import, ImportKind, ImportQuerySet, ImportRow, ImportStatus
from chat.models.personal_marks import AnswerRating, ChatMark, ChatTag
from chat.models.prompts import SavedPrompt
from chat.models.runs import Run, RunEntry, RunEvent, RunMode, RunStatus, RunStep, RunStepStatus, RunTask
from chat.models.share_links import ShareLink, ShareLinkQuerySet
from chat.models.tool_calls import ToolCall, ToolOutcome, ToolStatus
