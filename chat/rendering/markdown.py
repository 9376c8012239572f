"""Markdown of answers: rendered without raw HTML, then sanitised.

Some texts take long to render, so the cost is counted in steps of a ``Budget`` while rendering, and a text over its
budget is shown as written. ``chat.rendering.rendered`` sets budgets, ``tests/bench/bench_markdown.py``
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

# Of a host in plain letters: of others one cannot see whose they are. Up to a space or bracket, to signs and letters of
# scripts that put none between an address and what follows, and to signs that nobody sees or that turn the line round.
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9])[Hh]ttps?://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
    r"(?:[/?#][^\s<>\[\]{}\"`|\\\u0600-\u06ff\u200b-\u200f\u202a-\u202e\u2066-\u2069\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]*)?",
)
_AFTER = ".,;:!?'*_~\u2019\u201d\u2026\u00bb"  # ends the sentence, not the address


def with_addresses(tokens: Sequence[Token]) -> list[Token]:
    """Return these tokens of a line, with links for the addresses in its text; text within a link stays as it is."""
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
    """Return the address without punctuation of the sentence around it, and without a bracket that was opened before
    it.
    """
    address = address.rstrip(_AFTER)
    surplus = address.count(")") - address.count("(")
    bare = address.rstrip(")")
    closing = len(address) - len(bare)
    return address[: len(address) - min(closing, max(surplus, 0))].rstrip(_AFTER)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


RENDERER = 4  # counts up with every change of the output: stored HTML is rendered again
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
# Of this MemoryHub's own files pictures are shown: who may not read one gets none.
OWN_FILES = {"workspaces:document_content", "memories:asset"}
# Before the name of another image, which is a link to it: a page loads nothing from elsewhere.
PICTURE = "\u25a3"
BOXES = {"[ ] ": "\u2610", "[x] ": "\u2611", "[X] ": "\u2611"}  # of tasks
SCHEMES = {"http", "https", "mailto"}
COLOURED_LENGTH = 20_000  # what of a text's code is coloured: a block that goes beyond is shown plain
CODE_A_STEP = 2  # characters of it
SOURCE_A_STEP = (
    50  # characters of a text, of a line looked at again, and of what is made, that count as one step
)
TOKENS_A_STEP = 2
# What each of these costs, in steps, wherever it stands: a run of stars is looked at once and makes many tokens, and
# what may be a link is looked at closely.
SIGNS = {"\n": 1, "://": 4, "*": 1, "_": 1, "~": 1, "`": 1, "]": 1, "<": 4}


class TooHeavy(Exception):
    """A text costs more to render than its budget has."""


class Budget:
    """Steps of work, each a few microseconds; spending more of them than there are raises TooHeavy."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooHeavy


def _count_block(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Stands before the rules for blocks and fits nothing: every line looked at, by whichever of them, counts, and so
    does what was made since: one short row of a wide table is filled up with thousands of cells.
    """
    length, made = state.eMarks[line] - state.bMarks[line], len(state.tokens)
    state.env["budget"].spend(1 + length // SOURCE_A_STEP + (made - state.env["made"]) // TOKENS_A_STEP)
    state.env["made"] = made
    return False


def _count_inline(state: StateInline, silent: bool) -> bool:
    """Count the characters within a line, as ``_count_block`` does."""
    state.env["budget"].spend(1)
    return False


class _Inline(ParserInline):
    def skipToken(self, state: StateInline) -> None:
        """Count tokens skipped in search of the end of a link's label, which brackets repeat many times."""
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
    """Sanitised HTML. Links open outside and pass no referrer; code is coloured, each in a ``code-block``.

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
    """Return the tokens of a text. Raises TooHeavy."""
    budget.spend(len(text) // SOURCE_A_STEP + sum(text.count(sign) * cost for sign, cost in SIGNS.items()))
    env = {} if env is None else env
    env |= {"budget": budget, "made": 0}
    return _markdown.parse(text, env)


def _leave_plain(tokens: Sequence[Token], budget: Budget) -> None:
    """Code beyond what is coloured of one text loses the name of its language."""
    left = COLOURED_LENGTH
    for token in tokens:
        if token.type == "fence" and token.info:
            left -= len(token.content)
            if left < 0:
                token.info = ""
            else:
                budget.spend(len(token.content) // CODE_A_STEP)


def _align(token: Token) -> None:
    """Set a column's alignment as a class: the policy of pages refuses styles."""
    style = str(token.attrs.pop("style", ""))
    if style.startswith("text-align:"):
        token.attrSet("class", f"align-{style.removeprefix('text-align:')}")


def _mark_tasks(tokens: Sequence[Token]) -> None:
    """Render ``- [ ] this`` as a task: its box in place of the list's mark."""
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
    """Images from elsewhere become links; within a link such an image is its name alone."""
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
    """Count tokens before rendering: a short text can repeat a long link, or a table's empty cells, many times."""
    budget.spend(len(tokens) // TOKENS_A_STEP)
    for token in tokens:
        made = len(token.content) + sum(len(str(value)) for value in token.attrs.values())
        budget.spend(made // SOURCE_A_STEP)
        if token.children:
            _spend_on(token.children, budget)
