"""Connections to language models, over REST: the shared ones, and a person's own."""

from dataclasses import asdict
from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memoryhub.llm.model_check import STEPS
from workspaces.actions import model_connections
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Choice, Flag, Moment, Money, Text, WholeNumber
from workspaces.api.idempotency import ONCE
from workspaces.api.paging import PageQuery
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.connection_tests import try_connection
from workspaces.models.language_models import (
    LEAST_CONTEXT,
    MODEL_LENGTH,
    MOST_CONTEXT,
    NAME_LENGTH,
    URL_LENGTH,
    Connection,
)

documented = documented_under("models")


class ConnectionJson(serializers.Serializer[Any]):
    """A connection without its key.

    ``context["person"]`` is the reader: the address of a shared connection is shown only to those who may manage it.
    """

    example = {
        "id": f"conn_{ID}",
        "name": "House model",
        "base_url": "https://api.example.org/v1",
        "model": "large-2",
    }
    id = serializers.CharField(source="public_id")
    name = serializers.CharField(max_length=NAME_LENGTH)
    base_url = serializers.SerializerMethodField(
        help_text="null for shared ones, unless you may change them."
    )
    model = serializers.CharField(max_length=MODEL_LENGTH)
    is_shared = serializers.BooleanField(
        help_text="true: made by administrators for everybody. false: yours."
    )
    has_key = serializers.BooleanField(help_text="Whether a key is stored. It is never shown again.")
    has_tools = serializers.BooleanField()
    can_extract = serializers.BooleanField(help_text="Off: rules notice what is said, and no model.")
    sees = serializers.BooleanField(
        allow_null=True, help_text="Whether it takes pictures. null: it is found out when one is sent."
    )
    context_tokens = serializers.IntegerField(min_value=0, help_text="For prompt and answer together.")
    is_local = serializers.BooleanField(
        help_text="Whether workspaces whose memories never leave this machine may use it."
    )
    is_default = serializers.BooleanField(
        help_text="Whether it answers wherever nothing else is chosen, in place of the built-in model."
    )
    price_in = serializers.DecimalField(
        max_digits=13,
        decimal_places=6,
        allow_null=True,
        help_text="Of a million tokens, in the installation's currency. null: nobody has set it.",
    )
    price_cached = serializers.DecimalField(
        max_digits=13, decimal_places=6, allow_null=True, help_text="Of tokens in from the provider's cache."
    )
    price_out = serializers.DecimalField(max_digits=13, decimal_places=6, allow_null=True)
    created_at = Moment()
    updated_at = Moment()

    def get_base_url(self, connection: Connection) -> str | None:
        seen = not connection.is_shared or model_connections.may_manage(self.context["person"])
        return connection.base_url if seen else None


class ConnectionChanges(Body):
    example = {"model": "large-3"}
    name = Text(max_length=NAME_LENGTH, required=False)
    base_url = Text(
        max_length=URL_LENGTH, required=False, help_text="For example, https://api.example.org/v1."
    )
    model = Text(max_length=MODEL_LENGTH, required=False)
    api_key = Text(
        max_length=model_connections.KEY_LENGTH,
        allow_blank=True,
        required=False,
        write_only=True,
        help_text="Left out, the stored one stays; it goes to no other server, so a new one asks for it again.",
    )
    has_tools = Flag(required=False)
    can_extract = Flag(required=False)
    sees = Flag(required=False, allow_null=True, help_text="null: it is found out when a picture is sent.")
    context_tokens = WholeNumber(min_value=LEAST_CONTEXT, max_value=MOST_CONTEXT, required=False)
    is_local = Flag(required=False, help_text="Of shared ones, by administrators alone.")
    is_default = Flag(
        required=False,
        help_text="Default for everyone, in place of the one before. Of shared ones, by administrators alone.",
    )
    price_in = Money(help_text="Of a million tokens in. null takes it away, with price_out.")
    price_cached = Money(help_text="Of tokens in from the provider's cache. null: as the others.")
    price_out = Money(help_text="Of a million tokens out.")


class ConnectionBody(ConnectionChanges):
    example = {"name": "House model", "base_url": "https://api.example.org/v1", "model": "large-2"}
    name = Text(max_length=NAME_LENGTH)
    base_url = Text(max_length=URL_LENGTH, help_text="For example, https://api.example.org/v1.")
    model = Text(max_length=MODEL_LENGTH)
    shared = Flag(required=False, help_text="true: for everybody. Administrators alone.")


class ConnectionStepJson(serializers.Serializer[Any]):
    example = {"step": "tools", "outcome": "fails", "text": "It did not call the tool."}
    step = serializers.RegexField(f"^({'|'.join(STEPS)})$", help_text=", ".join(STEPS))
    outcome = serializers.RegexField("^(works|fails|untried)$", help_text="works, fails or untried.")
    text = serializers.CharField(help_text="The same in a sentence.")


class ConnectionReportJson(serializers.Serializer[Any]):
    example = {"hints": ["“Can call tools” is switched on and did not work: switch it off."]}
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
    @documented("connections_list", page_of(ConnectionJson), query=ConnectionQuery)
    def get(self, request: Request) -> Response:
        """List the connections you can use.

        Shared connections and your own, oldest first. Keys are never shown.
        """
        whose = self.query(ConnectionQuery)["whose"]
        queryset = Connection.objects.usable_by(self.person)
        if whose != "all":
            queryset = queryset.filter(owner__isnull=whose == "shared")
        return self.page(
            queryset,
            ConnectionJson,
            list_name=f"connections {whose} of {self.person.public_id}",
            context={"person": self.person},
        )

    @documented("connections_create", {201: ConnectionJson}, body=ConnectionBody, headers=ONCE)
    def post(self, request: Request) -> Response:
        """Create a connection.

        It is yours and used only in your turns, if the operator allows people to have their own (otherwise 403).
        Administrators can send `shared` to create one for everybody. The address is not contacted yet: `test` does
        that.
        """
        body, now = self.body(ConnectionBody), timezone.now()
        connection = self.make_once(
            lambda: model_connections.create_connection(by=self.person, now=now, **body),
            model_connections.get_connection,
        )
        return self.shown(connection, code=status.HTTP_201_CREATED)


class ConnectionDetail(_ConnectionView):
    @documented("connections_get", ConnectionJson)
    def get(self, request: Request, connection_id: str) -> Response:
        """Get a connection."""
        return self.shown(model_connections.get_connection(self.person, connection_id))

    @documented("connections_update", ConnectionJson, body=ConnectionChanges)
    def patch(self, request: Request, connection_id: str) -> Response:
        """Change a connection.

        Fields you leave out stay as they are, including the key. Turns that begin afterwards use the new values.
        """
        connection = model_connections.get_connection(self.person, connection_id, to="change")
        body = self.body(ConnectionChanges)
        return self.shown(
            model_connections.update_connection(connection, by=self.person, now=timezone.now(), **body)
        )

    @documented("connections_delete")
    def delete(self, request: Request, connection_id: str) -> Response:
        """Delete a connection.

        Deletes it and its key for good. Workspaces and chats that used it continue with the next configured model, and
        show a note about it.
        """
        connection = model_connections.get_connection(self.person, connection_id, to="delete")
        model_connections.delete_connection(connection, by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class ConnectionTest(_ConnectionView):
    @documented("connections_test", ConnectionReportJson, errors=[429])
    def post(self, request: Request, connection_id: str) -> Response:
        """Test a connection.

        Requests a word, a tool call and a JSON object from the model. Takes up to half a minute, and you can do it ten
        times a minute. The status is 200 even if the test fails.
        """
        connection = model_connections.get_connection(self.person, connection_id, to="change")
        report = try_connection(connection, by=self.person, now=timezone.now())
        body = {
            "answers": report.answers,
            "seconds": round(report.seconds, 2),
            "first_piece_seconds": None if report.first_piece is None else round(report.first_piece, 2),
            "steps": [asdict(line) for line in report.lines],
            "hints": report.hints,
        }
        return Response(ConnectionReportJson(body).data)
