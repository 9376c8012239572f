"""An artifact on its way to a browser: as a file, or as a page that runs where it can reach nothing.

What runs was written by a model, perhaps at somebody else's wish. It gets an origin of its own (``sandbox`` without
``allow-same-origin``, said by the frame and by the answer itself), no network, and no way to lead the page around it
anywhere (docs/security.md).
"""

from __future__ import annotations

import re

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from django.utils.text import slugify

from workspaces.models import Artifact, ArtifactKind, ArtifactVersion

NO_NETWORK = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "media-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)
# No policy that all browsers know keeps WebRTC from the network. Chromium has a header for it; others find no WebRTC in
# the page, nor any frame within it, where they would: a frame goes before it can run anything. Shadow
# roots are watched from their making, so none is made elsewhere: none is declared in the page's own text, and what
# could declare or copy one while it runs (``document.write``, ``…HTMLUnsafe``, clonable roots) puts in plain HTML, or
# is gone. What the script relies on later is held here, since the page may put something else in its place.
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
OF_LANGUAGES = {
    **{
        "python": "py",
        "javascript": "js",
        "typescript": "ts",
        "bash": "sh",
        "shell": "sh",
        "rust": "rs",
        "ruby": "rb",
    },
    **dict.fromkeys(
        ("c", "cpp", "cs", "css", "go", "html", "java", "js", "json", "kt", "lua", "php", "py", "r"), ""
    ),
    **dict.fromkeys(("rb", "rs", "sh", "sql", "svg", "swift", "toml", "ts", "tsx", "xml", "yaml", "yml"), ""),
}


def file_name(artifact: Artifact, language: str) -> str:
    ending = ENDINGS.get(ArtifactKind(artifact.kind)) or (
        (OF_LANGUAGES[language] or language) if language in OF_LANGUAGES else "txt"
    )
    return f"{slugify(artifact.title)[:80] or 'artifact'}.{ending}"


def download(artifact: Artifact, version: ArtifactVersion) -> HttpResponse:
    """Always as a download, never as something to run."""
    response = HttpResponse(version.content.encode(), content_type="application/octet-stream")
    name = file_name(artifact, version.language)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    response["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
    return response


def frame(version: ArtifactVersion) -> HttpResponse:
    """The page itself, for a frame of the artifact's page."""
    doctype = _DOCTYPE.match(version.content)
    begins = doctype.end() if doctype else 0
    written = _DECLARED.sub("data-shadow-", version.content[begins:])
    page = version.content[:begins] + WITHOUT_WEBRTC + written
    response = HttpResponse(page.encode(), content_type="text/html; charset=utf-8", headers=NO_CONNECTIONS)
    response["Content-Security-Policy"] = NO_NETWORK
    response["X-Frame-Options"] = "SAMEORIGIN"  # for browsers that know no frame-ancestors
    response["Referrer-Policy"] = "no-referrer"
    response["X-DNS-Prefetch-Control"] = "off"
    return response
