"""Forms for one memory. The rules of the fields are in ``gate``, not here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, time
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memories.models import Memory, Scope
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH
from memories.writing.versions import version_of
from memoryhub.errors import Invalid, Sensitive
from workspaces.models import Agent


class MemoryForm(forms.Form):
    content = forms.CharField(
        label=_("What to remember"),
        max_length=CONTENT_LENGTH,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": _("One statement, such as: I am vegetarian")}),
    )
    category = forms.CharField(
        label=_("Category"),
        max_length=CATEGORY_LENGTH,
        required=False,
        widget=forms.TextInput(attrs={"list": "usual-categories", "autocomplete": "off"}),
    )

    asks: str | None = None  # the error of a sensitive number that is stored only after confirmation

    @property
    def confirmed(self) -> bool:
        """Return whether the person pressed “Save anyway”. Only that button sends ``confirm``."""
        return self.data.get("confirm") == "true"

    def add_domain_errors(self, error: Invalid) -> None:
        """Add the gate's errors to the fields. For a sensitive number set ``asks`` instead, to ask for confirmation."""
        if isinstance(error, Sensitive):
            self.asks = next(iter(error.fields.values()), "")
            return
        message, fields = error.message, error.fields
        named = {name: text for name, text in fields.items() if name in self.fields}
        if not named:
            self.add_error("content", message)
        for name, text in named.items():
            self.add_error(name, message if len(named) == 1 else f"{message} {text}")


class WhoseField(forms.ChoiceField):
    """Choice of who sees a memory. Without a choice, everyone in the workspace does."""

    def clean(self, value: Any) -> Any:
        return super().clean(value or Scope.WORKSPACE)


class AddForm(MemoryForm):
    """Form for a new memory, with a choice of who sees it."""

    whose = WhoseField(label=_("Visible to"))

    def __init__(self, *args: Any, agents: Iterable[Agent], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"prefix": "new"})
        self.fields["whose"].choices = [  # type: ignore[attr-defined]
            (Scope.WORKSPACE, _("Everyone in this workspace")),
            (Scope.USER, _("Only me, in every workspace")),
            *((agent.public_id, _("Chats with %(name)s") % {"name": agent.name}) for agent in agents),
        ]

    @property
    def draft_fields(self) -> dict[str, Any]:
        """Return the fields of a draft, but with ``agent_id`` instead of ``agent``."""
        whose = self.cleaned_data["whose"]
        of_agent = whose not in Scope.values
        return {
            "content": self.cleaned_data["content"],
            "category": self.cleaned_data["category"] or None,
            "scope": Scope.AGENT if of_agent else whose,
            "agent_id": whose if of_agent else None,
        }


def _day(label: Any) -> forms.DateField:
    return forms.DateField(
        label=label, required=False, widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"})
    )


class EditForm(MemoryForm):
    """Form for a stored memory. ``version`` is the version that the person saw. Days are in UTC."""

    valid_from = _day(_("Holds from"))
    valid_to = _day(_("Until"))
    version = forms.CharField(required=False, widget=forms.HiddenInput)

    @classmethod
    def of(cls, memory: Memory, **kwargs: Any) -> EditForm:
        initial = {
            "content": memory.content,
            "category": memory.category or "",
            "valid_from": memory.valid_from and memory.valid_from.astimezone(UTC).date(),
            "valid_to": memory.valid_to and memory.valid_to.astimezone(UTC).date(),
            "version": version_of(memory),
        }
        return cls(initial=initial, prefix=memory.public_id, **kwargs)

    def clean(self) -> dict[str, Any]:
        begin, end = self.cleaned_data.get("valid_from"), self.cleaned_data.get("valid_to")
        if begin and end and end < begin:
            self.add_error("valid_to", _("Must not be before the day from which it holds."))
        return self.cleaned_data

    @property
    def changes(self) -> dict[str, Any]:
        """Return the changes for ``gate.edit_memory``. An unchanged day is left out, so that its time of day stays."""
        found = {"content": self.cleaned_data["content"], "category": self.cleaned_data["category"] or None}
        for name, at in (("valid_from", time.min), ("valid_to", time.max)):
            if name in self.changed_data and self.add_prefix(name) in self.data:
                day = self.cleaned_data[name]
                found[name] = datetime.combine(day, at, UTC) if day else None
        return found

    @property
    def seen(self) -> set[str] | None:
        version = self.cleaned_data["version"]
        return {version} if version else None

    def over(self, newer: Memory) -> EditForm:
        """Return a form with the typed values that is saved over the ``newer`` version."""
        return type(self).of(
            newer, data={**dict(self.data.items()), self.add_prefix("version"): version_of(newer)}
        )
