"""Which workspace a page of the admin is narrowed to: ``?workspace=`` and the box that sets it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memories.models import Memory
from workspaces.admin_kit.filters import WorkspaceFilter
from workspaces.models import Workspace


def chosen_workspace(request: HttpRequest) -> Workspace | None:
    """None means all of them: nothing or nonsense was asked for, or this person may not look at workspaces."""
    asked = request.GET.get("workspace", "")
    if not (asked.isascii() and asked.isdigit() and len(asked) < 18 and may_choose(request)):
        return None
    return Workspace.objects.filter(pk=int(asked)).first()


def may_choose(request: HttpRequest) -> bool:
    return request.user.has_perm("workspaces.view_workspace")


def picker(workspace: Workspace | None) -> SafeString:
    """A search box over all workspaces. Its files are those of ``picker_media``."""
    widget = WorkspaceFilter.widget_of(Memory, admin.site)
    field = forms.ModelChoiceField(Workspace.objects.all(), required=False, widget=widget)
    chosen: Any = workspace.pk if workspace else ""
    return field.widget.render("workspace", str(chosen), {"id": "choose-workspace"})


def picker_media() -> forms.Media:
    return WorkspaceFilter.widget_of(Memory, admin.site).media
