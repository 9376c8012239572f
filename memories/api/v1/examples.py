"""Examples for the OpenAPI schema."""

from __future__ import annotations

from typing import Any

MEMORY: dict[str, Any] = {
    "id": "mem_7hQx2TzB8mYw1RsX9vLcHn4E",
    "key": "deadline",
    "value": "The project deadline is March 15, 2026",
    "summary": None,
    "category": "fact",
    "tags": ["project"],
    "importance": 7,
    "pinned": False,
    "expiresAt": None,
    "source": "manual",
    "sources": [{"type": "message", "id": "msg_5rTy2TzB8mYw1RsX9vLcHn6F"}],
    "scope": "project",
    "agentId": None,
    "workspaceId": "ws_4fKq2TzB8mYw1RsX9vLcHn3D",
    "createdAt": "2026-03-07T10:30:00.000000Z",
    "updatedAt": "2026-03-07T10:30:00.000000Z",
}
PAGE = {"items": [MEMORY], "next_cursor": "WyIyMDI2LTAzLTA3…", "has_more": True}
RECALL = {"memories": [{**MEMORY, "score": 0.3}]}
DELETED = {"deleted": ["mem_7hQx2TzB8mYw1RsX9vLcHn4E"], "missing": ["mem_2bNw8RzB5mYw1RsX9vLcHn7K"]}
