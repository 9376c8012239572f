"""A web address that stands bare in an answer becomes a link: what it says is where it leads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it.common.normalize_url import normalizeLink, validateLink
from markdown_it.token import Token

# Of a host in plain letters: of others one cannot see whose they are. Up to a space or bracket, to signs and letters of
# scripts that put none between an address and what follows, and to signs that nobody sees or that turn the line round.
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9])[Hh]ttps?://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
    r"(?:[/?#][^\s<>\[\]{}\"`|\\\u0600-\u06ff\u200b-\u200f\u202a-\u202e\u2066-\u2069\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]*)?",
)
_AFTER = ".,;:!?'*_~\u2019\u201d\u2026\u00bb"  # ends the sentence, not the address


def with_addresses(tokens: Sequence[Token]) -> list[Token]:
    """These tokens of a line, with links for the addresses in its text; text within a link is the link's."""
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
    """Without what belongs to the sentence around it: its signs, and a bracket that was opened before it."""
    address = address.rstrip(_AFTER)
    surplus = address.count(")") - address.count("(")
    bare = address.rstrip(")")
    closing = len(address) - len(bare)
    return address[: len(address) - min(closing, max(surplus, 0))].rstrip(_AFTER)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
