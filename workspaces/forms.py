"""How workspaces and members are asked for. What is allowed is decided in ``workspaces.actions``."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.errors import DomainError
from workspaces.actions import DESCRIPTION_LENGTH, NAME_LENGTH
from workspaces.models import Role, User


def _plain_field() -> forms.TextInput:
    return forms.TextInput(attrs={"autocomplete": "off"})


class DomainForm(forms.Form):
    def add_domain_error(self, error: DomainError) -> None:
        """What the domain refused, at the field it names, else above the form."""
        named = {name: text for name, text in error.fields.items() if name in self.fields}
        for name, text in named.items():
            self.add_error(name, text)
        if not named:
            self.add_error(None, error.message)


class WorkspaceForm(DomainForm):
    name = forms.CharField(label=_("Name"), max_length=NAME_LENGTH)
    description = forms.CharField(
        label=_("What it is for"),
        max_length=DESCRIPTION_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
    )


class MemberForm(DomainForm):
    username = forms.CharField(label=_("Username"), max_length=150, widget=_plain_field())
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.EDITOR)

    def clean_username(self) -> User:
        user = User.objects.filter(username=self.cleaned_data["username"].strip(), is_active=True).first()
        if user is None:
            raise forms.ValidationError(_("There is nobody with this username. They need an account first."))
        return user


class DeleteForm(DomainForm):
    """Deleting takes the name, typed: it cannot be undone."""

    confirm = forms.CharField(label=_("Type the name of the workspace"), widget=_plain_field())

    def __init__(self, *args: object, name: str, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.name = name

    def clean_confirm(self) -> str:
        typed = self.cleaned_data["confirm"]
        if typed.strip() != self.name:
            raise forms.ValidationError(_("This is not its name."))
        return typed
