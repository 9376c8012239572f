"""Form of an invitation. What is allowed is decided in ``workspaces.invitations.invitations``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub import mail
from workspaces.models import Role
from workspaces.pages.workspace_forms import DomainForm


class InvitationForm(DomainForm):
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.EDITOR)
    most = forms.TypedChoiceField(
        label=_("For"),
        coerce=int,
        initial=1,
        choices=[(1, _("One person")), (10, _("Up to 10 people")), (100, _("Up to 100 people"))],
    )
    lasts = forms.TypedChoiceField(
        label=_("Valid for"),
        coerce=int,
        initial=7,
        choices=[(1, _("A day")), (7, _("A week")), (30, _("30 days"))],
    )
    email = forms.EmailField(
        label=_("Send it to"), required=False, widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not mail.is_set():
            del self.fields["email"]

    def clean_lasts(self) -> timedelta:
        return timedelta(days=self.cleaned_data["lasts"])
