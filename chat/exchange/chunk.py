"""One chunk of lines: what would become of each, or what does."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, replace
from datetime import datetime

from chat.exchange.artifact_lines import take_artifacts
from chat.exchange.conversations import take_chats, take_messages, take_receipts
from chat.exchange.document_lines import take_documents
from chat.exchange.import_places import Places
from chat.exchange.lines import Chunk, Record
from chat.exchange.memory_lines import Read, read_memories, take_memories
from chat.models.imports import Import, ImportKind, ImportRow, Outcome
from memories.models import SourceType
from memories.writing import refusal_counts
from workspaces.access import default_workspace

COUNTED = ("workspace", "agent", "chat", "message", "memory", "document", "artifact", "receipt")
ROW_FOR_EACH = {
    "workspace",
    "agent",
    "chat",
    "memory",
    "document",
    "artifact",
}  # of the others only those that are refused

Counts = dict[str, dict[str, int]]


def read_ahead(imported: Import, records: list[Record], *, now: datetime) -> list[Read]:
    """The part that may wait for a model, so before the transaction: the memories with their vectors."""
    native = imported.kind == ImportKind.MEMORYHUB
    compares = not native or imported.checked_at is not None
    places = Places(imported, now=now, stores=False)
    return read_memories(_of(records, "memory"), places, embed=compares and imported.takes_memories)


def take(imported: Import, records: list[Record], read: list[Read], *, now: datetime, stores: bool) -> None:
    """Settle each record's outcome, and with ``stores`` store what is new. Part of the caller's transaction."""
    places = Places(imported, now=now, stores=stores)
    places.add_workspaces(_of(records, "workspace"))
    places.add_agents(_of(records, "agent"))
    take_documents(_of(records, "document"), places)
    if imported.takes_chats:
        take_chats(_of(records, "chat"), places)
        take_messages(_of(records, "message"), places)
    take_artifacts(_of(records, "artifact"), places)
    if imported.takes_memories:
        native = imported.kind == ImportKind.MEMORYHUB
        take_memories(read, places, native=native, newest=imported.newest_memory, rows=imported.rows.all())
    if imported.takes_chats and imported.takes_memories:
        take_receipts(_of(records, "receipt"), places)
    imported.places = places.known


def count(counts: Counts, imported: Import, records: list[Record]) -> None:
    """Add these to {kind: {outcome: number}}. What was not to be taken is not counted."""
    for record in records:
        if record.kind != "header" and not _is_left(imported, record):
            of_kind = counts.setdefault(record.kind or "other", dict.fromkeys(Outcome.values, 0))
            of_kind[record.outcome] += 1


def searched(imported: Import, piece: Chunk) -> dict[str, int]:
    """How many messages were searched up to this chunk, with the statements that are new."""
    if piece.searched is None or not piece.searched.messages:
        return imported.searched
    found = imported.searched.get("found", 0)
    found += sum(
        record.kind == "memory" and record.is_new and "source_message_id" in record.line
        for record in piece.records
    )
    return asdict(replace(piece.searched, found=found))


def count_refusals(imported: Import, records: list[Record], *, now: datetime) -> None:
    """For the dashboard: what the gate's rules refused while looking, in the workspace chosen or the person's own."""
    refused = [record.refusal for record in records if record.refusal is not None]
    if refused:
        place = imported.workspace or default_workspace(imported.user)
        refusal_counts.note_all(refused, place.pk, SourceType.IMPORT, now)


def keep_rows(imported: Import, records: list[Record], *, stored: bool) -> None:
    """What would become of these lines; with ``stored``, in its place what did. One query."""
    told = ["outcome", "reason", "duplicate_of", "same_as", "became"]
    ImportRow.objects.bulk_create(
        (
            ImportRow(
                of=imported,
                number=record.number,
                offset=record.offset,
                kind=record.kind or "other",
                outcome=record.outcome,
                reason=record.reason,
                duplicate_of=record.duplicate_of,
                became=record.became if stored else "",
                same_as=record.same_as,
                fingerprint=record.fingerprint,
            )
            for record in records
            if (record.kind in ROW_FOR_EACH or record.outcome == Outcome.REFUSED)
            and not (stored and _is_left(imported, record))
        ),
        update_conflicts=True,
        unique_fields=["of", "number"],
        update_fields=told,
    )


def _of(records: list[Record], kind: str) -> list[Record]:
    return [record for record in records if record.kind == kind and record.is_new]


def _is_left(imported: Import, record: Record) -> bool:
    kinds: dict[str, bool] = defaultdict(lambda: True)
    kinds |= {
        "memory": imported.takes_memories,
        "chat": imported.takes_chats,
        "message": imported.takes_chats,
    }
    kinds["receipt"] = imported.takes_chats and imported.takes_memories
    return not kinds[record.kind]
