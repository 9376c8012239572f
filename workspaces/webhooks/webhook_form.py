"""Form of a webhook. What is allowed is decided in ``workspaces.webhooks.hooks``."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from workspaces.models import Webhook, WebhookEvent
from workspaces.models.webhook import WEBHOOK_NAME_LENGTH, WEBHOOK_URL_LENGTH
from workspaces.pages.workspace_forms import DomainForm

ON = {
    "memory_saved": (WebhookEvent.MEMORY_SAVED, _("When a memory is saved")),
    "memory_changed": (WebhookEvent.MEMORY_CHANGED, _("When a memory is changed")),
    "memory_forgotten": (WebhookEvent.MEMORY_FORGOTTEN, _("When a memory is forgotten")),
    "run_finished": (WebhookEvent.RUN_FINISHED, _("When a run has finished")),
    "document_ready": (WebhookEvent.DOCUMENT_READY, _("When a document is ready")),
}


def _box(label: Any) -> forms.BooleanField:
    return forms.BooleanField(label=label, required=False)


class WebhookForm(DomainForm):
    name = forms.CharField(
        label=_("Name"), max_length=WEBHOOK_NAME_LENGTH, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    url = forms.CharField(
        label=_("Address"),
        max_length=WEBHOOK_URL_LENGTH,
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "inputmode": "url", "placeholder": "https://example.org/hooks"}
        ),
        help_text=_("Redirects are not followed."),
    )
    memory_saved = _box(ON["memory_saved"][1])
    memory_changed = _box(ON["memory_changed"][1])
    memory_forgotten = _box(ON["memory_forgotten"][1])
    run_finished = _box(ON["run_finished"][1])
    document_ready = _box(ON["document_ready"][1])
    with_text = _box(_("Send along what was saved or changed, not only its id"))

    @classmethod
    def of(cls, webhook: Webhook) -> WebhookForm:
        chosen = {name: event in webhook.events for name, (event, _label) in ON.items()}
        return cls(initial={name: getattr(webhook, name) for name in ("name", "url", "with_text")} | chosen)

    def values(self) -> dict[str, Any]:
        """For the domain."""
        given = self.cleaned_data
        return {
            "name": given["name"],
            "url": given["url"],
            "with_text": given["with_text"],
            "events": [str(event) for name, (event, _label) in ON.items() if given[name]],
        }
