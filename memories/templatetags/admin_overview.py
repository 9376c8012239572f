"""Puts the dashboard on the admin's first page without an admin site of our own."""

from __future__ import annotations

from typing import Any

from django import forms, template
from django.utils import timezone

from memories.admin.dashboard import dashboard
from memories.admin.side_by_side import may_choose, picker_media

register = template.Library()


@register.inclusion_tag("admin/dashboard.html", takes_context=True)
def admin_dashboard(context: dict[str, Any]) -> dict[str, Any]:
    request = context["request"]
    return dashboard(request, timezone.now()) | {"request": request, "csrf_token": context.get("csrf_token")}


@register.simple_tag(takes_context=True)
def dashboard_media(context: dict[str, Any]) -> forms.Media | str:
    """The files of the box that chooses a workspace."""
    return picker_media() if may_choose(context["request"]) else ""
