"""Requests for one's own data, over REST."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.data_requests import requests
from workspaces.models import DataRequest, RequestKind, RequestState
from workspaces.rest.docs import documented_under, page_of
from workspaces.rest.examples import ID
from workspaces.rest.fields import Body, Choice, Moment
from workspaces.rest.views import ApiView

documented = documented_under("account")


class DataRequestJson(serializers.Serializer[Any]):
    example = {
        "id": f"req_{ID}",
        "kind": "deletion",
        "state": "refused",
        "reason": "You have to say who goes on.",
    }
    id = serializers.CharField(source="public_id")
    kind = serializers.ChoiceField(choices=RequestKind.values)
    state = serializers.ChoiceField(choices=RequestState.values)
    reason = serializers.CharField(help_text="Why it was refused; empty otherwise.")
    asked_at = Moment()
    due_at = Moment(help_text="When it has to be done.")
    ended_at = Moment(allow_null=True)
    expires_at = Moment(allow_null=True, help_text="Of a copy: until then it can be fetched.")


class DataRequestBody(Body):
    example = {"kind": "copy"}
    kind = Choice(
        RequestKind.values, help_text="copy: of everything kept about you; deletion: of your account."
    )


class DataRequestList(ApiView):
    @documented("data_requests_list", page_of(DataRequestJson))
    def get(self, request: Request) -> Response:
        """List your requests for your data."""
        mine = DataRequest.objects.filter(user=self.person)
        name = f"data requests of {self.person.public_id}"
        return self.page(mine, DataRequestJson, list_name=name, keys=("asked_at", "id"))

    @documented(
        "data_requests_create", {201: DataRequestJson}, body=DataRequestBody, errors=[409], fresh=True
    )
    def post(self, request: Request) -> Response:
        """Ask for your data or its deletion.

        A copy can be fetched at once. The deletion waits for an administrator, who sees when it is due; you delete your
        account yourself with `DELETE /chat/api/account`. Asked twice, it is the same request. 409 where none are taken.
        """
        self.require_fresh_password()
        made = requests.ask(self.person, RequestKind(self.body(DataRequestBody)["kind"]), now=timezone.now())
        return Response(DataRequestJson(made).data, status=status.HTTP_201_CREATED)


class DataRequestDetail(ApiView):
    @documented("data_requests_get", DataRequestJson)
    def get(self, request: Request, request_id: str) -> Response:
        """Read one of your requests."""
        return Response(DataRequestJson(requests.get_request(self.person, request_id)).data)

    @documented("data_requests_withdraw", DataRequestJson, errors=[409])
    def delete(self, request: Request, request_id: str) -> Response:
        """Withdraw a request.

        409 once it has ended.
        """
        mine = requests.get_request(self.person, request_id)
        return Response(DataRequestJson(requests.withdraw(mine, by=self.person, now=timezone.now())).data)
