"""The memories of one chat, over REST."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_chat, get_message
from chat.api.serializers import ChatMemoriesJson, ChatMemoryBody, RememberedJson
from chat.chats.remembering import remember_message, remember_text
from memories.access import get_memory
from memories.api import examples
from memories.api.queries import described, memory_json, memory_response
from memories.api.saving import change_memory, delete_memory, save_once, saved_response
from memories.api.serializers import MemoryChanges, MemoryJson
from memories.models import Memory
from memories.writing.extracting import rerun
from memoryhub.errors import NotFound
from workspaces.models import Role
from workspaces.rest.docs import answer_example, documented, request_example
from workspaces.rest.etags import ETAG, IF_MATCH
from workspaces.rest.idempotency import ONCE
from workspaces.rest.views import ApiView


class ChatMemoryCreate(ApiView):
    @documented(
        "Remember a message or a text",
        tag="chat memories",
        operation="chat_memories_create",
        answers={201: RememberedJson, 200: RememberedJson},
        headers=[*ONCE, ETAG],
        body=ChatMemoryBody,
        errors=[404],
        writes=True,
        description="At least one of `messageId` and `content`. The memory belongs to the chat's workspace. "
        "200 with `duplicate: true` when it is known already; 422 with code `secret` for a credential, with "
        "code `sensitive` for a personal number that does not come with `confirm: true`. With "
        "`synthesize` the model rewrites the text into one statement before it is stored, and you wait for it; where "
        "the model is too small for that, or fails, the text is stored as it is and `synthesized` is false.",
        examples=[
            request_example("A message", {"messageId": "msg_3tYv6TzB8mYw1RsX9vLcHn5F"}),
            request_example("A text", {"content": "The project deadline is March 15, 2026"}),
            answer_example("Saved", {**examples.MEMORY, "duplicate": False, "synthesized": False}, code=201),
            answer_example("Known already", {**examples.MEMORY, "duplicate": True, "synthesized": False}),
            examples.SECRET,
            examples.SENSITIVE,
        ],
    )
    def post(self, request: Request, chat_id: str) -> Response:
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        body = self.body(ChatMemoryBody)
        who: dict[str, Any] = {"by": self.person, "now": timezone.now()}
        if "messageId" in body:
            _, message = get_message(self.person, chat_id, body.pop("messageId"), need=Role.EDITOR)
            saved = save_once(self, lambda: remember_message(message, **who, **body))
        else:
            saved = save_once(self, lambda: remember_text(chat, **who, **body))
        return saved_response(saved, synthesized=bool(saved.memory.source_details.get("synthesized")))


class ChatMemoryList(ApiView):
    @documented(
        "List the memories of a chat",
        tag="chat memories",
        operation="chat_memories_list",
        answers={200: ChatMemoriesJson},
        errors=[404],
        description="Those that came from this chat, newest first, all at once.",
        examples=[answer_example("All of them", {"memories": [examples.MEMORY]})],
    )
    def get(self, request: Request, chat_id: str) -> Response:
        chat = get_chat(self.person, chat_id)
        memories = Memory.objects.visible_to(self.person).live().filter(source_chat_id=chat.public_id)
        return Response({"memories": [memory_json(memory) for memory in described(memories)]})


class ChatMemoryView(ApiView):
    """One memory, found inside the chat it came from."""

    def memory(self, chat_id: str, memory_id: str) -> Memory:
        chat = get_chat(self.person, chat_id)
        memory = get_memory(self.person, memory_id, need=Role.EDITOR)
        if memory.source_chat_id != chat.public_id:
            raise NotFound("There is no such memory in this chat.")
        return memory


class ChatMemoryDetail(ChatMemoryView):
    @documented(
        "Change a memory of a chat",
        tag="chat memories",
        operation="chat_memories_update",
        answers={200: MemoryJson},
        headers=[ETAG, IF_MATCH],
        body=MemoryChanges,
        errors=[404, 409],
        writes=True,
        description="What is left out stays. New content is embedded anew. 409 when the key is taken, or code `stale`.",
        examples=[
            request_example("New content", {"content": "The project deadline is April 1, 2026"}),
            answer_example("Changed", examples.MEMORY),
            examples.SECRET,
            examples.SENSITIVE,
        ],
    )
    def patch(self, request: Request, chat_id: str, memory_id: str) -> Response:
        return change_memory(self, self.memory(chat_id, memory_id))

    @documented(
        "Delete a memory of a chat",
        tag="chat memories",
        operation="chat_memories_delete",
        answers={204: None},
        headers=[IF_MATCH],
        errors=[404],
        writes=True,
        description="Gone from every list, count and recall at once; the workspace's `restore` undoes it.",
    )
    def delete(self, request: Request, chat_id: str, memory_id: str) -> Response:
        return delete_memory(self, self.memory(chat_id, memory_id))


class RerunExtraction(ChatMemoryView):
    @documented(
        "Run the extraction of a memory again",
        tag="chat memories",
        operation="chat_memories_rerun_extraction",
        answers={202: MemoryJson},
        headers=[ETAG],
        errors=[404, 409],
        writes=True,
        description="Makes the summary, and content that was synthesised, anew from the source message. "
        "Runs in the background: the answer is the memory as it is now. 409 when it has no source message.",
        examples=[answer_example("Under way", examples.MEMORY, code=202)],
    )
    def post(self, request: Request, chat_id: str, memory_id: str) -> Response:
        memory = self.memory(chat_id, memory_id)
        rerun(memory, by=self.person, now=timezone.now())
        return memory_response(memory, status=status.HTTP_202_ACCEPTED)
