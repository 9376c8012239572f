"""What a report cites, opened: numbers, ids and addresses become links to what its reader may see, and nothing else."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from django.db.models import Min
from django.urls import reverse

from chat.models import Chat, Message
from chat.models.runs import Run
from memories.models import Memory
from workspaces.models import Document, DocumentPassage, User
from workspaces.policy import Reach, in_reach

ID = r"\b(?:mem|msg|doc)_[A-Za-z0-9]{24}(?:#\d{1,5})?\b"  # of a document with its page
ADDRESS = r"(?<!\()https?://[^\s<>()\[\]\"'`]*[^\s<>()\[\]\"'`.,;:!?]"
SOURCE = re.compile(f"{ID}|{ADDRESS}")
NUMBERED = re.compile(r"^[ \t]*(?:[-*]\s+)?\[?(\d{1,2})\]?[.):]?\s+(\S.*)$", re.MULTILINE)
CITED = re.compile(r"\[(\d{1,2}(?:, ?\d{1,2}){0,9})\](?!\()")


def with_sources(run: Run, text: str, reader: User) -> str:
    """The Markdown of a report, in which [1] opens what stands behind 1 in its list of sources. A few queries."""
    links = _links(run, set(SOURCE.findall(text)), reader)
    numbers: dict[int, str] = {}
    for line in NUMBERED.finditer(text):
        named = next((links[source] for source in SOURCE.findall(line[2]) if source in links), None)
        if named:
            numbers.setdefault(int(line[1]), named)

    def cited(match: re.Match[str]) -> str:
        asked = [int(number) for number in match[1].split(",")]
        if not any(number in numbers for number in asked):
            return match[0]
        return " ".join(
            f"[\\[{number}\\]](<{numbers[number]}>)" if number in numbers else f"[{number}]"
            for number in asked
        )

    def opened(match: re.Match[str]) -> str:
        url = links.get(match[0])
        return match[0] if url is None else f"<{url}>" if url == match[0] else f"[{match[0]}](<{url}>)"

    return CITED.sub(cited, SOURCE.sub(opened, text))


def _links(run: Run, sources: set[str], reader: User) -> dict[str, str]:
    """Where each of them is opened, as far as this reader may."""
    found = {source: source for source in sources if source in set(run.web_urls)}
    ids = {source.partition("#")[0] for source in sources}
    here = {"workspace": run.workspace_id, "public_id__in": ids}
    home = reverse("chat:workspace", args=[run.workspace.public_id])
    for name in (
        Memory.objects.visible_to(reader).filter(**here, deleted_at=None).values_list("public_id", flat=True)
    ):
        found[name] = f"{home}?{urlencode({'find': name})}"
    chats = Chat.objects.visible_to(reader).live().filter(workspace=run.workspace_id)
    said = Message.objects.filter(chat__in=chats, public_id__in=ids).readable_by(reader)
    for name, chat in said.values_list("public_id", "chat__public_id"):
        found[name] = f"{reverse('chat:chat', args=[chat])}?at={name}#{name}"
    rows = Document.objects.live().filter(public_id__in=ids)
    held = in_reach(rows, run.workspace, reader, Reach.here(run.workspace))
    documents = dict(held.values_list("public_id", "pk"))
    pages = _pages(list(documents.values())) if documents else {}
    for source in sources:
        name, _hash, page = source.partition("#")
        if name in documents:
            at = pages.get((documents[name], int(page))) if page else None
            url = reverse("workspaces:document", args=[run.workspace.public_id, name])
            found[source] = url if at is None else f"{url}?passage={at}#passage-{at}"
    return found


def _pages(documents: list[int]) -> dict[tuple[int, int], int]:
    """The number of the passage that each page of these documents begins with."""
    rows = DocumentPassage.objects.filter(document__in=documents).values_list("document", "page")
    return {(document, page): first for document, page, first in rows.annotate(Min("number")).order_by()}
