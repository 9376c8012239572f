"""Calls of both clients. Each method describes a request; ``running`` sends it.

``once`` is the Idempotency-Key of what is made or edited: give one of your own if your program may start again in
between, and send the same with it. Else each call has a new one, so that sending again makes nothing twice.
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
    """Lists are iterators over every page. What needs a person's session, not a key, says so."""

    @pages
    def workspaces(self) -> Call[t.Page[t.Workspace]]:
        """Yours. Needs a session."""
        return Call("workspaces_list", "GET", WORKSPACES, query=PAGE)

    @call
    def workspace(self, workspace_id: str) -> Call[t.Workspace]:
        """Needs a session."""
        return Call("workspaces_get", "GET", WORKSPACE, {"workspace_id": workspace_id})

    @pages
    def memories(self, workspace_id: str) -> Call[t.Page[t.Memory]]:
        """Newest first."""
        return Call("memories_list", "GET", MEMORIES, {"workspace_id": workspace_id}, PAGE)

    @call
    def save_memory(
        self, workspace_id: str, *, once: str | None = None, **memory: Unpack[t.NewMemory]
    ) -> Call[t.SavedMemory]:
        ids = {"workspace_id": workspace_id}
        return Call("memories_create", "POST", MEMORIES, ids, body={**memory}, once=made_once(once))

    @call
    def recall(self, workspace_id: str, query: str, **options: Unpack[t.RecallOptions]) -> Call[t.Recall]:
        """The memories that matter to these words, best first."""
        path, body = WORKSPACE + "/recall", {"query": query, **options}
        return Call(
            "memories_recall", "POST", path, {"workspace_id": workspace_id}, body=body, only_reads=True
        )

    @call
    def search(
        self, workspace_id: str, query: str, *, types: list[t.FoundType] | None = None, limit: int = 20
    ) -> Call[t.Results]:
        """Memories, documents, artifacts and messages in one ranked list."""
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
        """Its ETag as it is now, for ``seen``."""
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
        """``seen``: what ``memory_version`` said; ApiError ``stale`` if it was changed since."""
        ids, name = _memory(workspace_id, memory_id), made_once(once)
        return Call("memories_update", "PATCH", MEMORY, ids, body={**changes}, seen=seen, once=name)

    @call
    def delete_memory(self, workspace_id: str, memory_id: str, *, seen: str = "") -> Call[None]:
        """It can be restored. Needs a session."""
        return Call("memories_delete", "DELETE", MEMORY, _memory(workspace_id, memory_id), seen=seen)

    @call
    def restore_memory(self, workspace_id: str, memory_id: str) -> Call[t.RestoredMemory]:
        return Call("memories_restore", "POST", MEMORY + "/restore", _memory(workspace_id, memory_id))

    @call
    def forget_memory(self, workspace_id: str, memory_id: str) -> Call[t.Forgotten]:
        """For good. Needs a session and ``confirm_password``."""
        return Call("memories_forget", "POST", MEMORY + "/forget", _memory(workspace_id, memory_id))

    @pages
    def chats(self, workspace_id: str | None = None) -> Call[t.Page[t.Chat]]:
        """Needs a session, as all of chats."""
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
        """A turn: your message, and the answer once it is whole. A failed answer is one too: see its ``error``."""
        return _turn(chat_id, once, {"content": content, "stream": False, **options})

    @events
    def stream_message(
        self, chat_id: str, content: str, *, once: str | None = None, **options: Unpack[t.MessageOptions]
    ) -> Call[t.Event]:
        """The answer while it is written: ``token`` events and others, ``done`` or ``error`` at last."""
        return _turn(chat_id, once, {"content": content, "stream": True, **options})

    @pages
    def documents(self, workspace_id: str) -> Call[t.Page[t.Document]]:
        """Needs a session, as all of documents."""
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
        """``status`` says how far reading is."""
        ids = {"workspace_id": workspace_id, "document_id": document_id}
        return Call("documents_get", "GET", DOCUMENTS + "/{document_id}", ids)

    @call
    def delete_document(self, workspace_id: str, document_id: str) -> Call[None]:
        ids = {"workspace_id": workspace_id, "document_id": document_id}
        return Call("documents_delete", "DELETE", DOCUMENTS + "/{document_id}", ids)

    @pages
    def api_keys(self) -> Call[t.Page[t.Key]]:
        """Needs a session, as all of keys."""
        return Call("keys_list", "GET", KEYS, query=PAGE)

    @call
    def create_key(self, **key: Unpack[t.NewKey]) -> Call[t.MadeKey]:
        """Needs ``confirm_password``. The API takes no name for this request, so it is not sent again."""
        return Call("keys_create", "POST", KEYS, body={**key})

    @call
    def revoke_key(self, key_id: str) -> Call[None]:
        return Call("keys_revoke", "DELETE", KEYS + "/{key_id}", {"key_id": key_id})


def _memory(workspace_id: str, memory_id: str) -> dict[str, str]:
    return {"workspace_id": workspace_id, "memory_id": memory_id}


def _turn(chat_id: str, once: str | None, body: dict[str, object]) -> Call[Any]:
    return Call("messages_create", "POST", MESSAGES, {"chat_id": chat_id}, body=body, once=made_once(once))
