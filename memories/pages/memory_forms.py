"""The panel's form for one memory. The rules of the fields are the gate's; here is only how they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
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

    asks: str | None = None  # what a number looks like that is stored only if its person says so once more

    @property
    def confirmed(self) -> bool:
        """The person was asked, and pressed “Save anyway”. The answer goes with the button alone, so the next asks."""
        return self.data.get("confirm") == "true"

    def add_domain_errors(self, error: Invalid) -> None:
        """What the gate refused, at the field it is about; a number of somebody's own is a question of the form's."""
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
    """Whose a memory is to be: everyone's in the workspace, unless it is said."""

    def clean(self, value: Any) -> Any:
        return super().clean(value or Scope.WORKSPACE)


class AddForm(MemoryForm):
    """Of a new one: it also asks whose it is to be."""

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
        """What the form says, by the names of a draft, except for ``agent_id``."""
        whose = self.cleaned_data["whose"]
        of_agent = whose not in Scope.values
        return {
            "content": self.cleaned_data["content"],
            "category": self.cleaned_data["category"] or None,
            "scope": Scope.AGENT if of_agent else whose,
            "agent_id": whose if of_agent else None,
        }


class EditForm(MemoryForm):
    """Of a memory that is there: it knows which version its person was shown."""

    version = forms.CharField(required=False, widget=forms.HiddenInput)

    @classmethod
    def of(cls, memory: Memory, **kwargs: Any) -> EditForm:
        initial = {
            "content": memory.content,
            "category": memory.category or "",
            "version": version_of(memory),
        }
        return cls(initial=initial, prefix=memory.public_id, **kwargs)

    @property
    def seen(self) -> set[str] | None:
        version = self.cleaned_data["version"]
        return {version} if version else None

    def over(self, newer: Memory) -> EditForm:
        """What was typed, to be saved over the memory as it is now."""
        return type(self).of(
            newer, data={**dict(self.data.items()), self.add_prefix("version"): version_of(newer)}
        )
