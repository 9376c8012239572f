"""Answers are Markdown from a model: rendered without raw HTML, then sanitised all the same."""

from __future__ import annotations

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

TAGS = {
    *(
        "p",
        "br",
        "hr",
        "strong",
        "em",
        "s",
        "code",
        "pre",
        "blockquote",
        "ul",
        "ol",
        "li",
        "a",
        "span",
        "div",
    ),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"a": {"href", "title"}, "span": {"class"}, "div": {"class"}, "code": {"class"}, "ol": {"start"}}
SCHEMES = {"http", "https", "mailto"}
HIGHLIGHTED_LENGTH = 20_000  # longer code is shown plain: colouring is not worth the wait
_formatter = HtmlFormatter(nowrap=True)


def _code_block(code: str, language: str, attributes: str) -> str:
    name = language.split(":")[0].strip().lower()
    try:
        lexer = get_lexer_by_name(name) if name and len(code) <= HIGHLIGHTED_LENGTH else None
    except ClassNotFound:
        lexer = None
    body = highlight(code, lexer, _formatter) if lexer else escape(code)
    return f'<pre><code class="language-{escape(name) or "text"}">{body}</code></pre>'


_markdown = MarkdownIt(
    "commonmark", {"html": False, "linkify": False, "breaks": True, "highlight": _code_block}
).enable(["table", "strikethrough"])
_markdown.disable("image")


def render_markdown(text: str) -> SafeString:
    """Sanitised HTML. Links open outside and pass no referrer; code is coloured, each in a ``code-block``."""
    cleaned = nh3.clean(
        _markdown.render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    wrapped = cleaned.replace("<pre>", '<div class="code-block"><pre>').replace("</pre>", "</pre></div>")
    return mark_safe(wrapped)  # noqa: S308  cleaned above
