"""Page of saved prompts, and the suggestions after “/” is typed in the message field."""

from typing import Any

from django import forms
from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat.chats import saved_prompts
from chat.models import SavedPrompt
from workspaces.access import get_workspace
from workspaces.models import Role, Workspace
from workspaces.views import PageRequest
from workspaces.views.forms import DomainForm


class PromptForm(DomainForm):
    name = forms.CharField(
        label=later("Name"),
        max_length=saved_prompts.NAME_LENGTH,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=later("To use it, type / and the first letters in an empty message."),
    )
    text = forms.CharField(
        label=later("Prompt"),
        max_length=saved_prompts.TEXT_LENGTH,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text=later(
            "You are asked for everything in {{double braces}}, such as {{name}} or {{topic}}, each time."
        ),
    )
    personal = forms.TypedChoiceField(
        label=later("Visible to"),
        coerce=lambda value: value == "me",
        choices=[("me", later("Only me, in every workspace")), ("all", later("Everyone in this workspace"))],
    )

    def __init__(self, *args: Any, workspace: Workspace, fixed: bool = False, **kwargs: Any) -> None:
        """Remove the field ``personal`` if the scope cannot change (``fixed``) or the user is a viewer."""
        super().__init__(*args, **kwargs)
        if fixed or not Role(workspace.role).allows(Role.EDITOR):
            del self.fields["personal"]


@require_http_methods(["GET", "POST"])
def prompts(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id)
    form = PromptForm(request.POST if request.method == "POST" else None, workspace=workspace)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if saved_prompt := form.done(
        lambda: saved_prompts.save_prompt(workspace, **{"personal": True, **form.cleaned_data}, **who)
    ):
        notices.success(request, _("“%(name)s” is saved.") % {"name": saved_prompt.name})
        return redirect("chat:prompts", ws_id)
    return _page(request, workspace, form)


@require_http_methods(["GET", "POST"])
def prompt(request: PageRequest, ws_id: str, prompt_id: str) -> HttpResponse:
    workspace, saved_prompt = _load(request, ws_id, prompt_id)
    saved_prompts.require_own(saved_prompt, workspace, request.user)
    sent = request.POST if request.method == "POST" else None
    form = PromptForm(
        sent, workspace=workspace, fixed=True, initial={"name": saved_prompt.name, "text": saved_prompt.text}
    )
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if form.done(lambda: saved_prompts.update_prompt(saved_prompt, workspace, **form.cleaned_data, **who)):
        notices.success(request, _("Saved."))
        return redirect("chat:prompts", ws_id)
    return _page(request, workspace, form, saved_prompt)


@require_POST
def delete(request: PageRequest, ws_id: str, prompt_id: str) -> HttpResponse:
    workspace, saved_prompt = _load(request, ws_id, prompt_id)
    saved_prompts.delete_prompt(saved_prompt, workspace, by=request.user)
    notices.success(request, _("“%(name)s” is deleted.") % {"name": saved_prompt.name})
    return redirect("chat:prompts", ws_id)


@require_GET
def choices(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the first prompts that contain the text typed after “/”."""
    workspace = get_workspace(request.user, ws_id)
    q = request.GET.get("q", "").strip()[: saved_prompts.NAME_LENGTH]
    matching_prompts = list(saved_prompts.prompts_for(workspace, request.user, q)[: saved_prompts.OFFERED])
    context = {"prompts": matching_prompts, "workspace": workspace, "q": q}
    return render(request, "chat/prompts/choices.html", context)


def _load(request: PageRequest, ws_id: str, prompt_id: str) -> tuple[Workspace, SavedPrompt]:
    workspace = get_workspace(request.user, ws_id)
    return workspace, saved_prompts.get_prompt(request.user, workspace, prompt_id)


def _page(
    request: PageRequest, workspace: Workspace, form: PromptForm, changed: SavedPrompt | None = None
) -> HttpResponse:
    all_prompts = list(saved_prompts.prompts_for(workspace, request.user))
    for each in all_prompts:
        each.may_change = saved_prompts.may_change(each, workspace, request.user)  # type: ignore[attr-defined]
    context = {"workspace": workspace, "form": form, "prompts": all_prompts, "changed": changed}
    return render(request, "chat/prompts/page.html", context, status=422 if form.errors else 200)
