"""Template tag that shows the overview on the admin's index page. It makes a custom AdminSite unnecessary."""

from typing import Any

from django import template
from django.utils import timezone

from memories.admin.overview import overview

register = template.Library()


@register.inclusion_tag("admin/overview.html", takes_context=True)
def admin_overview(context: dict[str, Any]) -> dict[str, Any]:
    return {"groups": overview(context["user"], timezone.now())}
