"""Tokens and money on pages."""

from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from memoryhub.localization import grouped
from workspaces.models import User, Workspace
from workspaces.spending import usage_records as money
from workspaces.spending.budgets import Standing, standings
from workspaces.spending.monthly_usage import Line, Month
from workspaces.spending.usage_records import ABOUT, Bill

register = template.Library()
register.filter("amount", money.amount)
HEIGHT, STEP = 60, 10


@dataclass(frozen=True)
class Bar:
    x: int
    height: int
    day: date
    tokens: int

    @property
    def y(self) -> int:
        return HEIGHT - self.height


@register.filter
def bars(month: Month) -> Iterator[Bar]:
    """Yield a bar of the usage chart for each day of the month that has usage."""
    for line in month.days:
        if line.day is not None:
            height = max(1, round(HEIGHT * line.bill.tokens / (month.most or 1)))
            yield Bar((line.day.day - 1) * STEP, height, line.day, line.bill.tokens)


@register.filter
def last_of_month(first: date) -> date:
    return first.replace(day=monthrange(first.year, first.month)[1])


@register.simple_tag
def bill(value: Bill | dict[str, Any]) -> str:
    """Show a bill, such as "1,204 tokens in, 310 out, about $0.004"."""
    paid = value if isinstance(value, Bill) else Bill.from_json(value)
    amounts = {
        "read": grouped(paid.tokens_in),
        "written": grouped(paid.tokens_out),
        "cost": money.amount(paid.cost),
    }
    if paid.cost and paid.unpriced and paid.is_estimate:
        return _("About %(read)s tokens in, %(written)s out, at least %(cost)s (estimated)") % amounts
    if paid.cost and paid.unpriced:
        return _("%(read)s tokens in, %(written)s out, at least %(cost)s") % amounts
    if paid.cost and paid.is_estimate:
        return _("About %(read)s tokens in, %(written)s out, %(cost)s (estimated)") % amounts
    if paid.cost:
        return _("%(read)s tokens in, %(written)s out, about %(cost)s") % amounts
    if paid.is_estimate:
        return _("About %(read)s tokens in, %(written)s out (estimated)") % amounts
    return _("%(read)s tokens in, %(written)s out") % amounts


@register.filter
def counted(number: int, about: str = ABOUT) -> str:
    """Show a count, such as "1,204", or "≈ 1,204" if it was estimated."""
    return f"{about if number else ''}{grouped(number)}"


@register.filter
def costs(paid: Bill) -> str:
    """Show the cost of a bill, or a dash if it has no price."""
    if not paid.has_cost:
        return "\N{EN DASH}"
    cost = f"{paid.about if paid.cost else ''}{money.amount(paid.cost)}"
    return _("at least %(cost)s") % {"cost": cost} if paid.unpriced else cost


@register.simple_tag
def parts_of_bill(stored: dict[str, Any]) -> SafeString:
    """Show an answer's tokens by kind, such as cached or memory. Not a template, for speed."""
    paid = Bill.from_json(stored)
    rows = [
        (_("Tokens in"), counted(paid.tokens_in, paid.about)),
        (_("Cached"), counted(paid.cached, paid.about)),
        (_("Memory"), counted(paid.memory)),
        (_("Documents"), counted(paid.documents)),
        (_("Tools"), counted(paid.tools)),
        (_("Tokens out"), counted(paid.tokens_out, paid.about)),
    ]
    listed = format_html_join("", "<div><dt>{}</dt><dd>{}</dd></div>", rows)
    hint = format_html("<p>{}</p>", _("≈ marks an estimate.")) if ABOUT in listed else ""
    return format_html("<dl>{}</dl>{}", listed, hint)


@register.simple_tag
def near_budget(workspace: Workspace, user: User) -> Standing | None:
    """Return the budget with the largest used share if four fifths of it are used, else None. One query."""
    budgets = standings(workspace.pk, user.pk, now=timezone.now())
    return budgets[0] if budgets and budgets[0].is_near else None


@register.inclusion_tag("workspaces/usage_section.html")
def usage_section(id: str, title: str, label: str, lines: Sequence[Line], hint: str = "") -> dict[str, Any]:
    """Return the template context of a usage table under a heading. ``label``: the heading of its first column."""
    return {"id": id, "title": title, "label": label, "lines": lines, "hint": hint}


@register.inclusion_tag("workspaces/usage_table.html")
def usage_table(lines: Sequence[Line], label: str) -> dict[str, Any]:
    return {"lines": lines, "label": label}
