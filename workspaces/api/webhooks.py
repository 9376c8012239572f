"""REST views of a workspace's webhooks, for its owners with a session."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import get_workspace
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Choice, Flag, Moment, StoredSentence, Text
from workspaces.api.paging import PageQuery
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.models import DeliveryStatus, Role, Webhook, WebhookEvent
from workspaces.models.audit_and_webhooks import WEBHOOK_NAME_LENGTH, WEBHOOK_URL_LENGTH
from workspaces.webhooks import hooks
from workspaces.webhooks.hooks import PREFIX

documented = documented_under("webhooks")
URL = "https://example.org/hooks"


class WebhookJson(serializers.Serializer[Any]):
    """A webhook, without its secret."""

    example = {"id": f"hook_{ID}", "name": "Wiki", "url": URL, "events": ["memory.saved"], "enabled": True}
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(source="workspace.public_id")
    name = serializers.CharField(max_length=WEBHOOK_NAME_LENGTH)
    url = serializers.CharField(max_length=WEBHOOK_URL_LENGTH)
    events = serializers.ListField(child=serializers.ChoiceField(choices=WebhookEvent.values))
    with_text = serializers.BooleanField(help_text="Whether what was saved or changed is sent along.")
    enabled = serializers.BooleanField(source="is_enabled")
    disabled_for = StoredSentence(help_text="Why it was turned off, if not by hand; empty otherwise.")
    failing_since = Moment(allow_null=True, help_text="Since then nothing was delivered. null: all is well.")
    created_at = Moment()
    updated_at = Moment()


class MadeWebhookJson(WebhookJson):
    example = {**WebhookJson.example, "secret": f"{PREFIX}…"}
    secret = serializers.CharField(
        help_text="Deliveries are signed with it. This is the only time you see it."
    )


class WebhookSecretJson(serializers.Serializer[Any]):
    example = {"secret": f"{PREFIX}…"}
    secret = serializers.CharField(help_text="This is the only time you see it.")


class WebhookChanges(Body):
    example = {"events": ["memory.saved", "memory.changed"]}
    name = Text(max_length=WEBHOOK_NAME_LENGTH, required=False)
    url = Text(max_length=WEBHOOK_URL_LENGTH, required=False, help_text=f"For example, {URL}.")
    events = serializers.ListField(
        child=Choice(WebhookEvent.values), min_length=1, max_length=len(WebhookEvent.values), required=False
    )
    with_text = Flag(required=False, help_text="true: what was saved or changed is sent along.")
    enabled = Flag(required=False)


class WebhookBody(Body):
    example = {"name": "Wiki", "url": URL, "events": ["memory.saved"]}
    name = Text(max_length=WEBHOOK_NAME_LENGTH)
    url = Text(max_length=WEBHOOK_URL_LENGTH, help_text=f"For example, {URL}.")
    events = serializers.ListField(
        child=Choice(WebhookEvent.values), min_length=1, max_length=len(WebhookEvent.values)
    )
    with_text = Flag(default=False, help_text="true: what was saved or changed is sent along.")


class DeliveryJson(serializers.Serializer[Any]):
    """A delivery of a webhook: ids only, no texts."""

    example = {
        "id": f"evt_{ID}",
        "event": "memory.saved",
        "about": f"mem_{ID}",
        "action": "create",
        "status": "delivered",
        "answer_code": 204,
    }
    id = serializers.CharField(source="public_id", help_text="The `webhook-id` that it was sent with.")
    event = serializers.ChoiceField(choices=WebhookEvent.values)
    about = serializers.CharField(help_text="The id of what it happened to.")
    action = serializers.CharField(help_text="How: create, edit, restore …")
    status = serializers.ChoiceField(choices=DeliveryStatus.values)
    attempts = serializers.IntegerField(min_value=0)
    answer_code = serializers.IntegerField(
        allow_null=True, help_text="The HTTP status of the last answer. null: there was none."
    )
    error = StoredSentence(help_text="What went wrong last; empty otherwise.")
    created_at = Moment()
    attempted_at = Moment(allow_null=True)
    next_attempt_at = Moment(allow_null=True, help_text="null: it is not tried again.")


class DeliveryQuery(PageQuery):
    status = Choice([*DeliveryStatus.values, "all"], default="all", help_text="Only these.")


class _WebhookView(ApiView):
    def webhook(self, workspace_id: str, webhook_id: str) -> Webhook:
        return hooks.get_webhook(self.person, workspace_id, webhook_id)


class WebhookList(ApiView):
    @documented("webhooks_list", page_of(WebhookJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the webhooks of a workspace.

        Oldest first. Owners only.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.OWNER)
        return self.page(hooks.webhooks_of(workspace), WebhookJson, list_name=f"webhooks of {workspace_id}")

    @documented("webhooks_create", {201: MadeWebhookJson}, body=WebhookBody, errors=[409], fresh=True)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Create a webhook.

        From now on its address receives these events, signed according to Standard Webhooks with the `secret`. Only
        this response contains the `secret`. The address is not contacted yet.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.OWNER)
        self.require_fresh_password()
        body = self.body(WebhookBody)
        webhook, secret = hooks.create_webhook(workspace, by=self.person, now=timezone.now(), **body)
        webhook.secret = secret  # type: ignore[attr-defined]  # shown once
        return Response(MadeWebhookJson(webhook).data, status=status.HTTP_201_CREATED)


class WebhookDetail(_WebhookView):
    @documented("webhooks_get", WebhookJson)
    def get(self, request: Request, workspace_id: str, webhook_id: str) -> Response:
        """Get a webhook."""
        return Response(WebhookJson(self.webhook(workspace_id, webhook_id)).data)

    @documented("webhooks_update", WebhookJson, body=WebhookChanges, fresh=True)
    def patch(self, request: Request, workspace_id: str, webhook_id: str) -> Response:
        """Change a webhook.

        Fields you leave out stay as they are. With `enabled: false`, deliveries that are not sent yet are dropped; when
        you enable it again, only new events are delivered.
        """
        webhook = self.webhook(workspace_id, webhook_id)
        self.require_fresh_password()
        body = self.body(WebhookChanges)
        return Response(
            WebhookJson(hooks.update_webhook(webhook, by=self.person, now=timezone.now(), **body)).data
        )

    @documented("webhooks_delete")
    def delete(self, request: Request, workspace_id: str, webhook_id: str) -> Response:
        """Delete a webhook.

        Its deliveries are deleted too, including those that are not sent yet.
        """
        hooks.delete_webhook(self.webhook(workspace_id, webhook_id), by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)


class WebhookSecret(_WebhookView):
    @documented("webhooks_rotate", WebhookSecretJson, fresh=True)
    def post(self, request: Request, workspace_id: str, webhook_id: str) -> Response:
        """Change the secret of a webhook.

        For 24 hours deliveries are signed with the previous secret too.
        """
        webhook = self.webhook(workspace_id, webhook_id)
        self.require_fresh_password()
        secret = hooks.rotate_secret(webhook, by=self.person, now=timezone.now())
        return Response({"secret": secret})


class DeliveryList(_WebhookView):
    @documented("webhooks_deliveries", page_of(DeliveryJson), query=DeliveryQuery)
    def get(self, request: Request, workspace_id: str, webhook_id: str) -> Response:
        """List the deliveries of a webhook.

        Newest first, of the last 30 days.
        """
        webhook, wanted = self.webhook(workspace_id, webhook_id), self.query(DeliveryQuery)["status"]
        rows = webhook.deliveries.all() if wanted == "all" else webhook.deliveries.filter(status=wanted)
        name = f"deliveries {wanted} of {webhook_id}"
        return self.page(rows, DeliveryJson, list_name=name, descending=True)


class DeliveryResend(_WebhookView):
    @documented("webhooks_resend", {202: DeliveryJson}, errors=[409, 429])
    def post(self, request: Request, workspace_id: str, webhook_id: str, delivery_id: str) -> Response:
        """Send a delivery again.

        It has the same `webhook-id` as before. You can also resend a delivery that succeeded.
        """
        webhook = self.webhook(workspace_id, webhook_id)
        again = hooks.send_again(webhook, delivery_id, by=self.person, now=timezone.now())
        return Response(DeliveryJson(again).data, status=status.HTTP_202_ACCEPTED)
