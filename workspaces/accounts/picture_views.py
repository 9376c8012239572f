"""A person's picture: brought and taken away on the profile, and shown beside what they say."""

from __future__ import annotations

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_GET, require_POST

from memoryhub.errors import DomainError, Invalid
from memoryhub.http.files import SHUT, require_fitting
from workspaces.accounts import pictures
from workspaces.pages.page_request import PageRequest


@csrf_exempt  # not before the length is looked at: checking the token reads the whole form
def change(request: PageRequest) -> HttpResponse:
    require_fitting(request, pictures.MOST_BYTES)
    return _change(request)


@csrf_protect
@require_POST
def _change(request: PageRequest) -> HttpResponse:
    """The ``file`` is theirs from now on; without one, ``remove`` takes away what was."""
    file = request.FILES.get("file")
    try:
        if file is not None:
            pictures.set_picture(request.user, file.chunks(), now=timezone.now())
        elif "remove" in request.POST:
            pictures.remove_picture(request.user)
        else:
            raise Invalid(_("Choose a file first."))
        notices.success(request, _("Saved."))
    except DomainError as error:
        notices.error(request, error.message)
    if request.htmx:  # it stands in other places of the page, too
        return HttpResponse(headers={"HX-Refresh": "true"})
    return redirect(reverse("workspaces:profile") + "#picture")


@require_GET
def picture(request: PageRequest, user_id: str) -> HttpResponse:
    """Another one has another address (``?v=``), so that a browser asks once."""
    response = HttpResponse(
        pictures.picture_of(request.user, user_id), content_type="image/jpeg", headers=SHUT
    )
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return response
