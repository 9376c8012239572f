"""REST endpoints of a user's own ratings and tags."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_chat, get_message
from chat.chats.chat_list import MOST_OF_CHAT, set_tags, tags_in, tags_of
from chat.chats.services import rate, ratings_of, take_back
from chat.models import AnswerRating
from chat.models.marks import COMMENT_LENGTH, TAG_LENGTH, Rating, RatingReason
from workspaces.access import get_workspace
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Choice, Moment, Text
from workspaces.api.schema import documented_under

of_messages = documented_under("messages")
of_chats = documented_under("chats")


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
    none: dict[str, Any] = {"rating": None, "reasons": [], "comment": "", "rated_at": None}
    return dict(RatingJson(rating).data) if rating else none


class MessageRating(ApiView):
    @of_messages("messages_rating", RatingJson)
    def get(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Get your rating of an answer."""
        _chat, message = get_message(self.person, chat_id, message_id)
        return Response(rating_json(ratings_of([message.pk], self.person).get(message.pk)))

    @of_messages("messages_rate", RatingJson, body=RatingBody)
    def put(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Rate an answer.

        Good or bad, with matching reasons and a comment. Replaces your earlier rating. Other readers do not see it;
        administrators do.
        """
        _chat, message = get_message(self.person, chat_id, message_id)
        said = rate(message, by=self.person, now=timezone.now(), **self.body(RatingBody))
        return Response(rating_json(said))

    @of_messages("messages_unrate")
    def delete(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Remove your rating of an answer."""
        _chat, message = get_message(self.person, chat_id, message_id)
        take_back(message, by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TagsJson(serializers.Serializer[Any]):
    example: dict[str, Any] = {"tags": ["travel", "work"]}
    tags = serializers.ListField(child=serializers.CharField())


class TagsBody(Body):
    example: dict[str, Any] = {"tags": ["travel", "work"]}
    tags = serializers.ListField(
        child=Text(max_length=TAG_LENGTH),
        max_length=MOST_OF_CHAT,
        help_text="All tags that it has from now on; none: `[]`.",
    )


class ChatTags(ApiView):
    @of_chats("chats_tags", TagsJson)
    def get(self, request: Request, chat_id: str) -> Response:
        """List your tags of a chat."""
        return Response({"tags": tags_of(get_chat(self.person, chat_id), self.person)})

    @of_chats("chats_tag", TagsJson, body=TagsBody)
    def put(self, request: Request, chat_id: str) -> Response:
        """Set your tags of a chat.

        With any role. Only you see your tags. `GET chats?tag=` lists the chats with a tag.
        """
        chat = get_chat(self.person, chat_id)
        return Response({"tags": set_tags(chat, self.body(TagsBody)["tags"], by=self.person)})


class WorkspaceTags(ApiView):
    @of_chats("workspace_tags", TagsJson)
    def get(self, request: Request, workspace_id: str) -> Response:
        """List your tags in a workspace.

        All tags that you have given to chats there, at most a hundred.
        """
        return Response({"tags": tags_in(get_workspace(self.person, workspace_id), self.person)})
