"""The request type of page views: signed in, and with django-htmx's attributes."""

from __future__ import annotations

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from workspaces.models import User


class PageRequest(HttpRequest):
    """A request as the middleware hands it on: of somebody signed in, with htmx's details."""

    user: User
    htmx: HtmxDetails
