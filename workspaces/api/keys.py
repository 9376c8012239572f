"""API keys, over REST: one's own, made and ended in a session. No key may do either."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import named_workspace
from workspaces.accounts.keys import NAME_LENGTH, PREFIX, make_key, revoke_key
from workspaces.models import ApiKey, KeyScope
from workspaces.rest.docs import ID, documented_under, page_of
from workspaces.rest.fields import Body, Choice, Moment, Text
from workspaces.rest.views import ApiView

documented = documented_under("keys")


class KeyJson(serializers.Serializer[Any]):
    """Never the key itself."""

    example = {
        "id": f"key_{ID}",
        "name": "Laptop",
        "beginning": "mh_4fKz",
        "workspace_id": f"ws_{ID}",
        "scope": "write",
        "calls": 12,
        "signed_in": False,
    }
    id = serializers.CharField(source="public_id")
    name = serializers.CharField(max_length=NAME_LENGTH)
    beginning = serializers.CharField(help_text="By which you tell it from others.")
    workspace_id = serializers.CharField(source="workspace.public_id")
    scope = serializers.ChoiceField(choices=KeyScope.values)
    created_at = Moment()
    expires_at = Moment(allow_null=True, help_text="null: never.")
    last_used_at = Moment(allow_null=True, help_text="To the minute. null: never.")
    calls = serializers.IntegerField(help_text="Requests that it has made.")
    signed_in = serializers.SerializerMethodField(
        help_text="true: of a program that was let in by OAuth, and has no text of its own."
    )

    def get_signed_in(self, key: ApiKey) -> bool:
        return key.client_id is not None


class MadeKeyJson(KeyJson):
    example = {**KeyJson.example, "calls": 0, "key": f"{PREFIX}…"}
    key = serializers.CharField(help_text="The key. It is stored nowhere: this is the only time you see it.")


class KeyBody(Body):
    example = {"name": "Laptop", "workspace_id": f"ws_{ID}", "scope": "write"}
    name = Text(max_length=NAME_LENGTH)
    workspace_id = Text(max_length=32, help_text="The one workspace that it opens.")
    scope = Choice(KeyScope.values, default=KeyScope.READ)
    expires_at = Moment(allow_null=True, default=None, help_text="null: never.")


class KeyList(ApiView):
    @documented("keys_list", page_of(KeyJson))
    def get(self, request: Request) -> Response:
        """List your API keys.

        Those that are not revoked, oldest first. Keys are never shown again.
        """
        live = ApiKey.objects.filter(user=self.person, revoked_at=None).select_related("workspace")
        return self.page(live, KeyJson, list_name=f"keys of {self.person.public_id}")

    @documented("keys_create", {201: MadeKeyJson}, body=KeyBody, errors=[404], fresh=True)
    def post(self, request: Request) -> Response:
        """Make an API key.

        It acts as you, in one workspace, and can do no more there than you can. `key` is in this answer only.
        """
        self.require_fresh_password()
        body = self.body(KeyBody)
        workspace = named_workspace(self.person, body.pop("workspace_id"))
        made, text = make_key(workspace, by=self.person, now=timezone.now(), **body)
        made.key = text  # type: ignore[attr-defined]  # shown once, stored nowhere
        return Response(MadeKeyJson(made).data, status=status.HTTP_201_CREATED)


class KeyDetail(ApiView):
    @documented("keys_revoke")
    def delete(self, request: Request, key_id: str) -> Response:
        """Revoke an API key.

        At once and for good: what it holds open is closed.
        """
        revoke_key(key_id, by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
