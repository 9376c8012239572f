r"""Rendering of formulas in answers, ``$a^2$``, ``\(a^2\)``, ``$$…$$`` and ``\[…\]``, as MathML.

Browsers display MathML without scripts, fonts or inline styles, which the content security policy would refuse, and a
formula appears while its answer is still streaming (docs/decisions/0021). A formula that cannot be parsed is shown as
its source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import unescape
from typing import Any
from xml.etree.ElementTree import Element

from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

MOST = 2_000  # limit in characters of a formula
MOST_LINES = 60
STEPS_A_CHARACTER = 2  # steps of the budget (chat.rendering.markdown), measured at up to 12 microseconds each
PAIRS = {"$$": "$$", "\\[": "\\]", "\\(": "\\)", "$": "$"}
ATTRIBUTES: Mapping[str, set[str]] = {
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
TAGS = {
    *ATTRIBUTES,
    *("mn", "mtext", "msup", "msub", "msubsup", "munderover", "msqrt", "mroot", "mtr", "mphantom"),
}
# Environments that the library does not support, mapped to similar ones.
_LIKE = {"aligned": "align*", "align": "align*", "gather": "matrix", "gathered": "matrix", "dcases": "cases"}
_LIKE |= {"gather*": "matrix", "equation": "", "equation*": ""}
_SURROUNDING = re.compile(r"\\(begin|end)\{([a-z]+\*?)\}")
# Text that is no formula: prices, shell variables and escaped brackets ("from $5 to 10$", "$HOME/bin:$PATH", "\[1\]").
_WORDS = re.compile(r"\s*\d[\d.,]*(?:\s[^\\^_=+<>{}]*)?\Z|[^\\^_=+<>{}]*[^\W\d_]{4}[^\\^_=+<>{}]*\Z")


def add_formulas(parser: MarkdownIt) -> None:
    """Add the rules for formulas, before the rules for escapes and for paragraphs."""
    parser.inline.ruler.before("escape", "formula", _inline)
    parser.block.ruler.before(
        "fence", "formula", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.add_render_rule("formula", _render)


def _inline(state: StateInline, silent: bool) -> bool:
    source, begin = state.src, state.pos
    if source[begin] not in "$\\":
        return False
    mark = next((each for each in PAIRS if source.startswith(each, begin)), "")
    if not mark:
        return False
    end = _end_of(source, begin, state.posMax, mark)
    if end is None:
        return False
    if not silent:
        _add(state, source[begin + len(mark) : end], source[begin : end + len(PAIRS[mark])], mark)
    state.pos = end + len(PAIRS[mark])
    return True


def _end_of(source: str, begin: int, limit: int, mark: str) -> int | None:
    """Return the position of the closing mark, or None if the text is not a formula."""
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
    """Add a formula on lines of its own. The closing mark may be missing while the answer is streaming."""
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
    """Add a formula. ``mark`` is empty if the closing mark is still missing."""
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
    made = mathml(token.content, display=display) if token.markup else ""
    made = made or f"<code>{escape(token.meta['source'])}</code>"
    return f"<p>{made}</p>\n" if token.block else made


@lru_cache(maxsize=512)
def mathml(formula: str, *, display: bool) -> str:
    """Return the formula as MathML, or "" if it cannot be parsed. Takes about 10 microseconds a character; cached."""
    # The import takes 90 ms, so it is done only when there is a formula.
    from latex2mathml.converter import convert_to_element

    try:
        found = convert_to_element(
            _SURROUNDING.sub(_known, formula), display="block" if display else "inline"
        )
        return _written(found)
    except Exception:  # the library has many exceptions, and hostile text can cause others
        return ""


def _known(found: re.Match[str]) -> str:
    name = _LIKE.get(found[2], found[2])
    return f"\\{found[1]}{{{name}}}" if name else ""


def _written(element: Element) -> str:
    """Return the element as HTML with allowed attributes only: no links, colours or styles.

    The library's texts contain entities, so they are unescaped and escaped again.
    """
    tag = element.tag if element.tag in TAGS else "mrow"
    held = {name: value for name, value in element.attrib.items() if name in ATTRIBUTES.get(tag, ())}
    held.pop("class", None)
    if tag == "mtd" and element.get("columnalign") in ("left", "right"):
        held["class"] = f"align-{element.get('columnalign')}"
    if element.tag == "menclose" and element.get("notation") == "box":
        held["class"] = "boxed"
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in held.items())
    inner = escape(unescape(element.text or "")) + "".join(map(_written, element))
    return f"<{tag}{attributes}>{inner}</{tag}>"
