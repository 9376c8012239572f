"""Pages for the files attached to memories."""

from django.conf import settings
from django.contrib import messages as notices
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memories import assets
from memories.access import get_memory
from memories.models import Asset, Memory
from memoryhub.errors import Invalid, NotFound
from memoryhub.stored_files import require_fitting
from workspaces.access import get_workspace
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.models import Role
from workspaces.views import PageRequest


def _memory(request: PageRequest, ws_id: str, mem_id: str, need: Role = Role.EDITOR) -> Memory:
    workspace = get_workspace(request.user, ws_id, need=need)
    return get_memory(request.user, mem_id, workspace=workspace, need=need)


def _asset(memory: Memory, asset_id: str) -> Asset:
    asset = memory.assets.filter(public_id=asset_id).first()
    if asset is None:
        raise NotFound(_("There is no such file."))
    asset.memory = memory
    return asset


def _show(request: PageRequest, memory: Memory) -> HttpResponse:
    context = {
        "memory": memory,
        "files": memory.assets.all(),
        "workspace": memory.workspace,
        "can_write": True,
    }
    return render(request, "memories/assets.html", context)


@csrf_exempt  # _attach checks the token, after the length: the check reads the whole body
def attach(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    require_fitting(request, settings.ASSET_MAX_BYTES)
    return _attach(request, ws_id, mem_id)


@csrf_protect
@require_POST
def _attach(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    memory = _memory(request, ws_id, mem_id)
    files = request.FILES.getlist("file")
    if len(files) != 1:
        raise Invalid(_("Choose one file."))
    content = files[0].chunks()
    assets.attach(memory, name=files[0].name or "", content=content, by=request.user, now=timezone.now())
    return _show(request, memory)


@require_GET
def get(request: PageRequest, ws_id: str, mem_id: str, asset_id: str) -> StreamingHttpResponse:
    return assets.download(_asset(_memory(request, ws_id, mem_id, Role.VIEWER), asset_id))


@require_http_methods(["GET", "POST"])
def remove(request: PageRequest, ws_id: str, mem_id: str, asset_id: str) -> HttpResponse:
    """Ask for confirmation on GET; permanently delete the file on POST. Both require the password."""
    memory = _memory(request, ws_id, mem_id)
    asset = _asset(memory, asset_id)
    ask_for_password(request)
    if request.method == "GET":
        workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
        context = {"workspace": workspace, "memory": memory, "asset": asset}
        return render(request, "memories/remove_file.html", context)
    assets.remove(asset, by=request.user)
    notices.success(request, _("The file “%(name)s” has been deleted.") % {"name": asset.name})
    return redirect("chat:workspace", ws_id)
