"""The block of passages from documents that a turn is given. What stands in it is data, never instructions."""

from __future__ import annotations

from collections.abc import Sequence

from chat.prompting.text import escape, prompt_text, tokens
from workspaces.documents.passages import FoundPassage


def documents_block(found: Sequence[FoundPassage], unread: Sequence[str] = ()) -> str:
    """Numbered as the answer cites them already, else from 1; nothing for none. No text can close the block, open a
    tag or begin an entry: its lines are marked as quoted. ``unread``: what files of the question are called whose text
    is not there.
    """
    if not found and not unread:
        return ""
    entries = [_entry(number, each) for number, each in enumerate(found, 1)]
    lines = [prompt_text("documents"), *entries] if found else []
    if unread:
        lines += [prompt_text("unread_files"), *(f"> {escape(title)}" for title in unread)]
    return "\n".join(["<documents>", *lines, "</documents>"])


def those_that_fit(found: Sequence[FoundPassage], room: int) -> list[FoundPassage]:
    """The best of these, in their order, in ``room`` tokens together."""
    room -= tokens(documents_block([]) + prompt_text("documents")) + 8
    kept: list[FoundPassage] = []
    for each in found:
        room -= tokens(_entry(len(kept) + 1, each))
        if room < 0:
            break
        kept.append(each)
    return kept


def _entry(number: int, each: FoundPassage) -> str:
    passage = each.passage
    number = each.number or number
    page = f"page {passage.page}" if passage.page else ""
    label = ", ".join(filter(None, (passage.document.title, page, passage.heading)))
    text = "\n".join(f"> {line}" for line in map(escape, passage.text.splitlines()) if line)
    return f"[{number}] ({escape(label)}, {passage.document.public_id})\n{text}"
