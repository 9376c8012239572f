"""Template tags that show the dashboard on the admin's index page, so that no custom AdminSite is needed."""

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
    """Return the static files of the workspace picker, or an empty string if the user may not use it."""
    return picker_media() if may_choose(context["request"]) else ""
