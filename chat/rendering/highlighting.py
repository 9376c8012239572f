"""Syntax highlighting in linear time.

Lexers made for editors backtrack: a general library took ten seconds for 20,000 characters of hostile code. Here one
pattern reads a block once. Each alternative either fails at its first characters or consumes all that it has read: an
unclosed string or comment extends to the end of its line or block. ``tests/bench/bench_markdown.py`` measures the cost.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.html import escape

_SLASHES = r"(?P<c>//[^\n]*|/\*.*?(?:\*/|\Z))"
_STARS = r"(?P<c>/\*.*?(?:\*/|\Z))"
_HASH = r"(?P<c>\#[^\n]*)"
_HASH_APART = r"(?P<c>(?<!\S)\#[^\n]*)"
_DASHES = r"(?P<c>--[^\n]*|/\*.*?(?:\*/|\Z))"
_QUOTED = r'"(?:[^"\\\n]|\\.)*"?' + r"|(?<!\w)'(?:[^'\\\n]|\\.)*'?"
_TRIPLE = r'"""(?:[^\\]|\\.)*?(?:"""|\Z)' + r"|'''(?:[^\\]|\\.)*?(?:'''|\Z)"
_RAW = r"`(?:[^`\\]|\\.)*`?"
_NUMBER = r"(?P<m>\d\w*(?:\.\d\w*)?%?)"
_WORD = r"(?P<w>[^\W\d]\w*)"
_DECORATOR = r"(?P<nd>@\w+)"


def _pattern(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.DOTALL | re.MULTILINE)


def _strings(*kinds: str) -> str:
    return f"(?P<s>{'|'.join(kinds)})"


_CODE = _pattern(_SLASHES, _strings(_QUOTED), _NUMBER, _WORD, _DECORATOR)
_SCRIPT = _pattern(_SLASHES, _strings(_QUOTED, _RAW), _NUMBER, _WORD, _DECORATOR)
_SHELL = _pattern(
    _HASH_APART, _strings(_QUOTED, _RAW), r"(?P<nv>\$\w+|\$\{[^}\n]*\}?)", _NUMBER, r"(?P<w>[^\W\d][\w-]*)"
)
_DATA = _pattern(_HASH_APART, _strings(_QUOTED), _NUMBER, r"(?P<w>[^\W\d][\w-]*)")
_PATTERNS = {
    "python": _pattern(_HASH, _strings(_TRIPLE, _QUOTED), _NUMBER, _WORD, _DECORATOR),
    "go": _SCRIPT,
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "java": _CODE,
    # In Rust, an apostrophe starts a character literal if it is closed after one character, and else a lifetime.
    "rust": _pattern(
        _SLASHES, _strings(r'"(?:[^"\\]|\\.)*"?', r"'(?:[^'\\\n]|\\.)'"), _NUMBER, _WORD, r"(?P<nd>\#!?\[)"
    ),
    "c": _pattern(_SLASHES, _strings(_QUOTED), _NUMBER, _WORD, r"(?P<k>^\#\w+)"),
    "sql": _pattern(_DASHES, _strings(_QUOTED), _NUMBER, _WORD),
    "css": _pattern(
        _STARS, _strings(_QUOTED), r"(?P<m>\#[\da-fA-F]{3,8}\b|\d[\w.]*%?)", r"(?P<w>[^\W\d][\w-]*)", r"(?P<k>@\w+)"
    ),
    "html": _pattern(r"(?P<c><!--.*?(?:-->|\Z))", r"(?P<nt></?[^\W\d][\w:-]*)", _strings(_QUOTED), r"(?P<w>[\w-]+)"),
    "bash": _SHELL,
    "yaml": _DATA,
    "json": _DATA,
    "diff": _pattern(r"(?P<k>^@@[^\n]*)", r"(?P<gi>^\+[^\n]*)", r"(?P<gd>^-[^\n]*)"),
}  # fmt: skip
_KEYWORDS = {
    "python": """False None True and as assert async await break case class continue def del elif else except finally
        for from global if import in is lambda match nonlocal not or pass raise return self try while with yield""",
    "javascript": """async await break case catch class const continue default delete do else export extends false
        finally for from function if import in instanceof let new null of return static super switch this throw true
        try typeof undefined var void while yield""",
    "typescript": """abstract any as boolean declare enum implements interface is keyof namespace never number private
        protected public readonly string type unknown""",
    "java": """abstract boolean break byte case catch char class const continue default do double else enum extends
        false final finally float for fun if implements import instanceof int interface internal let long namespace new
        null object override package private protected public record return sealed short static string super switch
        this throw throws true try using val var void volatile when while""",
    "go": """break case chan const continue default defer else fallthrough false for func go goto if import interface
        map nil package range return select struct switch true type var bool byte error float64 int int64 string""",
    "rust": """as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod
        move mut pub ref return self Self static struct super trait true type unsafe use where while bool char f64 i32
        i64 str u8 u32 u64 usize Option Result String Vec""",
    "c": """auto bool break case char class const constexpr continue default delete do double else enum extern false
        float for goto if inline int long namespace new nullptr private protected public return short signed sizeof
        static struct switch template this true typedef typename union unsigned using virtual void volatile while""",
    "sql": """add all alter and as asc begin between by case check column commit constraint create cross database
        default delete desc distinct drop else end exists false foreign from full group having if in index inner
        insert into is join key left like limit not null offset on or order outer primary references returning
        right rollback select set table then true union unique update using values view when where with""",
    "bash": """case cd do done echo elif else esac exit export fi for function if in local read return set shift source
        sudo then unset until while""",
    "yaml": "true false null yes no on off",
    "json": "true false null",
    "css": "important",
}
_OTHER_NAMES = {
    "python": "py python3",
    "javascript": "js jsx mjs",
    "typescript": "ts tsx",
    "bash": "sh shell zsh console",
    "yaml": "yml toml ini",
    "html": "xml svg vue",
    "css": "scss",
    "go": "golang",
    "rust": "rs",
    "java": "kotlin kt csharp cs c# swift dart",
    "c": "cpp c++ h hpp",
    "sql": "postgres postgresql mysql sqlite",
    "json": "jsonc json5",
    "diff": "patch",
}
_ALIASES = {alias: name for name, aliases in _OTHER_NAMES.items() for alias in aliases.split()}


@dataclass(frozen=True)
class _Language:
    pattern: re.Pattern[str]
    keywords: frozenset[str]
    names_by: str  # a word or string directly before this character is a name, such as a key
    any_case: bool


def _language(name: str) -> _Language:
    words = _KEYWORDS.get(name, "") + (_KEYWORDS["javascript"] if name == "typescript" else "")
    names_by = {"css": ":", "json": ":", "yaml": ":", "html": "="}.get(name, "")
    return _Language(_PATTERNS[name], frozenset(words.split()), names_by, any_case=name == "sql")


LANGUAGES = {name: _language(name) for name in _PATTERNS}


def coloured(code: str, language: str) -> str:
    """Return the code as HTML with the classes of static/css/prose.css, or only escaped if the language is unknown."""
    name = language.lower()
    known = LANGUAGES.get(_ALIASES.get(name, name))
    return "".join(_spans(code, known)) if known else escape(code)


def _spans(code: str, language: _Language) -> Iterator[str]:
    end = 0
    for match in language.pattern.finditer(code):
        kind = _kind(match, code[match.end() : match.end() + 1], language)
        if kind:
            yield escape(code[end : match.start()])
            yield f'<span class="{kind}">{escape(match[0])}</span>'
            end = match.end()
    yield escape(code[end:])


def _kind(match: re.Match[str], follows: str, language: _Language) -> str:
    """Return the CSS class of a match, or "" for an ordinary word. ``follows``: the next character."""
    kind = match.lastgroup or ""
    if follows and follows == language.names_by and kind in ("w", "s"):
        return "na"
    if kind != "w":
        return kind
    if (match[0].lower() if language.any_case else match[0]) in language.keywords:
        return "k"
    return "nf" if follows == "(" else ""
