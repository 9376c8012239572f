"""Template tag for an artifact's text as HTML."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from chat.rendering.highlighting import coloured
from chat.rendering.markdown import COLOURED_LENGTH, Budget, TooHeavy, render_markdown
from chat.rendering.rendered import MESSAGE_STEPS
from workspaces.models import ArtifactKind, ArtifactVersion

register = template.Library()


@register.simple_tag
def artifact_html(shown: ArtifactVersion, kind: str) -> SafeString:
    """Render Markdown and tables, and highlight code.

    A text that is too expensive to render is shown as plain source.
    """
    text = shown.content
    if kind in (ArtifactKind.MARKDOWN, ArtifactKind.TABLE):
        try:
            return render_markdown(text, Budget(MESSAGE_STEPS))
        except TooHeavy:
            return format_html('<pre class="prose__plain">{}</pre>', text)
    language = "html" if kind == ArtifactKind.HTML else shown.language
    code = coloured(text, language if len(text) <= COLOURED_LENGTH else "")
    return mark_safe(f'<div class="code-block"><pre><code>{code}</code></pre></div>')  # noqa: S308  escaped by coloured
