"""What a tool saved while a turn was answered: the extraction of that turn may say it once more in other words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memories.judging.duplicates import may_merge, normalise
from memories.judging.extraction.candidates import Candidate
from memories.judging.extraction.grounding import names_in, numbers_in
from memories.judging.extraction.provenance import nearest_of
from memories.models import Memory, SourceType
from memories.writing.changing import note_wordings
from memories.writing.drafts import Draft
from memoryhub.llm.reader import get_reader
from workspaces.index.embedding import Embedded

SAME = 0.5  # cosine, by the encoder, of a memory and what its message is mined for again
CLOSE = 0.75  # cosine: of two wordings of one message in 16 pairs all but two, where the guard decides


def saved_in_turn(message_id: str) -> list[Memory]:
    """What tools saved of this message, also what waits for review or was taken back at once."""
    rows = Memory.objects.filter(source_message_id=message_id, source_type=SourceType.MODEL)
    return list(rows.select_related("workspace")) if message_id else []


def says_the_same(
    draft: Draft, embedded: Embedded | None, saved: Sequence[tuple[Memory, Embedded | None]], *, now: datetime
) -> Memory | None:
    """The one of ``saved`` that says it already, which keeps the other wording in its history.

    Of one message, so less nearness is asked for than between any two memories; another number or name is another fact.
    """
    for memory, theirs in saved:
        if memory.place != draft.place or not may_merge(memory.content, draft.content, get_reader()):
            continue
        if _marks(draft.content) - _marks(memory.content):
            continue
        both = embedded is not None and theirs is not None and embedded.model == theirs.model
        if both and float(embedded.statement @ theirs.statement) >= CLOSE:  # type: ignore[union-attr]
            note_wordings([(memory, draft.content)], by=None, now=now)
            return memory
    return None


def candidate_of(memory: Memory, candidates: Sequence[Candidate], message: str) -> Candidate | None:
    """The one that says what the memory says; of a memory of the whole message the nearest. Asks the encoder."""
    if not candidates:
        return None
    at, cosine = nearest_of(memory.content, [each.text for each in candidates], get_reader())
    is_whole = normalise(memory.content) == normalise(message) or memory.source_details.get("synthesize")
    return candidates[at] if is_whole or cosine >= SAME else None


def _marks(text: str) -> set[str]:
    return names_in(text) | numbers_in(text)
