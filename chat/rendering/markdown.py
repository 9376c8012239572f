"""Markdown rendering of answers: sanitised, without raw HTML, with formulas as MathML (docs/decisions/0021).

Some texts take long to render. The cost is therefore counted in steps of a ``Budget``, and a text that exceeds it is
shown as plain source. ``chat.rendering.stored_html`` sets the budgets; ``tests/bench/bench_markdown.py`` measures them.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import unescape
from typing import Any
from xml.etree.ElementTree import Element

import nh3
from django.urls import Resolver404, resolve
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink, validateLink
from markdown_it.parser_inline import ParserInline
from markdown_it.renderer import RendererProtocol
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from chat.rendering.highlighting import coloured

MOST = 2_000  # limit in characters of a formula
MOST_LINES = 60
STEPS_A_CHARACTER = 2  # steps of the budget (chat.rendering.markdown), measured at up to 12 microseconds each
PAIRS = {"$$": "$$", "\\[": "\\]", "\\(": "\\)", "$": "$"}
FORMULA_ATTRIBUTES: Mapping[str, set[str]] = {
    "math": {"display"},
    "mo": {"stretchy", "fence", "form", "minsize", "maxsize", "accent"},
    "mi": {"mathvariant"},
    "mtd": {"class"},
    "mover": {"accent"},
    "munder": {"accentunder"},
    "mfrac": {"linethickness"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mspace": {"width"},
    "mtable": {"displaystyle"},
    "mrow": {"class"},
}
FORMULA_TAGS = {
    *FORMULA_ATTRIBUTES,
    *("mn", "mtext", "msup", "msub", "msubsup", "munderover", "msqrt", "mroot", "mtr", "mphantom"),
}
# Environments that the library does not support, mapped to similar ones.
_LIKE = {"aligned": "align*", "align": "align*", "gather": "matrix", "gathered": "matrix", "dcases": "cases"}
_LIKE |= {"gather*": "matrix", "equation": "", "equation*": ""}
_SURROUNDING = re.compile(r"\\(begin|end)\{([a-z]+\*?)\}")
# Text that is no formula: prices, shell variables and escaped brackets ("from $5 to 10$", "$HOME/bin:$PATH", "\[1\]").
_WORDS = re.compile(r"\s*\d[\d.,]*(?:\s[^\\^_=+<>{}]*)?\Z|[^\\^_=+<>{}]*[^\W\d_]{4}[^\\^_=+<>{}]*\Z")


def _inline(state: StateInline, silent: bool) -> bool:
    source, begin = state.src, state.pos
    if source[begin] not in "$\\":
        return False
    mark = next((each for each in PAIRS if source.startswith(each, begin)), "")
    end = _end_of(source, begin, state.posMax, mark) if mark else None
    if end is None:
        return False
    if not silent:
        _add(state, source[begin + len(mark) : end], source[begin : end + len(PAIRS[mark])], mark)
    state.pos = end + len(PAIRS[mark])
    return True


def _end_of(source: str, begin: int, limit: int, mark: str) -> int | None:
    """Return the position of the closing delimiter of a formula that begins with ``mark``; None if it is no formula."""
    start = begin + len(mark)
    limit = min(limit, start + MOST)
    end = source.find(PAIRS[mark], start, limit)
    while mark in ("$", "$$") and end > 0 and source[end - 1] == "\\":
        end = source.find(PAIRS[mark], end + 1, limit)
    held = source[start:end] if end > 0 else ""
    if not held.strip() or (mark != "$$" and _WORDS.match(held)):
        return None
    if mark == "$":
        before, after = source[max(0, begin - 1) : begin], source[end + 1 : end + 2]
        if before.isalnum() or after.isalnum() or held != held.strip() or "\n" in held:
            return None
    return end


def _block(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Add a formula on lines of its own. The closing delimiter may be missing while the answer is streaming."""
    begin = state.bMarks[line] + state.tShift[line]
    mark = state.src[begin : begin + 2]
    if mark not in ("$$", "\\[") or state.is_code_block(line):
        return False
    lines = [state.src[begin + 2 : state.eMarks[line]].rstrip()]
    last = line
    while not lines[-1].endswith(PAIRS[mark]):
        last += 1
        state.env["budget"].spend(2)
        if last >= end or (last == end - 1 and state.isEmpty(last)):
            break
        if last - line > MOST_LINES or state.isEmpty(last) or state.sCount[last] < state.blkIndent:
            return False
        lines.append(state.src[state.bMarks[last] + state.tShift[last] : state.eMarks[last]].rstrip())
    is_whole = lines[-1].endswith(PAIRS[mark])
    source = "\n".join(lines)
    formula = source[:-2] if is_whole else source
    if PAIRS[mark] in formula or (is_whole and not formula.strip()) or len(formula) > MOST:
        return False
    if not is_whole and (end < state.lineMax or state.level):
        return False
    if not silent:
        _add(state, formula, mark + source, mark if is_whole else "")
        state.tokens[-1].map = [line, min(last + 1, end)]
    state.line = min(last + 1, end)
    return True


def _add(state: StateInline | StateBlock, formula: str, source: str, mark: str) -> None:
    """Add a token for a formula. ``source``: its Markdown. ``mark``: its closing delimiter, "" while missing."""
    state.env["budget"].spend(STEPS_A_CHARACTER * len(formula))
    token = state.push("formula", "math", 0)
    token.content, token.markup = formula.strip(), mark
    token.meta = {"source": source}
    token.block = isinstance(state, StateBlock)


def _render(
    self: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any
) -> str:
    token = tokens[index]
    display = token.markup in ("$$", "\\[")
    html = mathml(token.content, display=display) if token.markup else ""
    html = html or f"<code>{escape(token.meta['source'])}</code>"
    return f"<p>{html}</p>\n" if token.block else html


@lru_cache(maxsize=512)
def mathml(formula: str, *, display: bool) -> str:
    """Return the formula as MathML, or "" if it cannot be parsed. Takes about 10 microseconds a character; cached."""
    # The import takes 90 ms, so it is done only when there is a formula.
    from latex2mathml.converter import convert_to_element

    known = _SURROUNDING.sub(_known, formula)
    try:
        return _written(convert_to_element(known, display="block" if display else "inline"))
    except Exception:  # the library has many exceptions, and hostile text can cause others
        return ""


def _known(match: re.Match[str]) -> str:
    name = _LIKE.get(match[2], match[2])
    return f"\\{match[1]}{{{name}}}" if name else ""


def _written(element: Element) -> str:
    """Return the element as HTML with allowed attributes only. The library's entities are unescaped before escaping."""
    tag = element.tag if element.tag in FORMULA_TAGS else "mrow"
    held = {name: value for name, value in element.attrib.items() if name in FORMULA_ATTRIBUTES.get(tag, ())}
    held.pop("class", None)
    if tag == "mtd" and element.get("columnalign") in ("left", "right"):
        held["class"] = f"align-{element.get('columnalign')}"
    if element.tag == "menclose" and element.get("notation") == "box":
        held["class"] = "boxed"
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in held.items())
    inner = escape(unescape(element.text or "")) + "".join(map(_written, element))
    return f"<{tag}{attributes}>{inner}</{tag}>"


# A URL whose host is ASCII, because other letters can imitate a host. The URL ends at a space or bracket, at characters
# of scripts that do not separate words by spaces, and at invisible or bidirectional control characters.
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9])[Hh]ttps?://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
    r"(?:[/?#][^\s<>\[\]{}\"`|\\\u0600-\u06ff\u200b-\u200f\u202a-\u202e\u2066-\u2069\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]*)?",
)
_AFTER = ".,;:!?'*_~\u2019\u201d\u2026\u00bb"  # punctuation that belongs to the sentence, not to the URL


def _split(text: str) -> list[Token]:
    tokens, end = [], 0
    for match in _ADDRESS.finditer(text):
        shown = _trimmed(match[0])
        href = normalizeLink(shown)
        if not validateLink(href):
            continue
        tokens += [_text(text[end : match.start()]), *_link(href, shown)]
        end = match.start() + len(shown)
    return [*tokens, _text(text[end:])]


def _trimmed(address: str) -> str:
    """Return the URL without punctuation of the sentence, and without a closing bracket that is not opened in it."""
    address = address.rstrip(_AFTER)
    surplus = address.count(")") - address.count("(")
    bare = address.rstrip(")")
    closing = len(address) - len(bare)
    return address[: len(address) - min(closing, max(surplus, 0))].rstrip(_AFTER)


def _link(href: str, text: str) -> list[Token]:
    opening = Token("link_open", "a", 1, attrs={"href": href})
    return [opening, _text(text), Token("link_close", "a", -1)]


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


RENDERER = 4  # increase it with every change of the output, so that stored HTML is rendered again
TAGS = FORMULA_TAGS | {
    "p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a", "span", "div", "img",
    "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
ATTRIBUTES = {
    "a": {"href", "title"},
    "ol": {"start"},
    "img": {"src", "alt", "loading"},
    **{tag: {"class"} for tag in ("span", "div", "code", "li", "th", "td")},
    **FORMULA_ATTRIBUTES,
}
# Images are shown only from these views, which check the reader's access.
OWN_FILES = {"workspaces:document_content", "memories:asset"}
# Precedes the link to an external image, since a page loads nothing from other hosts.
PICTURE = "\u25a3"
BOXES = {"[ ] ": "\u2610", "[x] ": "\u2611", "[X] ": "\u2611"}  # task list items
SCHEMES = {"http", "https", "mailto"}
COLOURED_LENGTH = 20_000  # limit in characters of a text's highlighted code; blocks beyond it are plain
CODE_A_STEP = 2  # characters of highlighted code that count as one step
SOURCE_A_STEP = 50  # characters of a text, of a line read again, and of the output, that count as one step
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
    """Spend steps for each line that the block rules read, and for new tokens. Never matches, so that other rules run.

    Tokens are counted because a short row of a wide table is filled up with thousands of cells.
    """
    length, token_count = state.eMarks[line] - state.bMarks[line], len(state.tokens)
    state.env["budget"].spend(
        1 + length // SOURCE_A_STEP + (token_count - state.env["made"]) // TOKENS_A_STEP
    )
    state.env["made"] = token_count
    return False


def _count_inline(state: StateInline, silent: bool) -> bool:
    """Spend a step for each position that the inline rules read. Never matches, so that the other rules run."""
    state.env["budget"].spend(1)
    return False


class _Inline(ParserInline):
    def skipToken(self, state: StateInline) -> None:
        """Spend a step for each token skipped in the search for a label's end, which nested brackets repeat."""
        state.env["budget"].spend(1)
        super().skipToken(state)


def _parser() -> MarkdownIt:
    parser = MarkdownIt()
    parser.inline = _Inline()
    parser.configure(
        "commonmark", {"html": False, "linkify": False, "breaks": True, "highlight": _code_block}
    )
    parser.enable(["table", "strikethrough"])
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("table", "count", _count_block, interrupts)
    parser.inline.ruler.before("text", "count", _count_inline)
    parser.block.ruler.before("fence", "formula", _block, interrupts)
    parser.inline.ruler.before("escape", "formula", _inline)
    parser.add_render_rule("formula", _render)
    return parser


def _code_block(code: str, language: str, attributes: str) -> str:
    name = language.split(":")[0].strip().lower()
    return f'<pre><code class="language-{escape(name) or "text"}">{coloured(code, name)}</code></pre>'


_markdown = _parser()


def render_markdown(text: str, budget: Budget) -> SafeString:
    """Return sanitised HTML. Raises TooHeavy as soon as the cost exceeds the budget."""
    env: dict[str, Any] = {}
    tokens = parsed(text, budget, env)
    _leave_plain(tokens, budget)
    _mark_tasks(tokens)
    for token in tokens:
        _align(token)
        if token.children:
            token.children = _with_links(token.children)
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


def parsed(
    text: str, budget: Budget, env: dict[str, Any] | None = None, *, inline: bool = False
) -> list[Token]:
    """Return the Markdown tokens. ``inline``: without blocks such as lists. Raises TooHeavy above the budget."""
    budget.spend(len(text) // SOURCE_A_STEP + sum(text.count(sign) * cost for sign, cost in SIGNS.items()))
    env = {} if env is None else env
    env |= {"budget": budget, "made": 0}
    return _markdown.parseInline(text, env) if inline else _markdown.parse(text, env)


def _leave_plain(tokens: Sequence[Token], budget: Budget) -> None:
    """Limit highlighting to COLOURED_LENGTH characters of code, by removing the language of later blocks."""
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
            html = f'<span class="task__box">{box}</span>'
            inline.children.insert(0, Token("html_inline", "", 0, content=html))


def _with_links(tokens: Sequence[Token]) -> list[Token]:
    """Replace external images and URLs in texts with links. Inside a link, only an image's name remains."""
    linked_tokens: list[Token] = []
    depth = 0
    for token in tokens:
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        source = str(token.attrs["src"]) if token.type == "image" else ""
        if token.type == "image" and not _is_own_file(source):
            name = f"{PICTURE} {token.content or source}"
            linked_tokens += [_text(name)] if depth else _link(source, name)
            continue
        if token.type == "image":
            token.attrSet("loading", "lazy")
        linked_tokens += _split(token.content) if token.type == "text" and not depth else [token]
    return linked_tokens


def _is_own_file(source: str) -> bool:
    try:
        return source.startswith("/") and resolve(source).view_name in OWN_FILES
    except Resolver404:
        return False


def _spend_on(tokens: Sequence[Token], budget: Budget) -> None:
    """Spend steps for tokens before rendering, because a short text can repeat a long link or empty cells often."""
    budget.spend(len(tokens) // TOKENS_A_STEP)
    for token in tokens:
        length = len(token.content) + sum(len(str(value)) for value in token.attrs.values())
        budget.spend(length // SOURCE_A_STEP)
        if token.children:
            _spend_on(token.children, budget)
