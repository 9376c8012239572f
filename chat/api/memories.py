"""REST endpoints of the memories and the running summary of one chat."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_chat, get_message
from chat.api.serializers import ChatMemoriesJson, ChatMemoryBody, ProposalJson, RememberedJson
from chat.models import SUMMARY_LENGTH, ShortTermMemory
from chat.prompting.short_term_memory import live_memory, set_summary
from chat.turns.remember_this import proposal_for, remember_message, remember_text
from memories.access import get_memory
from memories.api.memory_requests import (
    change_memory,
    delete_memory,
    described,
    memory_response,
    save_once,
    saved_response,
)
from memories.api.serializers import MemoryJson, MemoryUpdate
from memories.models import Memory
from memories.writing.extraction_jobs import rerun
from memoryhub.errors import NotFound
from workspaces.api.base import ETAG, IF_MATCH, ApiView
from workspaces.api.fields import Body, Moment, Text
from workspaces.api.idempotency import ONCE
from workspaces.api.schema import documented_under
from workspaces.api.serializers import PersonJson
from workspaces.models import Role

documented = documented_under("chat memories")


class ChatMemoryCreate(ApiView):
    @documented(
        "chat_memories_create",
        {201: RememberedJson, 200: RememberedJson},
        body=ChatMemoryBody,
        headers=[*ONCE, ETAG],
    )
    def post(self, request: Request, chat_id: str) -> Response:
        """Remember a message or a text.

        Send `messageId`, `content` or both. The memory belongs to the chat's workspace. Returns 200 with `duplicate:
        true` if it is already known. Returns 422 with code `secret` for a credential, with code `sensitive` for a
        personal number sent without `confirm: true`, and for a message with nothing to remember ("OK.").

        If a message contains a statement and a question, only the statement is saved. A message with only a question is
        saved unchanged, and `proposal` suggests a better `content`. With `synthesize`, the request waits while the
        model rewrites the text as one statement. If the model is too small for that, or fails, the text is saved
        unchanged and `synthesized` is false.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        body = self.body(ChatMemoryBody)
        who: dict[str, Any] = {"by": self.person, "now": timezone.now()}
        if "messageId" in body:
            _, message = get_message(self.person, chat_id, body.pop("messageId"), need=Role.EDITOR)
            saved = save_once(self, lambda: remember_message(message, **who, **body))
        else:
            saved = save_once(self, lambda: remember_text(chat, **who, **body))
        return saved_response(saved, synthesized=bool(saved.memory.source_details.get("synthesized")))


class MessageProposal(ApiView):
    @documented("chat_memories_propose", ProposalJson)
    def post(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Propose a statement to remember.

        For a message that is not a statement itself, such as a question or an answer. Edit the proposal and send it as
        `content`. Nothing is stored. A model that is large enough writes the proposal, and the request waits for it.
        """
        _, message = get_message(self.person, chat_id, message_id, need=Role.EDITOR)
        return Response(ProposalJson(proposal_for(message, by=self.person)).data)


class ChatMemoryList(ApiView):
    @documented("chat_memories_list", ChatMemoriesJson)
    def get(self, request: Request, chat_id: str) -> Response:
        """List the memories of a chat.

        All memories that came from this chat, newest first, without pages.
        """
        chat = get_chat(self.person, chat_id)
        memories = Memory.objects.visible_to(self.person).live().filter(source_chat_id=chat.public_id)
        return Response({"memories": MemoryJson(described(memories), many=True).data})


class ChatMemoryView(ApiView):
    """Base of the views of one memory in a chat. A memory that did not come from the chat in the URL is not found."""

    def memory(self, chat_id: str, memory_id: str) -> Memory:
        chat = get_chat(self.person, chat_id)
        memory = get_memory(self.person, memory_id, need=Role.EDITOR)
        if memory.source_chat_id != chat.public_id:
            raise NotFound(_("There is no such memory in this chat."))
        return memory


class ChatMemoryDetail(ChatMemoryView):
    @documented("chat_memories_update", MemoryJson, body=MemoryUpdate, headers=[*ONCE, ETAG, IF_MATCH])
    def patch(self, request: Request, chat_id: str, memory_id: str) -> Response:
        """Change a memory of a chat.

        Fields you leave out stay as they are. New content is embedded again. 409 if the key is taken, or with code
        `stale` if the memory has changed since the `ETag` that you sent.
        """
        return change_memory(self, self.memory(chat_id, memory_id))

    @documented("chat_memories_delete", headers=[IF_MATCH])
    def delete(self, request: Request, chat_id: str, memory_id: str) -> Response:
        """Delete a memory of a chat.

        It disappears from every list, count and recall at once; `restore` in the workspace brings it back.
        """
        return delete_memory(self, self.memory(chat_id, memory_id))


class RerunExtraction(ChatMemoryView):
    @documented("chat_memories_rerun_extraction", {202: MemoryJson}, headers=[ETAG], errors=[409])
    def post(self, request: Request, chat_id: str, memory_id: str) -> Response:
        """Run the extraction of a memory again.

        Writes the summary again from the source message, and the content if the model wrote it. Runs in the background,
        so the response has the memory as it was. 409 if it has no source message.
        """
        memory = self.memory(chat_id, memory_id)
        rerun(memory, by=self.person, now=timezone.now())
        return memory_response(memory, status=status.HTTP_202_ACCEPTED)


of_chats = documented_under("chats")


class ShortTermJson(serializers.Serializer[Any]):
    example = {"summary": "Plans a walk in the hills on May 1 with Anna; the train is still open."}
    summary = serializers.CharField(help_text="Empty: there is none, or it has expired.")
    summarised_by = PersonJson(allow_null=True, help_text="Who wrote it; null: the model, or nobody.")
    summarised_at = Moment(allow_null=True)
    expires_at = Moment(allow_null=True, help_text="When it is over; every turn with memory on puts it off.")


class ShortTermChanges(Body):
    example = {"summary": "Plans a walk in the hills on May 1 with Anna; the train is still open."}
    summary = Text(max_length=SUMMARY_LENGTH, allow_blank=True, help_text="Empty: takes it away.")


class ShortTermView(ApiView):
    @of_chats("short_term_get", ShortTermJson)
    def get(self, request: Request, chat_id: str) -> Response:
        """Get the running summary of a chat.

        The current topic of the chat. A model that can call tools keeps it up to date. Prompts of other recent chats
        can include it.
        """
        memory = live_memory(get_chat(self.person, chat_id), self.person, now=timezone.now())
        return Response(ShortTermJson(memory or ShortTermMemory()).data)

    @of_chats("short_term_update", ShortTermJson, body=ShortTermChanges, errors=[409])
    def patch(self, request: Request, chat_id: str) -> Response:
        """Replace the running summary of a chat.

        409 in a temporary chat, which has no summary.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        body = self.body(ShortTermChanges)
        row = set_summary(chat, body["summary"], by=self.person, now=timezone.now())
        return Response(ShortTermJson(row).data)
