"""API calls of both clients. Each method describes a request, which ``running`` sends.

``once`` is the Idempotency-Key of a request that creates or edits something. By default each call gets a new key, so
that a retry does nothing twice. If your program may restart between the attempts, pass a key of your own, the same each
time.
"""

from __future__ import annotations

from typing import Any, Unpack

from memoryhub_client import types as t
from memoryhub_client.asking import Call, made_once
from memoryhub_client.running import call, events, pages

WORKSPACES = "/chat/api/workspaces"
WORKSPACE = WORKSPACES + "/{workspace_id}"
MEMORIES = WORKSPACE + "/memories"
MEMORY = MEMORIES + "/{memory_id}"
DOCUMENTS = WORKSPACE + "/documents"
CHATS, KEYS = "/chat/api/chats", "/chat/api/keys"
MESSAGES = "/chat/api/{chat_id}/messages"
PAGE = {"limit": 100}


class Calls:
    """Calls of both clients. Lists are iterators over all pages. Some calls need a session instead of an API key."""

    @pages
    def workspaces(self) -> Call[t.Page[t.Workspace]]:
        """List your workspaces. Needs a session."""
        return Call("workspaces_list", "GET", WORKSPACES, query=PAGE)

    @call
    def workspace(self, workspace_id: str) -> Call[t.Workspace]:
        """Return a workspace. Needs a session."""
        return Call("workspaces_get", "GET", WORKSPACE, {"workspace_id": workspace_id})

    @pages
    def memories(self, workspace_id: str) -> Call[t.Page[t.Memory]]:
        """List the memories of a workspace, newest first."""
        return Call("memories_list", "GET", MEMORIES, {"workspace_id": workspace_id}, PAGE)

    @call
    def save_memory(
        self, workspace_id: str, *, once: str | None = None, **memory: Unpack[t.NewMemory]
    ) -> Call[t.SavedMemory]:
        ids = {"workspace_id": workspace_id}
        return Call("memories_create", "POST", MEMORIES, ids, body={**memory}, once=made_once(once))

    @call
    def recall(self, workspace_id: str, query: str, **options: Unpack[t.RecallOptions]) -> Call[t.Recall]:
        """Return the memories that are relevant to a query, best first."""
        path, body = WORKSPACE + "/recall", {"query": query, **options}
        return Call(
            "memories_recall", "POST", path, {"workspace_id": workspace_id}, body=body, only_reads=True
        )

    @call
    def search(
        self, workspace_id: str, query: str, *, types: list[t.FoundType] | None = None, limit: int = 20
    ) -> Call[t.Results]:
        """Search memories, documents, artifacts and messages, and return one ranked list."""
        path, body = WORKSPACE + "/search", {"query": query, "limit": limit}
        body |= {"types": types} if types is not None else {}
        return Call(
            "workspaces_search", "POST", path, {"workspace_id": workspace_id}, body=body, only_reads=True
        )

    @call
    def memory(self, workspace_id: str, memory_id: str) -> Call[t.Memory]:
        return Call("memories_get", "GET", MEMORY, _memory(workspace_id, memory_id))

    @call
    def memory_version(self, workspace_id: str, memory_id: str) -> Call[str]:
        """Return the current ETag of a memory, for ``seen``."""
        return Call("memories_get", "GET", MEMORY, _memory(workspace_id, memory_id), header="ETag")

    @call
    def edit_memory(
        self,
        workspace_id: str,
        memory_id: str,
        *,
        seen: str = "",
        once: str | None = None,
        **changes: Unpack[t.MemoryChanges],
    ) -> Call[t.Memory]:
        """Change a memory. ``seen`` is the result of ``memory_version``.

        Raises ApiError ``stale`` if the memory has changed since that version.
        """
        ids, name = _memory(workspace_id, memory_id), made_once(once)
        return Call("memories_update", "PATCH", MEMORY, ids, body={**changes}, seen=seen, once=name)

    @call
    def delete_memory(self, workspace_id: str, memory_id: str, *, seen: str = "") -> Call[None]:
        """Delete a memory, which can be restored. Needs a session."""
        return Call("memories_delete", "DELETE", MEMORY, _memory(workspace_id, memory_id), seen=seen)

    @call
    def restore_memory(self, workspace_id: str, memory_id: str) -> Call[t.RestoredMemory]:
        return Call("memories_restore", "POST", MEMORY + "/restore", _memory(workspace_id, memory_id))

    @call
    def forget_memory(self, workspace_id: str, memory_id: str) -> Call[t.Forgotten]:
        """Forget a memory permanently. Needs a session and ``confirm_password``."""
        return Call("memories_forget", "POST", MEMORY + "/forget", _memory(workspace_id, memory_id))

    @pages
    def chats(self, workspace_id: str | None = None) -> Call[t.Page[t.Chat]]:
        """List chats. All calls for chats need a session."""
        query = PAGE | ({"workspace_id": workspace_id} if workspace_id else {})
        return Call("chats_list", "GET", CHATS, query=query)

    @call
    def create_chat(self, *, once: str | None = None, **chat: Unpack[t.NewChat]) -> Call[t.Chat]:
        return Call("chats_create", "POST", CHATS, body={**chat}, once=made_once(once))

    @pages
    def messages(self, chat_id: str) -> Call[t.Page[t.Message]]:
        return Call("messages_list", "GET", MESSAGES, {"chat_id": chat_id}, PAGE)

    @call
    def send_message(
        self, chat_id: str, content: str, *, once: str | None = None, **options: Unpack[t.MessageOptions]
    ) -> Call[t.Turn]:
        """Send a message and return it with the complete answer. A failed answer is returned with its ``error``."""
        return _turn(chat_id, once, {"content": content, "stream": False, **options})

    @events
    def stream_message(
        self, chat_id: str, content: str, *, once: str | None = None, **options: Unpack[t.MessageOptions]
    ) -> Call[t.Event]:
        """Send a message and stream the answer: ``token`` and other events, at last ``done`` or ``error``."""
        return _turn(chat_id, once, {"content": content, "stream": True, **options})

    @pages
    def documents(self, workspace_id: str) -> Call[t.Page[t.Document]]:
        """List documents. All calls for documents need a session."""
        return Call("documents_list", "GET", DOCUMENTS, {"workspace_id": workspace_id}, PAGE)

    @call
    def bring_text(
        self, workspace_id: str, title: str, text: str, *, once: str | None = None
    ) -> Call[t.BroughtDocument]:
        ids, body = {"workspace_id": workspace_id}, {"title": title, "text": text}
        return Call("documents_create", "POST", DOCUMENTS, ids, body=body, once=made_once(once))

    @call
    def bring_file(
        self, workspace_id: str, name: str, content: bytes, *, once: str | None = None
    ) -> Call[t.BroughtDocument]:
        ids, file = {"workspace_id": workspace_id}, (name, content)
        return Call("documents_create", "POST", DOCUMENTS, ids, file=file, once=made_once(once))

    @call
    def document(self, workspace_id: str, document_id: str) -> Call[t.Document]:
        """Return a document. Its ``status`` tells whether it has been read and indexed."""
        ids = {"workspace_id": workspace_id, "document_id": document_id}
        return Call("documents_get", "GET", DOCUMENTS + "/{document_id}", ids)

    @call
    def delete_document(self, workspace_id: str, document_id: str) -> Call[None]:
        ids = {"workspace_id": workspace_id, "document_id": document_id}
        return Call("documents_delete", "DELETE", DOCUMENTS + "/{document_id}", ids)

    @pages
    def api_keys(self) -> Call[t.Page[t.Key]]:
        """List API keys. All calls for keys need a session."""
        return Call("keys_list", "GET", KEYS, query=PAGE)

    @call
    def create_key(self, **key: Unpack[t.NewKey]) -> Call[t.MadeKey]:
        """Create an API key. Needs ``confirm_password``.

        The API accepts no Idempotency-Key here, so the call is retried only if the server cannot have processed it.
        """
        return Call("keys_create", "POST", KEYS, body={**key})

    @call
    def revoke_key(self, key_id: str) -> Call[None]:
        return Call("keys_revoke", "DELETE", KEYS + "/{key_id}", {"key_id": key_id})


def _memory(workspace_id: str, memory_id: str) -> dict[str, str]:
    return {"workspace_id": workspace_id, "memory_id": memory_id}


def _turn(chat_id: str, once: str | None, body: dict[str, object]) -> Call[Any]:
    return Call("messages_create", "POST", MESSAGES, {"chat_id": chat_id}, body=body, once=made_once(once))
