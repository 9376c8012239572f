"""How an upload is asked for."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.languages import grouped
from workspaces.models import Membership, Role, User, Workspace
from workspaces.views.forms import DomainForm


class UploadForm(DomainForm):
    file = forms.FileField(label=_("File"))
    workspace = forms.ChoiceField(label=_("Where it goes"), required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        memberships = Membership.objects.filter(user=user).exclude(role=Role.VIEWER)
        self.workspaces: dict[str, Workspace] = {
            each.workspace.public_id: each.workspace
            for each in memberships.select_related("workspace").order_by("workspace__name", "pk")
        }
        as_in_file = ("", gettext("As in the file: each workspace to its own"))
        names = [(public_id, workspace.name) for public_id, workspace in self.workspaces.items()]
        choice = self.fields["workspace"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [as_in_file, *names]
        self.fields["file"].help_text = gettext(
            "At most %(size)s MB. You see a preview before anything is stored."
        ) % {"size": grouped(settings.IMPORT_MAX_BYTES // 2**20)}

    def clean_workspace(self) -> Workspace | None:
        return self.workspaces.get(self.cleaned_data["workspace"])
