"""Whose rows those of chats and runs are, for Postgres (``workspaces.isolation``)."""

from __future__ import annotations

from workspaces.isolation.rules import PERSON, WORKSPACES, Rule, of_person, of_workspace, with_row

_OF_CHAT, _OF_MESSAGE, _OF_RUN = (
    with_row("chat_chat", "chat_id"),
    with_row("chat_message", "message_id"),
    with_row("chat_run", "run_id"),
)
_READ_BY_ALL = "NOT is_private AND NOT is_temporary"
_OF_A_CHAT_OF_MINE = (
    f"EXISTS (SELECT 1 FROM chat_chat c WHERE c.id = {{row}}.chat_id AND c.created_by_id = {PERSON})"
)

RULES: dict[str, Rule] = {
    "chat.Chat": of_workspace(f"({_READ_BY_ALL}) OR created_by_id = {PERSON}", names="created_by_id"),
    "chat.Chat_personal_of": _OF_CHAT,
    "chat.Message": _OF_CHAT,
    "chat.MessageWords": _OF_MESSAGE,
    "chat.Step": _OF_MESSAGE,
    "chat.ToolCall": _OF_MESSAGE,
    "chat.AnswerSource": _OF_MESSAGE,
    "chat.AnswerRating": with_row("chat_message", "message_id", f"{{row}}.user_id = {PERSON}"),
    "chat.ShortTermMemory": _OF_CHAT,
    "chat.Compaction": _OF_CHAT,
    "chat.ShareLink": _OF_CHAT,
    "chat.ChatMark": of_person(),
    "chat.ChatTag": of_person(),
    "chat.Import": of_person(),
    "chat.ImportRow": with_row("chat_import", "of_id"),
    "chat.PassingTurn": of_person(),
    "chat.SavedPrompt": Rule(f"owner_id = {PERSON} OR workspace_id = ANY {WORKSPACES}"),
    "chat.Run": of_workspace(
        f"NOT is_private OR (chat_id IS NULL AND user_id = {PERSON}) OR {_OF_A_CHAT_OF_MINE}",
        names="user_id",
    ),
    "chat.RunTemplate": of_workspace(
        "chat_id IS NULL OR EXISTS (SELECT 1 FROM chat_chat c WHERE c.id = {row}.chat_id)"
    ),
    "chat.RunTask": _OF_RUN,
    "chat.RunStep": _OF_RUN,
    "chat.RunEntry": _OF_RUN,
    "chat.RunEvent": _OF_RUN,
}
