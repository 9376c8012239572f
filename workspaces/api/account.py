"""Account over REST: the effects of deleting it, and doing it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.accounts.closing import delete_account, foresee_leaving
from workspaces.api.serializers import RemovedJson, removed_json
from workspaces.rest.docs import ID, documented_under
from workspaces.rest.fields import Moment
from workspaces.rest.keys import KeyedView

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
        """Look at your account, and at what deleting it would do."""
        return Response(AccountJson({"person": self.person, "plan": foresee_leaving(self.person)}).data)

    @documented("account_delete", RemovedJson, errors=[409], fresh=True)
    def delete(self, request: Request) -> Response:
        """Delete your account for good.

        Removes your personal memories, your own workspaces, your private chats, keys and sessions from every table;
        what you shared in other people's workspaces stays there without your name. You are signed out everywhere. 409
        with code `last_owner` while other people are in a workspace that only you own. This cannot be undone.
        """
        self.require_fresh_password()
        removed = delete_account(self.person)
        request._request.session.flush()
        return Response(removed_json(removed))
