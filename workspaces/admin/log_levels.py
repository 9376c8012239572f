"""What is logged, changed by superusers on a page of the admin: everywhere without a restart, and back by itself."""

from __future__ import annotations

import logging
from typing import Any, cast

from django import forms
from django.contrib import admin
from django.contrib.admin.helpers import AdminForm
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone

from memoryhub.monitoring import log_levels
from workspaces import audit
from workspaces.admin.superusers import is_superuser
from workspaces.models import User

FOR_MINUTES = 30


class LevelForm(forms.Form):
    logger = forms.CharField(
        max_length=64,  # as much as a word of the audit log
        help_text="As modules are called, such as memories.recalling. Those of libraries stay as they are.",
        widget=forms.TextInput(attrs={"list": "loggers", "autocomplete": "off", "class": "vTextField"}),
    )
    level = forms.ChoiceField(choices=[(each, each) for each in log_levels.LEVELS])
    minutes = forms.IntegerField(
        initial=FOR_MINUTES,
        min_value=1,
        max_value=log_levels.MOST_MINUTES,
        help_text="After these it is as the settings have it.",
    )


def page(request: HttpRequest) -> HttpResponse:
    """Which levels are changed, and until when; ``POST`` changes one, or with ``back`` all back to the settings."""
    if not is_superuser(request):
        raise PermissionDenied
    now = timezone.now()
    form = LevelForm(request.POST if request.method == "POST" and "back" not in request.POST else None)
    if request.method == "POST" and (not form.is_bound or form.is_valid()):
        try:
            _change(cast(User, request.user), form.cleaned_data if form.is_bound else None)
        except log_levels.NoSuchLevel as error:
            form.add_error("logger", str(error))
        else:
            return redirect("admin:log_levels")
    context = {
        **admin.site.each_context(request),
        "title": "Log levels",
        "changed": [(name, *found) for name, found in sorted(log_levels.wanted(now).items())],
        "adminform": AdminForm(form, [(None, {"fields": list(form.fields)})], {}),  # type: ignore[arg-type]
        "errors": form.errors,
        "loggers": sorted(name for name in logging.root.manager.loggerDict if log_levels.is_ours(name)),
    }
    return TemplateResponse(request, "admin/log_levels.html", context)


def _change(by: User, wanted: dict[str, Any] | None) -> None:
    now = timezone.now()
    with transaction.atomic():
        if wanted is None:
            log_levels.set_back(now=now)
        else:
            log_levels.set_level(wanted["logger"], wanted["level"], minutes=wanted["minutes"], now=now)
        audit.record(audit.Verb.LOGGING_CHANGED, by=by, details=wanted or {"level": "as_set"})


_usual = admin.site.get_urls


def _with_ours() -> list[URLPattern | URLResolver]:
    return [path("log-levels/", admin.site.admin_view(page), name="log_levels"), *_usual()]


admin.site.get_urls = _with_ours  # type: ignore[method-assign]
