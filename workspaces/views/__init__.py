"""Shared parts of page views: the type of their requests, and reloading the page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django_htmx.middleware import HtmxDetails

from workspaces.models import User


class PageRequest(HttpRequest):
    """A request of a signed-in user, with django-htmx's attributes."""

    user: User
    htmx: HtmxDetails


def reload_or_redirect(request: PageRequest, *to: str) -> HttpResponse:
    """Reload the page after a request by htmx, such as a notice's Undo button. Redirect other requests to ``to``."""
    return HttpResponse(headers={"HX-Refresh": "true"}) if request.htmx else redirect(*to)
