"""Forms of a connection, on the person's page and in the admin. The key goes in and is never shown again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.llm.usage import MOST_PRICE
from workspaces.connections.actions import KEY_LENGTH
from workspaces.connections.local_servers import CONTEXT
from workspaces.models.connection import (
    LEAST_CONTEXT,
    MODEL_LENGTH,
    MOST_CONTEXT,
    NAME_LENGTH,
    URL_LENGTH,
    Connection,
)
from workspaces.pages.workspace_forms import DomainForm


def _plain(**attrs: str) -> forms.TextInput:
    return forms.TextInput(attrs={"autocomplete": "off", **attrs})


def _price(label: Any, help_text: Any = "") -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        help_text=help_text,
        required=False,
        min_value=0,
        max_value=MOST_PRICE,
        decimal_places=6,
        widget=_plain(inputmode="decimal"),
    )


@dataclass(frozen=True)
class Preset:
    """Values filled in for a kind of server."""

    name: Any
    address: str = ""
    context: int = 16_384  # tokens
    needs_key: bool = False


PRESETS = {
    "openai": Preset("OpenAI", "https://api.openai.com/v1", needs_key=True),
    "ollama": Preset("Ollama", "http://localhost:11434/v1", CONTEXT),
    "other": Preset(_("Other")),
}


class ConnectionForm(DomainForm):
    name = forms.CharField(label=_("Name"), max_length=NAME_LENGTH, widget=_plain())
    base_url = forms.CharField(
        label=_("Address"),
        max_length=URL_LENGTH,
        widget=_plain(inputmode="url", placeholder="https://api.example.org/v1"),
        help_text=_(
            "Of any endpoint compatible with the OpenAI API, up to and including /v1. Redirects are not followed."
        ),
    )
    model = forms.CharField(
        label=_("Model"),
        max_length=MODEL_LENGTH,
        widget=_plain(),
        help_text=_("Model ID"),
    )
    api_key = forms.CharField(
        label=_("Key"),
        max_length=KEY_LENGTH,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Kept encrypted and never shown again."),
    )
    context_tokens = forms.IntegerField(
        label=_("Context, in tokens"),
        min_value=LEAST_CONTEXT,
        max_value=MOST_CONTEXT,
        initial=16_384,
        help_text=_("For prompt and answer together."),
    )
    has_tools = forms.BooleanField(label=_("Can call tools"), required=False, initial=True)
    can_extract = forms.BooleanField(
        label=_("Can extract memories (otherwise rules do)"), required=False, initial=True
    )
    sees = forms.NullBooleanField(
        label=_("Can see pictures"),
        required=False,
        help_text=_("Leave as Unknown to detect automatically."),
    )

    price_in = _price(_("Price per million input tokens"))
    price_cached = _price(
        _("Price per million cached input tokens"), _("Leave it empty if they cost the same as the others.")
    )
    price_out = _price(
        _("Price per million output tokens"),
        _("With both prices, each answer shows its cost. Leave them empty to show none."),
    )

    def __init__(self, *args: Any, kept: Connection | None = None, **kwargs: Any) -> None:
        """``kept``: the connection that is changed."""
        if kept is not None:
            kwargs.setdefault(
                "initial", {name: getattr(kept, name) for name in self.base_fields if name != "api_key"}
            )
        super().__init__(*args, **kwargs)
        self.kept = kept
        if kept is not None and kept.has_key:
            self.fields["api_key"].help_text = _("Leave it empty to keep the one that is stored.")

    def values(self) -> dict[str, Any]:
        """For the domain: without a key that was left empty, where one is stored."""
        values = dict(self.cleaned_data)
        if self.kept is not None and not values["api_key"]:
            del values["api_key"]
        return values


class SharedConnectionForm(ConnectionForm):
    """Form of a shared connection, which administrators may mark local."""

    is_local = forms.BooleanField(
        label=_("Local: may answer where memories never leave this machine"), required=False
    )

    is_default = forms.BooleanField(
        label=_("Default for everyone: answers wherever no other model is chosen"), required=False
    )


class NewConnectionForm(ConnectionForm):
    """Form of a new connection; what the model can do is tried."""

    name = forms.CharField(
        label=_("Name"),
        max_length=NAME_LENGTH,
        required=False,
        widget=_plain(),
        help_text=_("Defaults to the model's name."),
    )
    shared = forms.BooleanField(label=_("For everyone here, not for me alone"), required=False, initial=True)
    is_default = SharedConnectionForm.base_fields["is_default"]
    FIRST = ("base_url", "api_key", "model", "shared", "is_default")

    def __init__(
        self, data: Any = None, *, preset: str, manages: bool, has_own: bool, is_first: bool = False
    ) -> None:
        """``manages``: whether who fills it in may connect for everybody; ``has_own``: whether for themselves;
        ``is_first``: whether nothing is connected for everybody yet.
        """
        self.preset = preset if preset in PRESETS else "openai" if data is None else "other"
        filled = PRESETS[self.preset]
        super().__init__(
            data,
            initial={"base_url": filled.address, "context_tokens": filled.context, "is_default": is_first},
        )
        self.manages = manages
        hidden = ["has_tools", "can_extract"]
        hidden += [] if manages and has_own else ["shared"]
        hidden += [] if manages else ["is_default"]
        for name in hidden:
            del self.fields[name]
        if filled.address:
            self.fields["base_url"].help_text = ""
        self.fields["api_key"].required = filled.needs_key
        self.fields["model"].widget.attrs["list"] = "offered-models"
        # What was typed stays where the form is shown again, and does not go along to another kind of server.
        key_id = f"id_api_key_{self.preset}"
        self.fields["api_key"].widget.attrs |= {"id": key_id, "hx-preserve": "true"}

    def values(self) -> dict[str, Any]:
        values = {**super().values(), "shared": self.cleaned_data.get("shared", self.manages)}
        return values if values["shared"] else values | {"is_default": False}

    def first(self) -> list[forms.BoundField]:
        return [self[name] for name in self.FIRST if name in self.fields]

    def more(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in self.FIRST]

    def more_is_wrong(self) -> bool:
        return any(field.errors for field in self.more())
