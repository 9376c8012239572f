"""Pages of workspaces: their list, settings, members and deletion."""

from typing import Any

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from memoryhub.errors import NotFound
from memoryhub.llm.registry import embedder_is_local
from workspaces.access import get_workspace, owners_of_personal, workspaces_of
from workspaces.accounts import invitations
from workspaces.accounts.invitations import link_token, open_invitations
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.actions import workspaces
from workspaces.actions.purging import lines_of
from workspaces.model_choice import chosen_for, options_for
from workspaces.models import Invitation, Membership, Role, User, Workspace
from workspaces.views import PageRequest
from workspaces.views.forms import DeleteForm, InvitationForm, MemberForm, WorkspaceForm


@require_http_methods(["GET", "POST"])
def workspace_list(request: PageRequest) -> HttpResponse:
    form = WorkspaceForm(request.POST if request.method == "POST" else None)
    if workspace := form.done(lambda: workspaces.create_workspace(**form.cleaned_data, by=request.user)):
        return redirect("chat:workspace", workspace.public_id)
    user_workspaces = workspaces_of(request.user)
    context = {
        "workspaces": user_workspaces,
        "whose": owners_of_personal(user_workspaces, request.user),
        "form": form,
        "invited_to": invitations.invitations_of(request.user, now=timezone.now()),
    }
    return render(request, "workspaces/list.html", context, status=422 if form.errors else 200)


def _members(workspace: Workspace) -> list[Membership]:
    """Return the members. ``must_stay`` is True for the last owner, and for the owner of a personal workspace."""
    members = list(workspace.memberships.select_related("user"))
    owners = [member for member in members if member.role == Role.OWNER]
    for member in members:
        is_home = member.user_id == workspace.default_of_id
        member.must_stay = is_home or owners == [member]  # type: ignore[attr-defined]
    return members


def invitation_link(request: PageRequest, invitation: Invitation) -> str:
    return request.build_absolute_uri(reverse("workspaces:invitation", args=[link_token(invitation)]))


def _invitations(request: PageRequest, workspace: Workspace) -> dict[str, Any]:
    """Return the template context of open invitations, by link and to single users. Two queries.

    Each link invitation has its URL as ``link``.
    """
    now = timezone.now()
    invites = list(open_invitations(workspace, now=now))
    for each in invites:
        each.link = invitation_link(request, each)  # type: ignore[attr-defined]
    return {
        "invitations": invites,
        "invited": invitations.open_user_invitations(workspace, now=now),
        "invitation_form": InvitationForm(),
    }


def settings_page(request: PageRequest, workspace: Workspace, **forms: Any) -> HttpResponse:
    context = {
        "workspace": workspace,
        "is_owner": workspace.role == Role.OWNER,
        "members": _members(workspace),
        "roles": Role.choices,
        "form": WorkspaceForm(initial=_about(workspace)),
        "member_form": MemberForm(),
        "delete_form": DeleteForm(name=workspace.name),
        **(_invitations(request, workspace) if workspace.role == Role.OWNER else {}),
        "options": options_for(workspace, request.user, workspace.connection),
        "chosen": chosen_for(workspace, request.user),
        "embedder_is_local": embedder_is_local(),
    }
    # Not for htmx, which would show it as a notice.
    failed = not request.htmx and any(form.errors for form in forms.values())
    return render(request, "workspaces/settings.html", context | forms, status=422 if failed else 200)


def _about(workspace: Workspace) -> dict[str, str]:
    return {"name": workspace.name, "description": workspace.description}


@require_http_methods(["GET", "POST"])
def settings(request: PageRequest, ws_id: str) -> HttpResponse:
    if request.method == "GET":
        return settings_page(request, get_workspace(request.user, ws_id))
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    form = WorkspaceForm({**_about(workspace), **request.POST.dict()})

    def save() -> Workspace:
        sent = {name: value for name, value in form.cleaned_data.items() if name in request.POST}
        return workspaces.update_workspace(workspace, by=request.user, **sent)

    if form.done(save):
        notices.success(request, _("Saved."))
        return redirect("workspaces:settings", ws_id)
    return settings_page(request, get_workspace(request.user, ws_id), form=form)


@require_http_methods(["GET", "POST"])
def delete(request: PageRequest, ws_id: str) -> HttpResponse:
    """Delete a workspace after the person re-authenticated and typed its name. GET redirects to the settings."""
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    if request.method == "GET":
        return redirect("workspaces:settings", ws_id)
    form = DeleteForm(request.POST, name=workspace.name)
    if form.is_valid():
        ask_for_password(request)
        removed = form.done(lambda: workspaces.delete_workspace(workspace, by=request.user))
        if removed is not None:
            context = {"name": workspace.name, "report": {"lines": lines_of(removed)}}
            return render(request, "workspaces/removed.html", context)
    return settings_page(request, workspace, delete_form=form)


@require_POST
def add_member(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    form = MemberForm(request.POST)

    def add() -> Invitation:
        user, role = form.cleaned_data["username"], form.cleaned_data["role"]
        return invitations.invite(workspace, user=user, role=role, by=request.user, now=timezone.now())

    if form.done(add):
        name = form.cleaned_data["username"].shown_name
        notices.success(
            request, _("%(name)s is invited, and becomes a member on accepting.") % {"name": name}
        )
        return redirect("workspaces:settings", ws_id)
    return settings_page(request, workspace, member_form=form)


def _member(workspace: Workspace, user_id: str) -> User:
    membership = (
        Membership.objects.filter(workspace=workspace, user__public_id=user_id).select_related("user").first()
    )
    if membership is None:
        raise NotFound(_("There is no such member."))
    return membership.user


@require_POST
def change_role(request: PageRequest, ws_id: str, user_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    user = _member(workspace, user_id)
    changed = workspaces.change_role(workspace, user=user, role=request.POST.get("role", ""), by=request.user)
    names = {"name": user.shown_name, "role": changed.get_role_display().lower()}
    notices.success(request, _("%(name)s now has the role %(role)s.") % names)
    if request.htmx and user.pk == request.user.pk:  # the person may not change the rest of the page any more
        return HttpResponse(headers={"HX-Refresh": "true"})
    return redirect("workspaces:settings", ws_id)


@require_POST
def remove_member(request: PageRequest, ws_id: str, user_id: str) -> HttpResponse:
    """Remove a member, or leave the workspace."""
    workspace = get_workspace(request.user, ws_id)
    user = _member(workspace, user_id)
    workspaces.remove_member(workspace, user=user, by=request.user)
    if user.pk == request.user.pk:
        notices.success(request, _("You have left “%(name)s”.") % {"name": workspace.name})
        return redirect("workspaces:list")
    notices.success(request, _("%(name)s is no longer a member.") % {"name": user.shown_name})
    return redirect("workspaces:settings", ws_id)
