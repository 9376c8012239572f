"""Pages of invitations: made and revoked by owners, accepted or declined by those invited."""

from typing import Any

from django.conf import settings as conf
from django.contrib import messages as notices
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from memoryhub.errors import NotFound
from memoryhub.localization import isolated
from workspaces.access import get_workspace
from workspaces.accounts import invitations
from workspaces.accounts.invitations import Ended
from workspaces.models import Membership, Role
from workspaces.views import PageRequest
from workspaces.views.forms import InvitationForm
from workspaces.views.workspaces import invitation_link, settings_page


@require_POST
def create(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    form = InvitationForm(request.POST)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    invite = form.done(lambda: invitations.create_invitation(workspace, **form.cleaned_data, **who))
    if invite is None:
        return settings_page(request, workspace, invitation_form=form)
    if invite.email:
        invitations.send_by_mail(invite, link=invitation_link(request, invite))
        notices.success(request, _("The invitation is on its way to %s.") % invite.email)
    else:
        notices.success(request, _("The link is ready: copy it and pass it on."))
    return redirect(reverse("workspaces:settings", args=[ws_id]) + "#invitations")


@require_POST
def revoke(request: PageRequest, ws_id: str, invitation_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    invitations.revoke_invitation(workspace, invitation_id, by=request.user, now=timezone.now())
    notices.success(request, _("The invitation is revoked. Anyone who has joined stays a member."))
    return redirect(reverse("workspaces:settings", args=[ws_id]) + "#invitations")


@login_not_required
@require_safe
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation's sender, workspace and role. GET changes nothing, because mail scanners open links too."""
    try:
        invite = invitations.read_link(token, by=request.user.pk, now=timezone.now())
    except (Ended, NotFound) as error:
        return render(request, "workspaces/invitation_ended.html", {"error": error}, status=error.status)
    mine = Membership.objects.filter(workspace=invite.workspace, user=request.user.pk)
    if mine.exists():
        return redirect("chat:workspace", invite.workspace.public_id)
    context = {"invitation": invite, "token": token, "signup_is_open": conf.SIGNUP_OPEN}
    return render(request, "workspaces/invitation.html", context)


@require_http_methods(["GET", "POST"])
def accept(request: PageRequest, token: str) -> HttpResponse:
    """Accept an invitation. GET redirects to its page, because it follows a sign-in."""
    if request.method == "GET":
        return redirect("workspaces:invitation", token)
    try:
        membership = invitations.accept(token, by=request.user, now=timezone.now())
    except (Ended, NotFound) as error:
        return render(request, "workspaces/invitation_ended.html", {"error": error}, status=error.status)
    notices.success(
        request, _("You are now a member of “%(name)s”.") % {"name": isolated(membership.workspace.name)}
    )
    return redirect("chat:workspace", membership.workspace.public_id)


@require_POST
def answer(request: PageRequest, invitation_id: str) -> HttpResponse:
    """Accept or decline an invitation to oneself, or hide it until the next sign-in ("Not now")."""
    which: dict[str, Any] = {"by": request.user, "now": timezone.now(), "public_id": invitation_id}
    choice = request.POST.get("answer")
    if choice == "accept":
        membership = invitations.accept_invited(**which)
        notices.success(
            request, _("You are now a member of “%(name)s”.") % {"name": isolated(membership.workspace.name)}
        )
        return redirect("chat:workspace", membership.workspace.public_id)
    if choice == "decline":
        invitations.close_user_invitation(**which)
        notices.success(request, _("You declined the invitation."))
        return redirect("workspaces:list")
    mine = invitations.invitations_of(request.user, now=which["now"])
    if not mine.filter(public_id=invitation_id).exists():
        raise NotFound(_("There is no such invitation."))
    later = [*request.session.get("invitations_later", []), invitation_id]
    request.session["invitations_later"] = later[-50:]
    return redirect("chat:home")
