"""An artifact on its way to a browser: as a file, or as a page that runs where it can reach nothing.

What runs was written by a model, perhaps at somebody else's wish. It gets an origin of its own (``sandbox`` without
``allow-same-origin``, said by the frame and by the answer itself), no network, and no way to lead the page around it
anywhere (docs/security.md).
"""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from django.utils.text import slugify

from workspaces.models import Artifact, ArtifactKind, ArtifactVersion

NO_NETWORK = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "media-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)
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
    response = HttpResponse(version.content.encode(), content_type="text/html; charset=utf-8")
    response["Content-Security-Policy"] = NO_NETWORK
    response["X-Frame-Options"] = "SAMEORIGIN"  # for browsers that know no frame-ancestors
    response["Referrer-Policy"] = "no-referrer"
    response["X-DNS-Prefetch-Control"] = "off"
    return response
