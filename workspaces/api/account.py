"""One's own account, over REST: what deleting it would do, and doing it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.accounts.leaving import delete_account, foresee_leaving
from workspaces.accounts.sign_in import require_fresh_password
from workspaces.api.serializers import RemovedJson, removed_json
from workspaces.models import Workspace
from workspaces.rest.docs import answer_example, documented
from workspaces.rest.fields import Moment
from workspaces.rest.keys import KeyedView

REMOVED = {"memories": 4, "memory_embeddings": 4, "memory_words": 31, "chats": 2, "workspaces": 1, "users": 1}


class PlaceJson(serializers.ModelSerializer[Workspace]):
    id = serializers.CharField(source="public_id")

    class Meta:
        model = Workspace
        fields = ["id", "name"]


class LeavingJson(serializers.Serializer[Any]):
    removed = PlaceJson(many=True, help_text="Workspaces that go with everything in them.")
    left = PlaceJson(many=True, help_text="Of others: what you shared there stays, without your name.")
    orphaned = PlaceJson(
        many=True,
        help_text="Others are in it and you are the only owner: in the way of deleting your account.",
    )


class AccountJson(serializers.Serializer[Any]):
    id = serializers.CharField(source="person.public_id")
    username = serializers.CharField(source="person.username")
    created_at = Moment(source="person.date_joined")
    if_deleted = LeavingJson(
        source="plan", help_text="What deleting the account would do to your workspaces."
    )


class Account(KeyedView):
    session_only = True

    @documented(
        "Look at your account",
        tag="account",
        operation="account_get",
        answers={200: AccountJson},
        errors=[403],
        session_only=True,
        description="And at what deleting it would do.",
        examples=[
            answer_example(
                "An account",
                {
                    "id": "usr_8pRw5TzB2mYw1KsX9vLcHn3Q",
                    "username": "maria",
                    "created_at": "2026-03-07T10:30:00.000000Z",
                    "if_deleted": {
                        "removed": [{"id": "ws_2fGq2TzB8mYw1RsX9vLcHn3D", "name": "Personal"}],
                        "left": [{"id": "ws_4fKq2TzB8mYw1RsX9vLcHn3D", "name": "Launch"}],
                        "orphaned": [],
                    },
                },
            )
        ],
    )
    def get(self, request: Request) -> Response:
        return Response(AccountJson({"person": self.person, "plan": foresee_leaving(self.person)}).data)

    @documented(
        "Delete your account for good",
        tag="account",
        operation="account_delete",
        answers={200: RemovedJson},
        errors=[409],
        writes=True,
        session_only=True,
        description="Your personal memories, your own workspaces, your private chats, keys and sessions go from every "
        "table; what you shared in the workspaces of others stays there without your name. You are signed out "
        "everywhere. 409 with code `last_owner` while others depend on a workspace that only you own. Cannot be "
        "undone, so it needs a browser session whose person typed their password again in the last five minutes "
        "(`/accounts/reauthenticate/`): else 403 with code `reauthenticate`. No API key may.",
        examples=[answer_example("Gone", {"removed": REMOVED})],
    )
    def delete(self, request: Request) -> Response:
        require_fresh_password(request._request)
        removed = delete_account(self.person)
        request._request.session.flush()
        return Response(removed_json(removed))
