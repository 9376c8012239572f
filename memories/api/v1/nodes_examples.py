"""Examples of memory nodes for the OpenAPI schema."""

from __future__ import annotations

from typing import Any

from memories.api.v1 import examples

NODE: dict[str, Any] = {
    "id": "node_3cPv8TzB2mYw6RsX9vLcHn5J",
    "name": "Maria",
    "kind": "person",
    "description": "",
    "workspaceId": "ws_4fKq2TzB8mYw1RsX9vLcHn3D",
    "memoryCount": 1,
    "relationCount": 1,
    "createdAt": "2026-03-07T10:30:00.000000Z",
    "updatedAt": "2026-03-07T10:30:00.000000Z",
}
OTHER: dict[str, Any] = {
    **NODE,
    "id": "node_9dRw1TzB7mYw2RsX4vLcHn8M",
    "name": "Apollo",
    "kind": "project",
}
RELATION = {
    "source": {"id": NODE["id"], "name": NODE["name"]},
    "relation": "works on",
    "target": {"id": OTHER["id"], "name": OTHER["name"]},
    "createdAt": "2026-03-07T10:30:00.000000Z",
}
DETAIL = {**NODE, "memories": [examples.MEMORY], "relations": [RELATION]}
NEIGHBOURS = {"nodes": [{**OTHER, "depth": 1}], "relations": [RELATION], "truncated": False}
