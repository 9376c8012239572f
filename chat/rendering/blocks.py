"""The parts of an answer that can be kept one by one: its code and its tables, as they were written."""

from __future__ import annotations

from dataclasses import dataclass

from chat.rendering.markdown import Budget, parsed
from workspaces.models import ArtifactKind

MARKDOWN = {"markdown", "md"}


@dataclass(frozen=True)
class Block:
    """``heading`` is the nearest above it."""

    kind: str
    content: str
    language: str = ""
    heading: str = ""


def blocks_of(text: str, budget: Budget) -> list[Block]:
    """In the order in which they stand, as a page shows them. Raises TooHeavy."""
    lines, found, heading = text.split("\n"), list[Block](), ""
    tokens = parsed(text, budget)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and following is not None:
            heading = following.content.strip("*_` ")
        elif token.type in ("fence", "code_block"):
            found.append(_code(token.content, token.info.split(":")[0].strip().lower(), heading))
        elif token.type == "table_open" and token.map:
            rows = "\n".join(line.strip().removeprefix(">").strip() for line in lines[slice(*token.map)])
            found.append(Block(ArtifactKind.TABLE, rows, heading=heading))
    return found


def _code(content: str, language: str, heading: str) -> Block:
    begins = content.lstrip()[:15].lower()
    if language == "html" or (not language and begins.startswith(("<!doctype html", "<html"))):
        return Block(ArtifactKind.HTML, content, heading=heading)
    if language in MARKDOWN:
        return Block(ArtifactKind.MARKDOWN, content, heading=heading)
    return Block(ArtifactKind.CODE, content, language.split()[0] if language else "", heading)
