"""Pages of a workspace's artifacts: the list, a single one beside the chat or on its own page, and its versions."""

import re
from typing import Any

from django.contrib import messages as notices
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memoryhub.errors import Invalid, NotFound
from workspaces import artifacts
from workspaces.access import get_workspace, may_move_away, require_right_to_forget
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.artifacts import LooksSensitive, Stale, Written, forget_artifact, get_artifact
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.models import Artifact, ArtifactKind, ArtifactVersion, Role
from workspaces.models.documents import CONTENT_LENGTH, LANGUAGE_LENGTH, TITLE_LENGTH
from workspaces.views import PageRequest, reload_or_redirect
from workspaces.views.documents import compare
from workspaces.views.forms import destination, say_whose, whose

PAGE_SIZE = 50
VERSIONS_SHOWN = 100


def _artifact(
    request: PageRequest, ws_id: str, art_id: str, need: Role = Role.VIEWER, *, or_deleted: bool = False
) -> Artifact:
    workspace = get_workspace(request.user, ws_id, need=need)
    return get_artifact(request.user, art_id, workspace=workspace, or_deleted=or_deleted)


def _number(text: str | None, otherwise: int) -> int:
    """Return the version number in ``text``, or ``otherwise`` if it is empty. Raises NotFound for other text."""
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise NotFound(_("There is no such version of this artifact."))
    return int(text)


@require_http_methods(["GET", "POST"])
def artifact_list(request: PageRequest, ws_id: str) -> HttpResponse:
    """List the artifacts (GET), or save one that the person entered (POST)."""
    need = Role.EDITOR if request.method == "POST" else Role.VIEWER
    workspace = get_workspace(request.user, ws_id, need=need)
    context: dict[str, Any] = {"workspace": workspace, "kinds": ArtifactKind.choices}
    if request.method == "POST":
        sent = request.POST
        written = Written(sent.get("title", ""), sent.get("content", ""), sent.get("language", ""))
        try:
            artifact_row = artifacts.create_artifact(
                workspace,
                written,
                kind=sent.get("kind", ""),
                by=request.user,
                now=timezone.now(),
                personal=sent.get("personal") == "on",
                confirmed=sent.get("confirm") == "true",
            )
            return redirect("workspaces:artifact", ws_id, artifact_row.public_id)
        except Invalid as error:
            choices = {"kind": sent.get("kind", ""), "personal": sent.get("personal") == "on"}
            context |= {"sent": written, **choices, **_refusal_of(error)}
    visible_rows = within_policy(Artifact.objects.live(), workspace, request.user, DataPolicy.here(workspace))
    context |= {
        "can_write": Role(workspace.role).allows(Role.EDITOR),
        "page": Paginator(visible_rows.select_related("created_by"), PAGE_SIZE).get_page(
            request.GET.get("page")
        ),
        "lengths": {"title": TITLE_LENGTH, "language": LANGUAGE_LENGTH, "content": CONTENT_LENGTH},
    }
    return render(request, "artifacts/list.html", context, status=422 if "problem" in context else 200)


@require_http_methods(["GET", "POST"])
def artifact(request: PageRequest, ws_id: str, art_id: str) -> HttpResponse:
    """Show an artifact (GET), or save an edit as a new version (POST). ``?version=`` shows an earlier version.

    For htmx it is shown in the panel beside the chat.
    """
    if request.method == "GET":
        return show(request, _artifact(request, ws_id, art_id))
    artifact_row = _artifact(request, ws_id, art_id, Role.EDITOR)
    sent = request.POST
    typed = Written(
        sent.get("title", ""), sent.get("content", ""), sent.get("language", artifact_row.language)
    )
    seen = _number(sent.get("version"), 0)
    try:
        artifact_row = artifacts.update_artifact(
            artifact_row,
            title=typed.title,
            content=typed.content,
            language=typed.language,
            by=request.user,
            now=timezone.now(),
            seen={f"{artifact_row.public_id}-{seen}"} if seen else None,
            confirmed=sent.get("confirm") == "true",
        )
    except Stale as error:
        changed = compare(error.artifact.content, typed.content.replace("\r\n", "\n"))
        now_there = get_artifact(request.user, art_id)
        return show(
            request, now_there, {"sent": typed, "problem": error.message, "lines": changed}, status=409
        )
    except Invalid as error:
        return show(request, artifact_row, {"sent": typed, **_refusal_of(error)}, status=422)
    return show(request, artifact_row) if request.htmx else redirect("workspaces:artifact", ws_id, art_id)


def show(
    request: PageRequest, artifact_row: Artifact, more: dict[str, Any] | None = None, *, status: int = 200
) -> HttpResponse:
    """Render an artifact on its own page, or for htmx in the panel beside the chat.

    ``more``: more variables for the template's context.
    """
    number = _number(request.GET.get("version"), artifact_row.version)
    shows_source = artifact_row.kind != ArtifactKind.HTML or request.GET.get("show") == "source"
    context = {
        "workspace": artifact_row.workspace,
        "artifact": artifact_row,
        "shown": artifacts.get_version(artifact_row, number),
        "can_write": Role(artifact_row.role).allows(Role.EDITOR),
        "may_forget": may_move_away(artifact_row, request.user, artifact_row.role),
        **whose(artifact_row, request.user),
        "shows_source": shows_source,
        "lengths": {"title": TITLE_LENGTH, "language": LANGUAGE_LENGTH, "content": CONTENT_LENGTH},
        "in_panel": bool(request.htmx),
    }
    template = "artifacts/panel.html" if request.htmx else "artifacts/artifact.html"
    response = render(request, template, context | (more or {}), status=status)
    return beside_chat(response) if request.htmx else response


def beside_chat(response: HttpResponse) -> HttpResponse:
    """Make htmx show the response in the panel beside the chat, also if it contains an error."""
    response["HX-Retarget"], response["HX-Reswap"] = "#panel", "innerHTML"
    return response


def _refusal_of(error: Invalid) -> dict[str, Any]:
    """Return the error message, and whether the person may confirm and save anyway."""
    return {"problem": error.message, "asks": isinstance(error, LooksSensitive)}


@require_GET
def frame(request: PageRequest, ws_id: str, art_id: str) -> HttpResponse:
    """Return the HTML artifact, in the version of ``?version=`` or the newest, for the sandboxed frame of its page.

    Outside of a frame, redirect to the artifact's page. Raises NotFound for other kinds of artifacts.
    """
    artifact_row = _artifact(request, ws_id, art_id)
    if artifact_row.kind != ArtifactKind.HTML:
        raise NotFound
    # In a tab of its own it could navigate to another site.
    if request.headers.get("Sec-Fetch-Dest", "iframe") != "iframe":
        return redirect("workspaces:artifact", ws_id, art_id)
    number = _number(request.GET.get("version"), artifact_row.version)
    return framed_page(artifacts.get_version(artifact_row, number))


@require_GET
def download(request: PageRequest, ws_id: str, art_id: str) -> HttpResponse:
    artifact_row = _artifact(request, ws_id, art_id)
    number = _number(request.GET.get("version"), artifact_row.version)
    return as_download(artifact_row, artifacts.get_version(artifact_row, number))


@require_GET
def versions(request: PageRequest, ws_id: str, art_id: str) -> HttpResponse:
    """List all versions, and show what changed between two of them, by default the newest two."""
    artifact_row = _artifact(request, ws_id, art_id)
    after = artifacts.get_version(artifact_row, _number(request.GET.get("to"), artifact_row.version))
    before = artifacts.get_version(artifact_row, _number(request.GET.get("from"), max(1, after.number - 1)))
    context = {
        "workspace": artifact_row.workspace,
        "artifact": artifact_row,
        "can_write": Role(artifact_row.role).allows(Role.EDITOR),
        "before": before,
        "after": after,
        "lines": compare(before.content, after.content),
        "all_versions": artifact_row.versions.select_related("by").defer("content")[:VERSIONS_SHOWN],
    }
    return render(request, "artifacts/versions.html", context)


@require_POST
def back(request: PageRequest, ws_id: str, art_id: str) -> HttpResponse:
    artifact_row = _artifact(request, ws_id, art_id, Role.EDITOR)
    number = _number(request.POST.get("number"), 0)
    artifacts.restore_version(artifact_row, number, by=request.user, now=timezone.now())
    notices.success(request, _("Version %(number)s is the newest again.") % {"number": number})
    return redirect("workspaces:artifact", ws_id, art_id)


@require_POST
def undo(request: PageRequest, ws_id: str, art_id: str) -> HttpResponse:
    """Undo one change, from a notice or from the log of the model's tool calls."""
    artifact_row = _artifact(request, ws_id, art_id, Role.EDITOR)
    artifacts.undo(artifact_row, _number(request.POST.get("version"), 1), by=request.user, now=timezone.now())
    return render(request, "artifacts/undone.html", {"workspace": artifact_row.workspace})


@require_POST
def delete(request: PageRequest, ws_id: str, art_id: str) -> HttpResponse:
    artifact_row = _artifact(request, ws_id, art_id, Role.EDITOR)
    artifacts.delete(artifact_row, by=request.user, now=timezone.now())
    undo_url = reverse("workspaces:restore_artifact", args=[ws_id, art_id])
    notices.success(request, _("“%(name)s” is deleted.") % {"name": artifact_row.title}, extra_tags=undo_url)
    return redirect("workspaces:artifacts", ws_id)


@require_POST
def restore(request: PageRequest, ws_id: str, art_id: str) -> HttpResponse:
    artifact_row = _artifact(request, ws_id, art_id, Role.EDITOR, or_deleted=True)
    artifacts.restore(artifact_row, by=request.user, now=timezone.now())
    return reload_or_redirect(request, "workspaces:artifact", ws_id, art_id)


@require_POST
def move(request: PageRequest, ws_id: str, art_id: str) -> HttpResponse:
    """Move an artifact to the workspace or person chosen in the form."""
    artifact_row = _artifact(request, ws_id, art_id, Role.EDITOR)
    moved = artifacts.move(artifact_row, destination(request), by=request.user)
    say_whose(request, moved)
    return redirect("workspaces:artifact", moved.workspace.public_id, art_id)


@require_http_methods(["GET", "POST"])
def forget(request: PageRequest, ws_id: str, art_id: str) -> HttpResponse:
    """Ask for confirmation (GET), or remove an artifact permanently, whether deleted or live (POST)."""
    artifact_row = _artifact(request, ws_id, art_id, Role.EDITOR, or_deleted=True)
    require_right_to_forget(artifact_row, request.user)
    ask_for_password(request)
    if request.method == "GET":
        back = reverse("workspaces:artifacts", args=[ws_id])
        context = {"workspace": get_workspace(request.user, ws_id), "artifact": artifact_row, "back": back}
        return render(request, "artifacts/forget.html", context)
    forget_artifact(artifact_row, by=request.user)
    notices.success(request, _("“%(name)s” has been deleted for good.") % {"name": artifact_row.title})
    return redirect("workspaces:artifacts", ws_id)


# Responses with an artifact: a download, or a page that runs without access to anything else.
#
# The page's code was written by a model, possibly on behalf of an attacker. It gets an origin of its own (``sandbox``
# without ``allow-same-origin``, set by the frame and by the response), no network, and no way to navigate the page
# around it (docs/security.md).

NO_NETWORK = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "media-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)
# There is no policy in all browsers that keeps WebRTC from the network. Chromium has a header for it. For the others, a
# script removes WebRTC from the page, and removes each frame, which would have it, before the frame can run anything.
# The script also watches each shadow root from its creation, so no other way to create one may remain: declarations in
# the page's text are renamed, and functions that could declare or copy a root later (``document.write``,
# ``…HTMLUnsafe``, clonable roots) insert plain HTML or are removed. The script keeps its own references to functions
# that it calls later, since the page may replace them.
NO_CONNECTIONS = {"Connection-Allowlist": "()"}
WITHOUT_WEBRTC = """<script>{
  const gone = (holder, name) => {
    delete holder[name];
    Object.defineProperty(holder, name, { value: undefined });
  };
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection"]) gone(window, name);
  const { apply } = Reflect, Observer = MutationObserver, { observe } = Observer.prototype;
  const { remove, attachShadow, insertAdjacentHTML } = Element.prototype;
  const watch = (root, { querySelectorAll }) => {
    const clear = () => {
      const found = apply(querySelectorAll, root, ["iframe, frame, object, embed, fencedframe, portal"]);
      for (let at = 0; found[at]; at++) apply(remove, found[at], []);
    };
    apply(observe, new Observer(clear), [root, { __proto__: null, childList: true, subtree: true }]);
  };
  watch(document, Document.prototype);
  Element.prototype.attachShadow = function (given) {
    const root = apply(attachShadow, this, [{ __proto__: null, ...given, clonable: false }]);
    watch(root, DocumentFragment.prototype);
    return root;
  };
  for (const holder of [Element.prototype, ShadowRoot.prototype, Document.prototype, Document]) {
    for (const name of Object.getOwnPropertyNames(holder)) if (/unsafe/i.test(name)) gone(holder, name);
  }
  gone(window, "XSLTProcessor");
  const { parseFromString } = DOMParser.prototype;  // its third parameter once let roots be declared
  DOMParser.prototype.parseFromString = function (text, type) {
    return apply(parseFromString, this, [text, type]);
  };
  Document.prototype.write = Document.prototype.writeln = function (...parts) {
    const script = document.currentScript;
    const [place, where] = script ? [script, "beforebegin"] : [document.body, "beforeend"];
    apply(insertAdjacentHTML, place, [where, parts.join("")]);
  };
}</script>"""
_DECLARED = re.compile("shadowroot(?=mode)", re.IGNORECASE)
_DOCTYPE = re.compile(r"\s*<!doctype[^>]*>", re.IGNORECASE)
ENDINGS = {ArtifactKind.MARKDOWN: "md", ArtifactKind.TABLE: "md", ArtifactKind.HTML: "html"}
ENDINGS_OF_LANGUAGES = {
    "python": "py", "javascript": "js", "typescript": "ts", "bash": "sh", "shell": "sh", "rust": "rs", "ruby": "rb",
}  # fmt: skip
OWN_ENDINGS = {
    "c", "cpp", "cs", "css", "go", "html", "java", "js", "json", "kt", "lua", "php", "py", "r", "rb", "rs", "sh", "sql",
    "svg", "swift", "toml", "ts", "tsx", "xml", "yaml", "yml",
}  # fmt: skip


def file_name(artifact: Artifact, language: str) -> str:
    ending = ENDINGS.get(ArtifactKind(artifact.kind)) or ENDINGS_OF_LANGUAGES.get(language)
    ending = ending or (language if language in OWN_ENDINGS else "txt")
    return f"{slugify(artifact.title)[:80] or 'artifact'}.{ending}"


def as_download(artifact: Artifact, version: ArtifactVersion) -> HttpResponse:
    """Return a version as a download that browsers do not run."""
    response = HttpResponse(version.content.encode(), content_type="application/octet-stream")
    name = file_name(artifact, version.language)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    response["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
    return response


def framed_page(version: ArtifactVersion) -> HttpResponse:
    """Return an HTML artifact as a page without network access, to run in the frame of the artifact's page."""
    doctype = _DOCTYPE.match(version.content)
    begins = doctype.end() if doctype else 0
    written = _DECLARED.sub("data-shadow-", version.content[begins:])
    page = version.content[:begins] + WITHOUT_WEBRTC + written
    response = HttpResponse(page.encode(), content_type="text/html; charset=utf-8", headers=NO_CONNECTIONS)
    response["Content-Security-Policy"] = NO_NETWORK
    response["X-Frame-Options"] = "SAMEORIGIN"  # for browsers without support for frame-ancestors
    response["Referrer-Policy"] = "no-referrer"
    response["X-DNS-Prefetch-Control"] = "off"
    return response
