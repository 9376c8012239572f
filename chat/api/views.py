"""Chats and their messages, over REST."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_chat, get_message
from chat.answers.state import stop_answer
from chat.api import examples
from chat.api.serializers import (
    ChatBody,
    ChatChanges,
    EventJson,
    FoundChatJson,
    MatchJson,
    MessageBody,
    MessageJson,
    OneChatJson,
    RetryBody,
    TurnJson,
    chat_json,
    one_chat_json,
)
from chat.api.turns import load, messages_json, turn_once, turn_response
from chat.chats import actions
from chat.chats.personal import use_personal
from chat.chats.search import LONGEST, matches_in, matching
from chat.models import Chat, ChatQuerySet, Message
from chat.turns.begin import begin_turn
from chat.turns.retry import retry_answer
from memories.api.examples import RECEIPT
from memories.api.serializers import ReceiptJson
from memories.recalling.receipts import receipt_for
from memoryhub.errors import NotFound
from memoryhub.ids import PATTERN
from workspaces.access import default_workspace, get_workspace
from workspaces.agents.agents import choose_agent
from workspaces.connections.choice import choose_connection
from workspaces.event_streams import Place
from workspaces.models import Role, User, Workspace
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_example,
    page_of,
    request_example,
)
from workspaces.rest.idempotency import ONCE
from workspaces.rest.paging import PageQuery, ReadyList, paged
from workspaces.rest.views import ApiView

EVENTS = OpenApiResponse(
    response=EventJson,
    description="`stream: true` (the default): server-sent events (`text/event-stream`). `message` has the "
    "stored message and the empty answer; `token` a piece of `text`; `tool` how a call of the model stands, again "
    "when it changes, with a `text` for people; `step` the same of a step of deep thinking; `restart`: text, calls "
    "and steps begin anew; "
    "`receipt` what was recalled; `done` the whole answer; `error` a `code` and `message`. Ignore others.",
    examples=[OpenApiExample("Events", value=examples.EVENTS, media_type="text/event-stream")],
)
# fmt: off
_SHOWN = (
    "public_id", "title", "memory_enabled", "is_private", "is_temporary",
    "created_at", "active_at", "workspace__public_id", "agent__public_id", "created_by__public_id",
    "created_by__username", "connection__public_id", "connection__deleted_at",
)
# fmt: on
MESSAGE_PAGE = page_of(MessageJson, "Message")
TURN_ANSWERS: dict[Any, Any] = {(200, "text/event-stream"): EVENTS, 201: TurnJson}


class ChatQuery(PageQuery):
    workspace_id = serializers.CharField(required=False, help_text="Only this workspace's chats.")
    q = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=LONGEST,
        help_text="Only those with words that begin so, all in the title or all in one message.",
    )


def _listed(*, user: int, workspace: int | None = None) -> ChatQuerySet:
    """What a list has of a person's chats, those of one workspace or all: with what ``chat_json`` asks for."""
    chats = Chat.objects.visible_to(User(pk=user)).live().listed()
    if workspace is not None:
        chats = chats.filter(workspace=workspace)
    return chats.select_related("workspace", "created_by", "agent", "connection").only(*_SHOWN)


LISTED = ReadyList(_listed, user=int)
LISTED_HERE = ReadyList(_listed, user=int, workspace=int)


def workspace_or_404(user: User, workspace_id: str, *, need: Role = Role.VIEWER) -> Workspace:
    """For ids from a query or body, which no path converter has looked at."""
    if not PATTERN.fullmatch(workspace_id):
        raise NotFound("There is no such workspace, or it is not yours to see.")
    return get_workspace(user, workspace_id, need=need)


class ChatList(ApiView):
    @documented(
        "List chats",
        tag="chats",
        operation="chats_list",
        answers={200: page_of(FoundChatJson, "Chat")},
        query=ChatQuery,
        errors=[404],
        description="Those you may see, the one written in last first. Temporary chats are not listed. "
        "A chat that is written in while you page moves to the front. With `q` you get those found, and in `match` "
        "where it was said: the newest such message of each, without what was set aside by an edit.",
        examples=[page_example({**examples.CHAT, "match": None}), page_example(examples.FOUND_CHAT)],
    )
    def get(self, request: Request) -> Response:
        query, asked = self.query(ChatQuery), {"user": self.person.pk}
        places = Workspace.objects.visible_to(self.person)
        if "workspace_id" in query:
            workspace = workspace_or_404(self.person, query["workspace_id"])
            places, asked = places.filter(pk=workspace.pk), {**asked, "workspace": workspace.pk}
        q = query.get("q", "")
        found = matching(_listed(**asked), q, within=places.values_list("pk", flat=True)) if q else None
        ready = LISTED_HERE if "workspace" in asked else LISTED

        def shape(rows: list[Chat]) -> list[dict[str, Any]]:
            matches = matches_in(rows, q) if q else {}
            said = {pk: MatchJson(match).data for pk, match in matches.items()}
            return [{**chat_json(chat), "match": said.get(chat.pk)} for chat in rows]

        page = paged(
            request,
            ready.of(**asked) if found is None else found,
            keys=["active_at", "id"],
            descending=True,
            list_name=f"chats {query.get('workspace_id', '')} {q} of {self.person.public_id}",
            shape=shape,
        )
        return Response(page)

    @documented(
        "Begin a chat",
        tag="chats",
        operation="chats_create",
        answers={201: OneChatJson},
        headers=ONCE,
        body=ChatBody,
        errors=[404],
        writes=True,
        description="Without `workspace_id` it belongs to your own workspace.",
        examples=[
            request_example("A chat", {"title": "Deadlines", "memory_enabled": True}),
            answer_example("Begun", examples.ONE_CHAT, code=201),
        ],
    )
    def post(self, request: Request) -> Response:
        body = self.body(ChatBody)
        if "workspace_id" in body:
            workspace = workspace_or_404(self.person, body.pop("workspace_id"), need=Role.EDITOR)
        else:
            workspace = default_workspace(self.person)
        agent_id = body.pop("agent_id", None)
        agent = choose_agent(workspace, agent_id) if agent_id is not None else None
        connection_id = body.pop("connection_id", None)
        chosen = choose_connection(workspace, connection_id, by=self.person) if connection_id else None
        now = timezone.now()
        made = {"workspace": workspace, "agent": agent, "connection": chosen, **body}
        chat = self.once(
            lambda: actions.create_chat(by=self.person, now=now, **made),
            keep=lambda made: {"chat": made.public_id},
            again=lambda note: get_chat(self.person, note["chat"]),
        )
        return Response(one_chat_json(chat, self.person), status=status.HTTP_201_CREATED)


class ChatDetail(ApiView):
    @documented(
        "Look at a chat",
        tag="chats",
        operation="chats_get",
        answers={200: OneChatJson},
        errors=[404],
        examples=[answer_example("A chat", examples.ONE_CHAT)],
    )
    def get(self, request: Request, chat_id: str) -> Response:
        return Response(one_chat_json(get_chat(self.person, chat_id), self.person))

    @documented(
        "Change a chat",
        tag="chats",
        operation="chats_update",
        answers={200: OneChatJson},
        body=ChatChanges,
        errors=[404, 409],
        writes=True,
        description="What is left out stays. `is_private` is its creator's to change. `use_personal_memories` is each "
        "person's own: it says nothing of anybody else's, who do not learn of it, and can be taken back.",
        examples=[
            request_example("A new title", {"title": "Plans"}),
            answer_example("Changed", examples.ONE_CHAT),
        ],
    )
    def patch(self, request: Request, chat_id: str) -> Response:
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        changes = self.body(ChatChanges)
        with transaction.atomic():  # all of it or nothing
            if "title" in changes:
                actions.rename_chat(chat, title=changes["title"], by=self.person)
            if "agent_id" in changes:
                agent_id = changes["agent_id"]
                agent = choose_agent(chat.workspace, agent_id) if agent_id is not None else None
                actions.set_agent(chat, agent=agent, by=self.person)
            if "connection_id" in changes:
                actions.set_connection(chat, connection_id=changes["connection_id"], by=self.person)
            if "memory_enabled" in changes:
                actions.set_chat_memory(chat, enabled=changes["memory_enabled"], by=self.person)
            if "is_private" in changes:
                actions.set_private(chat, is_private=changes["is_private"], by=self.person)
            if "use_personal_memories" in changes:
                use_personal(chat, allowed=changes["use_personal_memories"], by=self.person)
        return Response(one_chat_json(get_chat(self.person, chat_id), self.person))

    @documented(
        "Delete a chat",
        tag="chats",
        operation="chats_delete",
        answers={204: None},
        errors=[404],
        writes=True,
        description="Its creator or an owner of the workspace. `restore` brings it back; its memories stay.",
    )
    def delete(self, request: Request, chat_id: str) -> Response:
        actions.delete_chat(
            get_chat(self.person, chat_id, need=Role.EDITOR), by=self.person, now=timezone.now()
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class ChatRestore(ApiView):
    @documented(
        "Restore a deleted chat",
        tag="chats",
        operation="chats_restore",
        answers={200: OneChatJson},
        errors=[404],
        writes=True,
        description="Its creator or an owner of the workspace.",
        examples=[answer_example("Restored", examples.ONE_CHAT)],
    )
    def post(self, request: Request, chat_id: str) -> Response:
        chat = get_chat(self.person, chat_id, need=Role.EDITOR, include_deleted=True)
        actions.restore_chat(chat, by=self.person, now=timezone.now())
        return Response(one_chat_json(get_chat(self.person, chat_id), self.person))


class MessageList(ApiView):
    @documented(
        "List the messages of a chat",
        tag="messages",
        operation="messages_list",
        answers={200: MESSAGE_PAGE},
        query=PageQuery,
        errors=[404],
        description="The conversation as it goes now, oldest first. An answer being written has the status `streaming` "
        "and its text so far.",
        examples=[page_example(examples.MESSAGE, examples.ANSWER)],
    )
    def get(self, request: Request, chat_id: str) -> Response:
        chat = get_chat(self.person, chat_id)
        page = paged(
            request,
            chat.messages.current().select_related("author", "reply_to"),
            keys=["id"],
            descending=False,
            list_name=f"messages of {chat.public_id}",
            shape=lambda rows: messages_json(rows, self.person),
        )
        return Response(page)

    @documented(
        "Say something",
        tag="messages",
        operation="messages_create",
        answers=TURN_ANSWERS,
        headers=ONCE,
        body=MessageBody,
        errors=[404, 409],
        writes=True,
        description="One turn. If you go away the answer is written all the same. An answer that failed has "
        "the status `failed` and says why. 409 while another answer is being written in this chat.",
        examples=[
            request_example("A question", {"content": "When is the deadline?", "stream": False}),
            answer_example("The turn", examples.TURN, code=201),
        ],
    )
    def post(self, request: Request, chat_id: str) -> Response | StreamingHttpResponse:
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        body = self.body(MessageBody)
        said = {name: body[name] for name in ("content", "memory_enabled", "mode") if name in body}
        return turn_once(
            self,
            lambda: begin_turn(chat, **said, by=self.person, now=timezone.now()),
            chat=chat,
            stream=body["stream"],
        )


class MessageView(ApiView):
    """One message, found inside its chat."""

    def message(self, chat_id: str, message_id: str, need: Role = Role.EDITOR) -> Message:
        return get_message(self.person, chat_id, message_id, need=need)[1]


class MessageStop(MessageView):
    @documented(
        "Stop an answer",
        tag="messages",
        operation="messages_stop",
        answers={200: MessageJson},
        errors=[404],
        writes=True,
        description="The text so far is kept. The answer may still say `streaming` for a moment. "
        "An answer that is finished stays as it is.",
        examples=[answer_example("The answer", {**examples.ANSWER, "status": "stopped"})],
    )
    def post(self, request: Request, chat_id: str, message_id: str) -> Response:
        answer = self.message(chat_id, message_id)
        stop_answer(answer, by=self.person, now=timezone.now())
        return Response(messages_json([load(answer)], self.person)[0])


class MessageRetry(MessageView):
    @documented(
        "Answer again",
        tag="messages",
        operation="messages_retry",
        answers=TURN_ANSWERS,
        body=RetryBody,
        errors=[404, 409],
        writes=True,
        description="An answer that failed is written anew, in its own place. Any other becomes an earlier version of "
        "the new one, which has an id of its own: `versions` has it, `restore` brings it back.",
        examples=[
            request_example("Wait for it", {"stream": False}),
            answer_example("The turn", examples.TURN, code=201),
        ],
    )
    def post(self, request: Request, chat_id: str, message_id: str) -> Response | StreamingHttpResponse:
        answer = self.message(chat_id, message_id)
        body = self.body(RetryBody)
        place = Place(self.person) if body["stream"] else None
        answer = load(retry_answer(answer, by=self.person, now=timezone.now()))
        assert answer.reply_to is not None, "an answer replies to a message"
        return turn_response(answer.reply_to, answer, self.person, place=place)


class MessageReceipt(MessageView):
    @documented(
        "What an answer recalled",
        tag="messages",
        operation="messages_receipt",
        answers={200: ReceiptJson},
        errors=[404],
        description="The memories it used and those it left out, with scores and reasons. Memories that were "
        "deleted since are not in it. 404 when nothing was recalled.",
        examples=[answer_example("A receipt", RECEIPT)],
    )
    def get(self, request: Request, chat_id: str, message_id: str) -> Response:
        receipt = receipt_for(self.message(chat_id, message_id, Role.VIEWER).public_id, self.person)
        if receipt is None:
            raise NotFound("Nothing was recalled for this message.")
        return Response(ReceiptJson(receipt).data)
