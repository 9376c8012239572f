"""REST views of the account and its API keys."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import named_workspace
from workspaces.accounts.account_changes import delete_account, foresee_leaving
from workspaces.accounts.keys import NAME_LENGTH, PREFIX, make_key, revoke_key
from workspaces.api.base import ApiView, KeyedView
from workspaces.api.fields import Body, Choice, Moment, Text
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.api.serializers import RemovedJson, removed_json
from workspaces.models import ApiKey, KeyScope

documented = documented_under("account")


class PlaceJson(serializers.Serializer[Any]):
    example = {"id": f"ws_{ID}", "name": "Launch"}
    id = serializers.CharField(source="public_id")
    name = serializers.CharField()


class LeavingJson(serializers.Serializer[Any]):
    example: dict[str, Any] = {"orphaned": []}
    removed = PlaceJson(many=True, help_text="Workspaces that go with everything in them.")
    left = PlaceJson(many=True, help_text="Of others: what you shared there stays, without your name.")
    orphaned = PlaceJson(
        many=True,
        help_text="Others are in it and you are the only owner: in the way of deleting your account.",
    )


class AccountJson(serializers.Serializer[Any]):
    example = {"id": f"usr_{ID}", "username": "maria"}
    id = serializers.CharField(source="person.public_id")
    username = serializers.CharField(source="person.username")
    created_at = Moment(source="person.date_joined")
    if_deleted = LeavingJson(
        source="plan", help_text="What deleting the account would do to your workspaces."
    )


class Account(KeyedView):
    session_only = True

    @documented("account_get", AccountJson)
    def get(self, request: Request) -> Response:
        """Get your account.

        Includes the effects of deleting it.
        """
        return Response(AccountJson({"person": self.person, "plan": foresee_leaving(self.person)}).data)

    @documented("account_delete", RemovedJson, errors=[409], fresh=True)
    def delete(self, request: Request) -> Response:
        """Delete your account for good.

        Removes your personal memories, workspaces without other members, your private chats, keys and sessions from
        every table. What you shared with others stays there without your name. You are signed out everywhere. 409 with
        code `last_owner` if a workspace has other members and you are its only owner. This cannot be undone.
        """
        self.require_fresh_password()
        removed = delete_account(self.person)
        request._request.session.flush()
        return Response(removed_json(removed))


of_keys = documented_under("keys")


class KeyJson(serializers.Serializer[Any]):
    """An API key, without its secret."""

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
    @of_keys("keys_list", page_of(KeyJson))
    def get(self, request: Request) -> Response:
        """List your API keys.

        Those that are not revoked, oldest first. Keys are never shown again.
        """
        live = ApiKey.objects.filter(user=self.person, revoked_at=None).select_related("workspace")
        return self.page(live, KeyJson, list_name=f"keys of {self.person.public_id}")

    @of_keys("keys_create", {201: MadeKeyJson}, body=KeyBody, errors=[404], fresh=True)
    def post(self, request: Request) -> Response:
        """Create an API key.

        It acts as you, in one workspace, and can do no more there than you can. Only this response contains `key`.
        """
        self.require_fresh_password()
        body = self.body(KeyBody)
        workspace = named_workspace(self.person, body.pop("workspace_id"))
        key, text = make_key(workspace, by=self.person, now=timezone.now(), **body)
        key.key = text  # type: ignore[attr-defined]  # shown once, stored nowhere
        return Response(MadeKeyJson(key).data, status=status.HTTP_201_CREATED)


class KeyDetail(ApiView):
    @of_keys("keys_revoke")
    def delete(self, request: Request, key_id: str) -> Response:
        """Revoke an API key.

        It stops working immediately, and its open streams are closed. This cannot be undone.
        """
        revoke_key(key_id, by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
