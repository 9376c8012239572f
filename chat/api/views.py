"""REST endpoints of chats and their messages, with a user's own ratings and tags."""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_chat, get_message
from chat.api.serializers import (
    ChatBody,
    ChatChanges,
    ChatJson,
    EditBody,
    EventJson,
    FoundChatJson,
    MarkBody,
    MatchJson,
    MessageBody,
    MessageJson,
    OneChatJson,
    RetryBody,
    TurnJson,
    one_chat_json,
)
from chat.api.turn_responses import load, messages_json, turn_once, turn_response
from chat.chats import message_search, services, tags_and_pins
from chat.chats.personal_memories import use_personal
from chat.chats.services import forget_chat, ratings_of, remove_rating, require_own, set_rating
from chat.live_answers import stop_answer
from chat.models import AnswerRating, Chat, ChatMark, ChatQuerySet, Message
from chat.models.personal_marks import COMMENT_LENGTH, TAG_LENGTH, Rating, RatingReason
from chat.turns.services import begin_turn, continue_answer, edit_message, restore_version, retry_answer
from memories.api.forgetting import ReportJson, report_json
from memories.api.serializers import ReceiptJson
from memories.recalling.recall import receipt_for
from memoryhub.errors import NotFound
from workspaces.access import default_workspace, get_workspace, named_workspace
from workspaces.actions.workspaces import choose_agent
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Choice, Flag, Moment, Text
from workspaces.api.idempotency import ONCE
from workspaces.api.paging import PageQuery, PreparedList
from workspaces.api.schema import documented_under, page_of
from workspaces.model_choice import choose_connection
from workspaces.models import Role, User, Workspace
from workspaces.views.event_streams import StreamSlot

of_chats = documented_under("chats")
of_messages = documented_under("messages")

EVENTS = OpenApiResponse(
    response=EventJson,
    description="`stream: true` (the default): server-sent events (`text/event-stream`). `message` has the "
    "stored message and the empty answer; `token` a piece of `text`; `tool` how a call of the model stands, again "
    "when it changes, with a `text` for people; `step` the same of a step of deep thinking; `restart`: text, calls "
    "and steps begin anew; `receipt` what was recalled; `done` the whole answer; `error` a `code` and `message`. "
    "Ignore others.",
    examples=[OpenApiExample("Events", value='event: token\ndata: {"text": "Your project "}\n\n')],
)
# fmt: off
_SHOWN = (
    "public_id", "title", "memory_enabled", "is_private", "is_temporary",
    "created_at", "active_at", "workspace__public_id", "agent__public_id", "created_by__public_id",
    "created_by__username", "connection__public_id", "connection__deleted_at", "is_imported",
)
# fmt: on
NARROWING = ("workspace_id", "mark", "tag", "q")  # a cursor is valid only for a list with the same filters
MESSAGE_PAGE = page_of(MessageJson, "Message")
TURN_ANSWERS: dict[Any, Any] = {(200, "text/event-stream"): EVENTS, 201: TurnJson}


class ChatQuery(PageQuery):
    workspace_id = serializers.CharField(required=False, help_text="Only this workspace's chats.")
    mark = serializers.ChoiceField(
        ChatMark.Kind.choices, required=False, help_text="Only those that you have pinned, or archived."
    )
    tag = serializers.CharField(
        required=False, max_length=TAG_LENGTH, help_text="Only those to which you have given this tag."
    )
    q = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=message_search.LONGEST,
        help_text="Only those with words that begin so, all in the title or all in one message.",
    )


def _listed(*, user: int, workspace: int | None = None) -> ChatQuerySet:
    """Return a user's list of chats, in one workspace or all, with the fields that ``ChatJson`` reads."""
    chats = Chat.objects.visible_to(User(pk=user)).live().listed()
    if workspace is not None:
        chats = chats.filter(workspace=workspace)
    return chats.select_related("workspace", "created_by", "agent", "connection").only(*_SHOWN)


LISTED = PreparedList(_listed, user=int)
LISTED_HERE = PreparedList(_listed, user=int, workspace=int)


class ChatList(ApiView):
    @of_chats("chats_list", page_of(FoundChatJson), query=ChatQuery)
    def get(self, request: Request) -> Response:
        """List chats.

        Chats you may see, most recently active first, without temporary ones. While you page, a chat that becomes
        active moves to the front. With `q`, only matching chats are listed; `match` has the newest matching message of
        each. Messages that an edit replaced are not searched.
        """
        query, params = self.query(ChatQuery), {"user": self.person.pk}
        places = Workspace.objects.visible_to(self.person)
        if "workspace_id" in query:
            workspace = named_workspace(self.person, query["workspace_id"])
            places, params = places.filter(pk=workspace.pk), {**params, "workspace": workspace.pk}
        q = query.get("q", "")
        chats = _listed(**params) if q or "mark" in query or "tag" in query else None
        if chats is not None and "mark" in query:
            chats = tags_and_pins.marked(chats, query["mark"], by=self.person)
        if chats is not None and "tag" in query:
            chats = tags_and_pins.tagged(chats, query["tag"], by=self.person)
        if chats is not None and q:
            chats = message_search.matching(
                chats, q, reader=self.person, within=places.values_list("pk", flat=True)
            )
        ready = LISTED_HERE if "workspace" in params else LISTED

        def shape(rows: list[Chat]) -> list[dict[str, Any]]:
            matches = message_search.matches_in(rows, q, reader=self.person) if q else {}
            matches_json = {pk: MatchJson(match).data for pk, match in matches.items()}
            shown = ChatJson(rows, many=True).data
            return [
                {**each, "match": matches_json.get(chat.pk)} for each, chat in zip(shown, rows, strict=True)
            ]

        return self.page(
            ready.of(**params) if chats is None else chats,
            keys=["active_at", "id"],
            descending=True,
            list_name=f"chats {[query.get(name, '') for name in NARROWING]} of {self.person.public_id}",
            shape=shape,
        )

    @of_chats("chats_create", {201: OneChatJson}, body=ChatBody, headers=ONCE)
    def post(self, request: Request) -> Response:
        """Create a chat.

        Without `workspace_id` the chat belongs to your own workspace.
        """
        body = self.body(ChatBody)
        if "workspace_id" in body:
            workspace = named_workspace(self.person, body.pop("workspace_id"), need=Role.EDITOR)
        else:
            workspace = default_workspace(self.person)
        agent_id = body.pop("agent_id", None)
        agent = choose_agent(workspace, agent_id) if agent_id is not None else None
        connection_id = body.pop("connection_id", None)
        chosen = choose_connection(workspace, connection_id, by=self.person) if connection_id else None
        now = timezone.now()
        fields = {"workspace": workspace, "agent": agent, "connection": chosen, **body}
        chat = self.make_once(lambda: services.create_chat(by=self.person, now=now, **fields), get_chat)
        return Response(one_chat_json(chat, self.person), status=status.HTTP_201_CREATED)


class ChatDetail(ApiView):
    @of_chats("chats_get", OneChatJson)
    def get(self, request: Request, chat_id: str) -> Response:
        """Get a chat."""
        return Response(one_chat_json(get_chat(self.person, chat_id), self.person))

    @of_chats("chats_update", OneChatJson, body=ChatChanges, errors=[409])
    def patch(self, request: Request, chat_id: str) -> Response:
        """Change a chat.

        Fields you leave out stay unchanged. Only the chat's creator can change `is_private`. `use_personal_memories` is
        your own setting: others neither see it nor are affected by it.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        changes = self.body(ChatChanges)
        with transaction.atomic():  # apply all changes or none
            if "title" in changes:
                services.rename_chat(chat, title=changes["title"])
            if "agent_id" in changes:
                agent_id = changes["agent_id"]
                agent = choose_agent(chat.workspace, agent_id) if agent_id is not None else None
                services.set_agent(chat, agent=agent)
            if "connection_id" in changes:
                services.set_connection(chat, connection_id=changes["connection_id"], by=self.person)
            if "memory_enabled" in changes:
                services.set_chat_memory(chat, enabled=changes["memory_enabled"])
            if "is_private" in changes:
                is_private = changes["is_private"]
                services.set_private(chat, is_private=is_private, by=self.person, now=timezone.now())
            if "use_personal_memories" in changes:
                use_personal(chat, allowed=changes["use_personal_memories"], by=self.person)
        return Response(one_chat_json(get_chat(self.person, chat_id), self.person))

    @of_chats("chats_delete")
    def delete(self, request: Request, chat_id: str) -> Response:
        """Delete a chat.

        Its creator, if still an editor, or an owner of the workspace may do this. `restore` brings it back; its
        memories stay.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        services.delete_chat(chat, by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class ChatMarkView(ApiView):
    @of_chats("chats_mark", OneChatJson, body=MarkBody)
    def put(self, request: Request, chat_id: str) -> Response:
        """Pin or archive a chat.

        Affects only your own list. Any role may do this. Pinned chats come first; archived chats are not listed but
        found by search.
        """
        chat = get_chat(self.person, chat_id)
        tags_and_pins.set_mark(chat, self.body(MarkBody)["mark"], by=self.person)
        return Response(one_chat_json(chat, self.person))


class ChatRestore(ApiView):
    @of_chats("chats_restore", OneChatJson)
    def post(self, request: Request, chat_id: str) -> Response:
        """Restore a deleted chat.

        Its creator, if still an editor, or an owner of the workspace may do this.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR, include_deleted=True)
        services.restore_chat(chat, by=self.person, now=timezone.now())
        return Response(one_chat_json(get_chat(self.person, chat_id), self.person))


class MessageList(ApiView):
    @of_messages("messages_list", MESSAGE_PAGE)
    def get(self, request: Request, chat_id: str) -> Response:
        """List the messages of a chat.

        The current conversation, oldest first. An answer that is being written has the status `streaming` and the text
        so far.
        """
        chat = get_chat(self.person, chat_id)
        return self.page(
            chat.messages.readable_by(self.person)
            .current()
            .select_related("author", "imported_by", "reply_to"),
            keys=["id"],
            list_name=f"messages of {chat.public_id}",
            shape=lambda rows: messages_json(rows, self.person),
        )

    @of_messages("messages_create", TURN_ANSWERS, body=MessageBody, headers=ONCE)
    def post(self, request: Request, chat_id: str) -> Response | StreamingHttpResponse:
        """Send a message.

        Starts a turn. The answer is written even if you disconnect. An answer that failed has the status `failed` and
        an `error`. 409 while another answer is being written in this chat.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        body = self.body(MessageBody)
        stream = body.pop("stream")
        return turn_once(
            self,
            lambda: begin_turn(chat, **body, by=self.person, now=timezone.now()),
            chat=chat,
            stream=stream,
        )


class MessageView(ApiView):
    """Base of the views of one message, which the URL names by chat id and message id."""

    def message(self, chat_id: str, message_id: str, need: Role = Role.EDITOR) -> Message:
        return get_message(self.person, chat_id, message_id, need=need)[1]

    def write_again(
        self, chat_id: str, message_id: str, act: Callable[..., Message]
    ) -> Response | StreamingHttpResponse:
        """Respond with the turn of an answer that ``act`` starts again."""
        answer = self.message(chat_id, message_id)
        slot = StreamSlot(self.person) if self.body(RetryBody)["stream"] else None
        return turn_response(load(act(answer, by=self.person, now=timezone.now())), self.person, slot=slot)


class MessageStop(MessageView):
    @of_messages("messages_stop", MessageJson)
    def post(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Stop an answer.

        The text so far is stored. The status may stay `streaming` for a moment. A finished answer does not change.
        """
        answer = self.message(chat_id, message_id)
        stop_answer(answer, now=timezone.now())
        return Response(messages_json([load(answer)], self.person)[0])


class MessageRetry(MessageView):
    @of_messages("messages_retry", TURN_ANSWERS, body=RetryBody, errors=[409])
    def post(self, request: Request, chat_id: str, message_id: str) -> Response | StreamingHttpResponse:
        """Answer again.

        A failed answer is replaced under the same id. Any other answer becomes an earlier version of a new one with its
        own id. `versions` lists it, `restore` makes it current again.
        """
        return self.write_again(chat_id, message_id, retry_answer)


class MessageContinue(MessageView):
    @of_messages("messages_continue", TURN_ANSWERS, body=RetryBody, errors=[409])
    def post(self, request: Request, chat_id: str, message_id: str) -> Response | StreamingHttpResponse:
        """Continue an answer that reached the length limit of one reply.

        Only for the chat's last answer, and only if its error code is `length`. The text is added to the same message.
        """
        return self.write_again(chat_id, message_id, continue_answer)


class MessageReceipt(MessageView):
    @of_messages("messages_receipt", ReceiptJson)
    def get(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Get the receipt of an answer.

        Lists the memories that the answer used and those it left out, with scores and reasons. Memories deleted since
        are not listed. 404 if nothing was recalled.
        """
        receipt = receipt_for(self.message(chat_id, message_id, Role.VIEWER).public_id, self.person)
        if receipt is None:
            raise NotFound(_("Nothing was recalled for this message."))
        return Response(ReceiptJson(receipt).data)


class MessageEdit(MessageView):
    @of_messages("messages_edit", TURN_ANSWERS, body=EditBody, headers=ONCE)
    def post(self, request: Request, chat_id: str, message_id: str) -> Response | StreamingHttpResponse:
        """Edit a message and send it again.

        Replaces a message that you wrote and begins a new turn. The old message and all messages after it become an
        earlier version of the new one. Memories that came from them stay.
        """
        chat, message = get_message(self.person, chat_id, message_id, need=Role.EDITOR)
        body = self.body(EditBody)
        stream = body.pop("stream")
        return turn_once(
            self,
            lambda: edit_message(message, **body, by=self.person, now=timezone.now()),
            chat=chat,
            stream=stream,
        )


class MessageVersions(MessageView):
    @of_messages("messages_versions", MESSAGE_PAGE)
    def get(self, request: Request, chat_id: str, message_id: str) -> Response:
        """List the earlier versions of a message.

        Oldest first. A version of a question includes all messages that followed it at the time. A version of an answer
        is only that answer. Messages of the same version have the same `superseded_at`.
        """
        message = self.message(chat_id, message_id, Role.VIEWER)
        return self.page(
            message.supersedes.readable_by(self.person).select_related(
                "author", "imported_by", "reply_to", "superseded_by"
            ),
            keys=["id"],
            list_name=f"versions of {message.public_id}",
            shape=lambda rows: messages_json(rows, self.person),
        )


class MessageRestore(MessageView):
    @of_messages("messages_restore", MessageJson, errors=[409])
    def post(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Restore an earlier version.

        The id may be that of any message of the version. Returns the version's first message. The current version
        becomes an earlier version. 409 while an answer is being written, if the conversation continued from a later
        answer, and for a version inside another version, which must be restored first.
        """
        message = self.message(chat_id, message_id)
        first = restore_version(message, by=self.person, now=timezone.now())
        return Response(messages_json([load(first)], self.person)[0])


class ForgetChatBody(Body):
    example = {"memories": True}
    memories = Flag(default=False, help_text="true: also those that came from it and are yours to forget.")


class ChatForget(ApiView):
    @of_chats("chats_forget", ReportJson, body=ForgetChatBody, fresh=True)
    def post(self, request: Request, chat_id: str) -> Response:
        """Permanently delete a chat.

        Its creator or an owner of the workspace may do this, even after the chat was deleted. Removes its messages and
        all data derived from them. Its memories stay, unless you ask to forget them, but lose their excerpt and source.
        This cannot be undone.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR, include_deleted=True)
        body = self.body(ForgetChatBody)
        require_own(chat, self.person)
        self.require_fresh_password()
        report = forget_chat(chat, by=self.person, now=timezone.now(), memories=body["memories"])
        return Response(report_json(report))


class RatingJson(serializers.Serializer[Any]):
    example: dict[str, Any] = {"rating": "down", "reasons": ["wrong"], "comment": "It is in May."}
    rating = serializers.RegexField(r"^(up|down)$", allow_null=True, help_text="up, down, or null for none.")
    reasons = serializers.ListField(child=serializers.CharField())
    comment = serializers.CharField()
    rated_at = Moment(allow_null=True)


class RatingBody(Body):
    example: dict[str, Any] = {"rating": "down", "reasons": ["wrong"], "comment": "It is in May."}
    rating = Choice(Rating.values)
    reasons = serializers.ListField(
        child=Choice(RatingReason.values), max_length=len(RatingReason.values), default=list
    )
    comment = Text(max_length=COMMENT_LENGTH, allow_blank=True, default="")


def rating_json(rating: AnswerRating | None) -> dict[str, Any]:
    return RatingJson(rating or {"rating": None, "reasons": [], "comment": "", "rated_at": None}).data


class MessageRating(MessageView):
    @of_messages("messages_rating", RatingJson)
    def get(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Get your rating of an answer."""
        message = self.message(chat_id, message_id, Role.VIEWER)
        return Response(rating_json(ratings_of([message.pk], self.person).get(message.pk)))

    @of_messages("messages_rate", RatingJson, body=RatingBody)
    def put(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Rate an answer.

        As good or bad, with reasons and a comment. Replaces your earlier rating. Other readers do not see it;
        administrators do.
        """
        message = self.message(chat_id, message_id, Role.VIEWER)
        rating = set_rating(message, by=self.person, now=timezone.now(), **self.body(RatingBody))
        return Response(rating_json(rating))

    @of_messages("messages_unrate")
    def delete(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Remove your rating of an answer."""
        remove_rating(self.message(chat_id, message_id, Role.VIEWER), by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TagsJson(serializers.Serializer[Any]):
    example: dict[str, Any] = {"tags": ["travel", "work"]}
    tags = serializers.ListField(child=serializers.CharField())


class TagsBody(Body):
    example: dict[str, Any] = {"tags": ["travel", "work"]}
    tags = serializers.ListField(
        child=Text(max_length=TAG_LENGTH),
        max_length=tags_and_pins.MOST_OF_CHAT,
        help_text="All tags that it has from now on; none: `[]`.",
    )


class ChatTags(ApiView):
    @of_chats("chats_tags", TagsJson)
    def get(self, request: Request, chat_id: str) -> Response:
        """List your tags of a chat."""
        return Response({"tags": tags_and_pins.tags_of(get_chat(self.person, chat_id), self.person)})

    @of_chats("chats_tag", TagsJson, body=TagsBody)
    def put(self, request: Request, chat_id: str) -> Response:
        """Set your tags of a chat.

        Any role may do this. Only you see your tags. `GET chats?tag=` lists the chats with a tag.
        """
        chat = get_chat(self.person, chat_id)
        return Response({"tags": tags_and_pins.set_tags(chat, self.body(TagsBody)["tags"], by=self.person)})


class WorkspaceTags(ApiView):
    @of_chats("workspace_tags", TagsJson)
    def get(self, request: Request, workspace_id: str) -> Response:
        """List your tags in a workspace.

        All tags that you have given to chats there, at most a hundred.
        """
        return Response(
            {"tags": tags_and_pins.tags_in(get_workspace(self.person, workspace_id), self.person)}
        )
