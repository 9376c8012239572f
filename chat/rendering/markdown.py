"""Markdown rendering of answers, without raw HTML and sanitised.

Some texts take long to render, so the cost is counted in steps of a ``Budget`` while rendering, and a text over its
budget is shown as plain source. ``chat.rendering.rendered`` sets the budgets; ``tests/bench/bench_markdown.py``
measures them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import nh3
from django.urls import Resolver404, resolve
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink, validateLink
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from chat.rendering import formulas
from chat.rendering.highlighting import coloured

# A URL whose host is ASCII, because other letters can imitate a host. The URL ends at a space or bracket, at characters
# of scripts that do not separate words by spaces, and at invisible or bidirectional control characters.
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9])[Hh]ttps?://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
    r"(?:[/?#][^\s<>\[\]{}\"`|\\\u0600-\u06ff\u200b-\u200f\u202a-\u202e\u2066-\u2069\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]*)?",
)
_AFTER = ".,;:!?'*_~\u2019\u201d\u2026\u00bb"  # punctuation that belongs to the sentence, not to the URL


def with_addresses(tokens: Sequence[Token]) -> list[Token]:
    """Return the inline tokens with links for the URLs in their text. Text inside a link stays unchanged."""
    made: list[Token] = []
    depth = 0
    for token in tokens:
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        made += [token] if depth or token.type != "text" else _split(token.content)
    return made


def _split(text: str) -> list[Token]:
    made, end = [], 0
    for match in _ADDRESS.finditer(text):
        shown = _trimmed(match[0])
        href = normalizeLink(shown)
        if not validateLink(href):
            continue
        attributes: dict[str, str | int | float] = {"href": href}
        made += [
            _text(text[end : match.start()]),
            Token("link_open", "a", 1, attrs=attributes),
            _text(shown),
            Token("link_close", "a", -1),
        ]
        end = match.start() + len(shown)
    return [*made, _text(text[end:])]


def _trimmed(address: str) -> str:
    """Return the URL without the sentence's punctuation, and without a closing bracket that was opened before the
    URL.
    """
    address = address.rstrip(_AFTER)
    surplus = address.count(")") - address.count("(")
    bare = address.rstrip(")")
    closing = len(address) - len(bare)
    return address[: len(address) - min(closing, max(surplus, 0))].rstrip(_AFTER)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


RENDERER = 4  # increase it with every change of the output, so that stored HTML is rendered again
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
        "img",
    ),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
    *formulas.TAGS,
}
_CLASSED = ("span", "div", "code", "li", "th", "td")
ATTRIBUTES = {
    "a": {"href", "title"},
    "ol": {"start"},
    "img": {"src", "alt", "loading"},
    **{tag: {"class"} for tag in _CLASSED},
    **formulas.ATTRIBUTES,
}
# Images are shown only from these views, which check the reader's access.
OWN_FILES = {"workspaces:document_content", "memories:asset"}
# Precedes the link to an external image, since a page loads nothing from other hosts.
PICTURE = "\u25a3"
BOXES = {"[ ] ": "\u2610", "[x] ": "\u2611", "[X] ": "\u2611"}  # task list items
SCHEMES = {"http", "https", "mailto"}
COLOURED_LENGTH = 20_000  # limit in characters of a text's highlighted code; blocks beyond it are plain
CODE_A_STEP = 2  # characters of highlighted code that count as one step
SOURCE_A_STEP = (
    50  # characters of a text, of a line that is read again, and of the output, that count as one step
)
TOKENS_A_STEP = 2
# Cost in steps of each occurrence: every star in a row becomes a token, and possible links take longer to parse.
SIGNS = {"\n": 1, "://": 4, "*": 1, "_": 1, "~": 1, "`": 1, "]": 1, "<": 4}


class TooHeavy(Exception):
    """An error raised when rendering a text costs more steps than its budget has."""


class Budget:
    """Steps of rendering work, each a few microseconds. Spending more than are left raises TooHeavy."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooHeavy


def _count_block(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Spend steps for each line that the block rules read, and for the tokens added since the last call.

    Runs before the other block rules and never matches. Tokens count because one short row of a wide table can be
    filled up with thousands of cells.
    """
    length, made = state.eMarks[line] - state.bMarks[line], len(state.tokens)
    state.env["budget"].spend(1 + length // SOURCE_A_STEP + (made - state.env["made"]) // TOKENS_A_STEP)
    state.env["made"] = made
    return False


def _count_inline(state: StateInline, silent: bool) -> bool:
    """Spend a step for each position that the inline rules read. Never matches."""
    state.env["budget"].spend(1)
    return False


class _Inline(ParserInline):
    def skipToken(self, state: StateInline) -> None:
        """Spend a step for each token skipped in search of the end of a link's label, which nested brackets repeat
        often.
        """
        state.env["budget"].spend(1)
        super().skipToken(state)


def _parser() -> MarkdownIt:
    made = MarkdownIt()
    made.inline = _Inline()
    made.configure("commonmark", {"html": False, "linkify": False, "breaks": True, "highlight": _code_block})
    made.enable(["table", "strikethrough"])
    made.block.ruler.before(
        "table", "count", _count_block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    made.inline.ruler.before("text", "count", _count_inline)
    formulas.add_formulas(made)
    return made


def _code_block(code: str, language: str, attributes: str) -> str:
    name = language.split(":")[0].strip().lower()
    return f'<pre><code class="language-{escape(name) or "text"}">{coloured(code, name)}</code></pre>'


_markdown = _parser()


def render_markdown(text: str, budget: Budget) -> SafeString:
    """Return sanitised HTML. External links send no referrer; highlighted code is wrapped in ``code-block``.

    Raises TooHeavy as soon as the text has cost more than the budget.
    """
    env: dict[str, Any] = {}
    tokens = parsed(text, budget, env)
    _leave_plain(tokens, budget)
    _mark_tasks(tokens)
    for token in tokens:
        _align(token)
        if token.children:
            token.children = with_addresses(_own_images(token.children))
    _spend_on(tokens, budget)
    html = _markdown.renderer.render(tokens, _markdown.options, env)
    budget.spend(len(html) // SOURCE_A_STEP)
    cleaned = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    wrapped = cleaned.replace("<pre>", '<div class="code-block"><pre>').replace("</pre>", "</pre></div>")
    return mark_safe(wrapped)  # noqa: S308  cleaned above


def parsed(text: str, budget: Budget, env: dict[str, Any] | None = None) -> list[Token]:
    """Return the Markdown tokens of a text. Raises TooHeavy if the text costs more than the budget."""
    budget.spend(len(text) // SOURCE_A_STEP + sum(text.count(sign) * cost for sign, cost in SIGNS.items()))
    env = {} if env is None else env
    env |= {"budget": budget, "made": 0}
    return _markdown.parse(text, env)


def _leave_plain(tokens: Sequence[Token], budget: Budget) -> None:
    """Remove the language of code blocks beyond COLOURED_LENGTH, so that they are not highlighted."""
    left = COLOURED_LENGTH
    for token in tokens:
        if token.type == "fence" and token.info:
            left -= len(token.content)
            if left < 0:
                token.info = ""
            else:
                budget.spend(len(token.content) // CODE_A_STEP)


def _align(token: Token) -> None:
    """Set a column's alignment as a class, because the content security policy refuses inline styles."""
    style = str(token.attrs.pop("style", ""))
    if style.startswith("text-align:"):
        token.attrSet("class", f"align-{style.removeprefix('text-align:')}")


def _mark_tasks(tokens: Sequence[Token]) -> None:
    """Render ``- [ ] text`` as a task, with a box instead of the list marker."""
    for item, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (item.type, paragraph.type, inline.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        first = inline.children[0] if inline.children else None
        box = BOXES.get(first.content[:4]) if first and first.type == "text" else None
        if first and inline.children and box:
            item.attrSet("class", "task")
            first.content = first.content[4:]
            inline.children.insert(
                0, Token("html_inline", "", 0, content=f'<span class="task__box">{box}</span>')
            )


def _own_images(tokens: Sequence[Token]) -> list[Token]:
    """Replace external images with links, or inside a link with the image's name."""
    made: list[Token] = []
    depth = 0
    for token in tokens:
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type != "image":
            made.append(token)
            continue
        source = str(token.attrs["src"])
        if _is_own_file(source):
            token.attrSet("loading", "lazy")
            made.append(token)
            continue
        name = Token("text", "", 0, content=f"{PICTURE} {token.content or source}")
        attributes: dict[str, str | int | float] = {"href": source}
        opening = Token("link_open", "a", 1, attrs=attributes)
        made += [name] if depth else [opening, name, Token("link_close", "a", -1)]
    return made


def _is_own_file(source: str) -> bool:
    try:
        return source.startswith("/") and resolve(source).view_name in OWN_FILES
    except Resolver404:
        return False


def _spend_on(tokens: Sequence[Token], budget: Budget) -> None:
    """Spend steps for tokens before rendering. A short text can repeat a long link or empty table cells many times."""
    budget.spend(len(tokens) // TOKENS_A_STEP)
    for token in tokens:
        made = len(token.content) + sum(len(str(value)) for value in token.attrs.values())
        budget.spend(made // SOURCE_A_STEP)
        if token.children:
            _spend_on(token.children, budget)
