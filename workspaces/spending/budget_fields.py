"""Form fields of a budget: for owners on the page of usage, for administrators beside a person."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class BudgetFields(forms.Form):
    tokens = forms.IntegerField(label=_("Tokens per month"), required=False, min_value=0)
    money = forms.DecimalField(
        label=_("Cost per month"),
        required=False,
        min_value=0,
        decimal_places=2,
        max_digits=13,
        help_text=_(
            "Only calls of models with a price count. Leave both empty and there is no limit; a warning comes at 80%."
        ),
    )
