"""How nodes and their relations are asked for. The rules of the fields are those of ``memories.nodes.nodes``."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memories.models import MemoryNode
from memories.models.node import KIND_LENGTH, NODE_DESCRIPTION_LENGTH, NODE_NAME_LENGTH, RELATION_LENGTH
from workspaces.views.forms import DomainForm


def _offering(names: str) -> forms.TextInput:
    """A field of one line with suggestions: those of the page's ``<datalist>`` of this id."""
    return forms.TextInput(attrs={"list": names, "autocomplete": "off"})


class NodeForm(DomainForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=NODE_NAME_LENGTH,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": _("For example: Apollo")}),
    )
    kind = forms.CharField(
        label=_("Kind"), max_length=KIND_LENGTH, required=False, widget=_offering("usual-kinds")
    )
    description = forms.CharField(
        label=_("What it is"),
        max_length=NODE_DESCRIPTION_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    gathers_by_name = forms.BooleanField(
        label=_("Gather memories that name it"), required=False, initial=True
    )

    @classmethod
    def of(cls, node: MemoryNode) -> NodeForm:
        return cls(initial={name: getattr(node, name) for name in cls.base_fields}, auto_id="node-%s")


class RelationForm(DomainForm):
    """ "… works on Apollo": the other node is asked for by its name."""

    relation = forms.CharField(
        label=_("Relation"), max_length=RELATION_LENGTH, widget=_offering("usual-relations")
    )
    other = forms.CharField(
        label=_("The other topic"), max_length=NODE_NAME_LENGTH, widget=_offering("node-names")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "relation-%s")
        super().__init__(*args, **kwargs)
        self.fields["relation"].widget.attrs["placeholder"] = _("works on")
