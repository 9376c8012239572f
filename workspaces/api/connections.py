"""Connections to language models, over REST: the shared ones, and a person's own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memoryhub.llm.trial import STEPS
from workspaces.connections import actions
from workspaces.connections.trial import try_connection
from workspaces.models.connection import (
    LEAST_CONTEXT,
    MODEL_LENGTH,
    MOST_CONTEXT,
    NAME_LENGTH,
    URL_LENGTH,
    Connection,
)
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_example,
    page_of,
    request_example,
)
from workspaces.rest.fields import (
    Body,
    Choice,
    Flag,
    Moment,
    Text,
    WholeNumber,
)
from workspaces.rest.idempotency import ONCE
from workspaces.rest.paging import PageQuery
from workspaces.rest.views import ApiView

TAG = "models"
CONNECTION: dict[str, Any] = {
    "id": "conn_7tHq2TzB8mYw1RsX9vLcHn4K",
    "name": "House model",
    "base_url": "https://api.example.org/v1",
    "model": "large-2",
    "is_shared": False,
    "has_key": True,
    "has_tools": True,
    "can_extract": True,
    "context_tokens": 32_000,
    "is_local": False,
    "created_at": "2026-03-07T10:30:00.000000Z",
    "updated_at": "2026-03-07T10:30:00.000000Z",
}
REPORT: dict[str, Any] = {
    "answers": True,
    "seconds": 2.4,
    "first_piece_seconds": 0.6,
    "steps": [
        {"step": "reachable", "outcome": "works", "text": "The address answers."},
        {"step": "key", "outcome": "works", "text": "The key is accepted."},
        {"step": "model", "outcome": "works", "text": "The model is known."},
        {"step": "streams", "outcome": "works", "text": "Answers stream."},
        {"step": "tools", "outcome": "fails", "text": "It did not call the tool."},
        {"step": "json", "outcome": "works", "text": "It writes JSON, so it can extract memories."},
    ],
    "hints": ["“Can call tools” is switched on and did not work: switch it off."],
}


class ConnectionJson(serializers.ModelSerializer[Connection]):
    """Never the key. Wants ``person`` in its context: the address of a shared one is for those who manage it."""

    id = serializers.CharField(source="public_id")
    base_url = serializers.SerializerMethodField(
        help_text="null for shared ones, unless you may change them."
    )
    is_shared = serializers.BooleanField(
        help_text="true: made by administrators for everybody. false: yours."
    )
    has_key = serializers.BooleanField(help_text="Whether a key is stored. It is never shown again.")
    is_local = serializers.BooleanField(
        help_text="Whether workspaces whose memories never leave this machine may use it."
    )
    created_at = Moment()
    updated_at = Moment()

    class Meta:
        model = Connection
        fields = [*CONNECTION]

    def get_base_url(self, connection: Connection) -> str | None:
        seen = not connection.is_shared or actions.may_manage(self.context["person"])
        return connection.base_url if seen else None


class ConnectionChanges(Body):
    name = Text(max_length=NAME_LENGTH, required=False)
    base_url = Text(max_length=URL_LENGTH, required=False, help_text="Such as https://api.example.org/v1.")
    model = Text(max_length=MODEL_LENGTH, required=False)
    api_key = Text(
        max_length=actions.KEY_LENGTH,
        allow_blank=True,
        required=False,
        write_only=True,
        help_text="Left out, the stored one stays; it goes to no other server, so a new one asks for it again.",
    )
    has_tools = Flag(required=False)
    can_extract = Flag(required=False)
    context_tokens = WholeNumber(min_value=LEAST_CONTEXT, max_value=MOST_CONTEXT, required=False)
    is_local = Flag(required=False, help_text="Of shared ones, by administrators alone.")


class ConnectionBody(ConnectionChanges):
    name = Text(max_length=NAME_LENGTH)
    base_url = Text(max_length=URL_LENGTH, help_text="Such as https://api.example.org/v1.")
    model = Text(max_length=MODEL_LENGTH)
    shared = Flag(required=False, help_text="true: for everybody. Administrators alone.")


class ConnectionStepJson(serializers.Serializer[Any]):
    step = serializers.RegexField(f"^({'|'.join(STEPS)})$", help_text=", ".join(STEPS))
    outcome = serializers.RegexField("^(works|fails|untried)$", help_text="works, fails or untried.")
    text = serializers.CharField(help_text="The same in a sentence.")


class ConnectionReportJson(serializers.Serializer[Any]):
    answers = serializers.BooleanField(help_text="Whether a chat can be held with it.")
    seconds = serializers.FloatField()
    first_piece_seconds = serializers.FloatField(allow_null=True, help_text="Until the first piece of text.")
    steps = ConnectionStepJson(many=True)
    hints = serializers.ListField(child=serializers.CharField(), help_text="What to switch on or off.")


class ConnectionQuery(PageQuery):
    whose = Choice(["all", "shared", "mine"], default="all", help_text="Only these.")


class _ConnectionView(ApiView):
    def shown(self, connection: Connection, *, code: int = 200) -> Response:
        return Response(ConnectionJson(connection, context={"person": self.person}).data, status=code)


class ConnectionList(_ConnectionView):
    @documented(
        "List the connections you can use",
        tag=TAG,
        operation="connections_list",
        answers={200: page_of(ConnectionJson, "Connection")},
        query=ConnectionQuery,
        description="Those for everybody and your own, in the order they were made. Keys are never shown.",
        examples=[page_example(CONNECTION)],
    )
    def get(self, request: Request) -> Response:
        whose = self.query(ConnectionQuery)["whose"]
        found = Connection.objects.usable_by(self.person)
        if whose != "all":
            found = found.filter(owner__isnull=whose == "shared")
        return self.page(
            found,
            ConnectionJson,
            list_name=f"connections {whose} of {self.person.public_id}",
            context={"person": self.person},
        )

    @documented(
        "Make a connection",
        tag=TAG,
        operation="connections_create",
        answers={201: ConnectionJson},
        headers=ONCE,
        body=ConnectionBody,
        errors=[409],
        writes=True,
        description="Your own, used in your turns alone, where the operator allows people to have some (403 "
        "otherwise); with `shared` one for everybody, by administrators. The address is not asked "
        "anything yet: `test` does that.",
        examples=[
            request_example(
                "A connection",
                {name: CONNECTION[name] for name in ("name", "base_url", "model")} | {"api_key": "sk-…"},
            ),
            answer_example("Made", CONNECTION, code=201),
        ],
    )
    def post(self, request: Request) -> Response:
        body, now = self.body(ConnectionBody), timezone.now()
        made = self.once(
            lambda: actions.create_connection(by=self.person, now=now, **body),
            keep=lambda connection: {"connection": connection.public_id},
            again=lambda note: actions.get_connection(self.person, note["connection"]),
        )
        return self.shown(made, code=status.HTTP_201_CREATED)


class ConnectionDetail(_ConnectionView):
    @documented(
        "Look at a connection",
        tag=TAG,
        operation="connections_get",
        answers={200: ConnectionJson},
        errors=[404],
        examples=[answer_example("A connection", CONNECTION)],
    )
    def get(self, request: Request, connection_id: str) -> Response:
        return self.shown(actions.get_connection(self.person, connection_id))

    @documented(
        "Change a connection",
        tag=TAG,
        operation="connections_update",
        answers={200: ConnectionJson},
        body=ConnectionChanges,
        errors=[404],
        writes=True,
        description="What is left out stays, the key too. Turns that begin after this use the new values.",
        examples=[
            request_example("Another model", {"model": "large-3"}),
            answer_example("Changed", CONNECTION),
        ],
    )
    def patch(self, request: Request, connection_id: str) -> Response:
        found = actions.get_connection(self.person, connection_id, to="change")
        body = self.body(ConnectionChanges)
        return self.shown(actions.update_connection(found, by=self.person, now=timezone.now(), **body))

    @documented(
        "Delete a connection",
        tag=TAG,
        operation="connections_delete",
        answers={204: None},
        errors=[404],
        writes=True,
        description="With its key, for good. Workspaces and chats that had chosen it go on with the next model that is "
        "set, and say so.",
    )
    def delete(self, request: Request, connection_id: str) -> Response:
        found = actions.get_connection(self.person, connection_id, to="delete")
        actions.delete_connection(found, by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class ConnectionTest(_ConnectionView):
    @documented(
        "Test a connection",
        tag=TAG,
        operation="connections_test",
        answers={200: ConnectionReportJson},
        errors=[404, 429],
        writes=True,
        description="Asks the model for a word, a tool call and a JSON object: half a minute at the most, ten times a "
        "minute. It is 200 whatever comes of it.",
        examples=[answer_example("What works", REPORT)],
    )
    def post(self, request: Request, connection_id: str) -> Response:
        found = actions.get_connection(self.person, connection_id, to="change")
        report = try_connection(found, by=self.person, now=timezone.now())
        body = {
            "answers": report.answers,
            "seconds": round(report.seconds, 2),
            "first_piece_seconds": None if report.first_piece is None else round(report.first_piece, 2),
            "steps": [asdict(line) for line in report.lines],
            "hints": report.hints,
        }
        return Response(ConnectionReportJson(body).data)
