"""The panel's form for one memory. The rules of the fields are the gate's; here is only how they are asked for."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memories.models import Memory
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH
from memories.versions import version_of


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

    def add_domain_errors(self, message: str, fields: dict[str, str]) -> None:
        """What the gate refused, at the field it is about."""
        named = {name: text for name, text in fields.items() if name in self.fields}
        if not named:
            self.add_error("content", message)
        for name, text in named.items():
            self.add_error(name, message if len(named) == 1 else f"{message} {text}")


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
