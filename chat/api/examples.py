"""Examples for the OpenAPI schema."""

from __future__ import annotations

from typing import Any

from memories.api.examples import PERSON, RECEIPT

CHAT: dict[str, Any] = {
    "id": "chat_6zNx2TzB8mYw1RsX9vLcHn2C",
    "workspace_id": "ws_4fKq2TzB8mYw1RsX9vLcHn3D",
    "title": "Deadlines",
    "agent_id": None,
    "connection_id": None,
    "memory_enabled": True,
    "is_private": False,
    "is_temporary": False,
    "created_by": PERSON,
    "created_at": "2026-03-07T10:30:00.000000Z",
    "updated_at": "2026-03-07T10:31:00.000000Z",
}
ONE_CHAT: dict[str, Any] = {**CHAT, "read_by_others": True, "use_personal_memories": False}
FOUND_CHAT: dict[str, Any] = {
    **CHAT,
    "match": {
        "message_id": "msg_9dLp2TzB8mYw1RsX9vLcHn1B",
        "text": "When is the deadline?",
        "highlights": [[12, 20]],
    },
}
MESSAGE: dict[str, Any] = {
    "id": "msg_9dLp2TzB8mYw1RsX9vLcHn1B",
    "role": "user",
    "content": "When is the deadline?",
    "status": "done",
    "author": PERSON,
    "reply_to": None,
    "model": "",
    "memory_enabled": True,
    "error": None,
    "created_at": "2026-03-07T10:31:00.000000Z",
    "finished_at": None,
    "superseded_by": None,
    "superseded_at": None,
    "receipt": None,
    "tool_calls": [],
    "mode": "chat",
    "steps": [],
}
STEP: dict[str, Any] = {
    "id": "step_8kTu2TzB8mYw1RsX9vLcHn6G",
    "kind": "check",
    "status": "done",
    "outcome": "agrees",
    "line": "Checked against 1 memory · nothing differs",
    "text": "",
    "findings": [
        {
            "quote": "Your project deadline is March 15, 2026.",
            "memory_id": "mem_2pWd2TzB8mYw1RsX9vLcHn4F",
            "agrees": True,
        }
    ],
    "memory_ids": ["mem_2pWd2TzB8mYw1RsX9vLcHn4F"],
    "started_at": "2026-03-07T10:31:02.000000Z",
    "finished_at": "2026-03-07T10:31:03.000000Z",
}
TOOL_CALL: dict[str, Any] = {
    "id": "call_7hQs2TzB8mYw1RsX9vLcHn5E",
    "name": "x_recall_memory",
    "arguments": {"query": "project deadline"},
    "status": "done",
    "outcome": "found",
    "count": 1,
    "memory_ids": ["mem_2pWd2TzB8mYw1RsX9vLcHn4F"],
    "started_at": "2026-03-07T10:31:01.000000Z",
    "finished_at": "2026-03-07T10:31:01.030000Z",
}
ANSWER: dict[str, Any] = {
    **MESSAGE,
    "id": RECEIPT["message_id"],
    "role": "assistant",
    "content": "Your project deadline is March 15, 2026.",
    "author": None,
    "reply_to": MESSAGE["id"],
    "model": "SmolLM2-135M-Instruct",
    "finished_at": "2026-03-07T10:31:02.000000Z",
    "receipt": RECEIPT,
    "tool_calls": [TOOL_CALL],
    "mode": "deep_think",
    "steps": [STEP],
}
TURN = {"message": MESSAGE, "answer": ANSWER}
EVENTS = (
    'event: message\ndata: {"message": {"id": "msg_9dLp…", …}, "answer": {"id": "msg_3tYv…", …}}\n\n'
    'event: tool\ndata: {"id": "call_7hQs…", "name": "x_recall_memory", "status": "running", …}\n\n'
    'event: tool\ndata: {"id": "call_7hQs…", "name": "x_recall_memory", "status": "done", "count": 1, …}\n\n'
    'event: token\ndata: {"text": "Your project "}\n\n'
    'event: token\ndata: {"text": "deadline is March 15, 2026."}\n\n'
    'event: receipt\ndata: {"message_id": "msg_3tYv…", "items": […], …}\n\n'
    'event: done\ndata: {"id": "msg_3tYv…", "content": "Your project deadline is March 15, 2026.", …}\n\n'
)
