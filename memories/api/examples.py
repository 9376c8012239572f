"""Examples for the OpenAPI schema."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

from memoryhub.errors import Sensitive

PERSON = {"id": "usr_8pRw5TzB2mYw1KsX9vLcHn3Q", "username": "maria"}
MEMORY: dict[str, Any] = {
    "id": "mem_7hQx2TzB8mYw1RsX9vLcHn4E",
    "content": "The project deadline is March 15, 2026",
    "summary": None,
    "category": "fact",
    "key": None,
    "tags": [],
    "importance": 0.5,
    "pinned": False,
    "expires_at": None,
    "scope": "workspace",
    "agent_id": None,
    "source_type": "user",
    "source_chat_id": None,
    "source_message_id": None,
    "workspace_id": "ws_4fKq2TzB8mYw1RsX9vLcHn3D",
    "author": PERSON,
    "may_replace": None,
    "searchable": True,
    "created_at": "2026-03-07T10:30:00.000000Z",
    "updated_at": "2026-03-07T10:30:00.000000Z",
    "last_accessed_at": None,
}
PAGE = {"items": [MEMORY], "next_cursor": "WyIyMDI2LTAzLTA3…", "has_more": True}
REVISIONS = {
    "items": [
        {
            "action": "edit",
            "by": PERSON,
            "before": {"content": "The project deadline is March 8, 2026"},
            "at": "2026-03-07T10:30:00.000000Z",
        }
    ],
    "next_cursor": None,
    "has_more": False,
}
RECALL = {
    "memories": [{**MEMORY, "score": 0.71, "score_parts": {"meaning": 0.6, "words": 0.11}}],
    "ranking": "hybrid",
    "degraded": False,
    "degraded_reason": None,
}
SEARCH = {
    "results": [
        {
            "type": "memory",
            "id": MEMORY["id"],
            "text": MEMORY["content"],
            "score": 0.71,
            "created_at": MEMORY["created_at"],
        }
    ]
}
RECEIPT = {
    "message_id": "msg_3tYv6TzB8mYw1RsX9vLcHn5F",
    "ranking": "hybrid",
    "threshold": 0.3,
    "degraded": False,
    "degraded_reason": None,
    "created_at": "2026-03-07T10:30:00.000000Z",
    "items": [
        {
            "memory_id": MEMORY["id"],
            "position": 1,
            "content": MEMORY["content"],
            "score": 0.71,
            "score_parts": {"meaning": 0.6, "words": 0.11},
            "used": True,
            "reason": "",
            "not_relevant": False,
        }
    ],
}
SENSITIVE = OpenApiExample(
    "A personal number",
    value={
        "error": {
            "code": "sensitive",
            "message": Sensitive.default_message,
            "fields": {"content": "looks like a card number"},
        }
    },
    response_only=True,
    status_codes=["422"],
)
SECRET = OpenApiExample(
    "A credential",
    value={
        "error": {
            "code": "secret",
            "message": "This looks like a password or key, so it was not stored. Remove it and try again.",
            "fields": {"content": "looks like a credential"},
        }
    },
    response_only=True,
    status_codes=["422"],
)
