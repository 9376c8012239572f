"""State changes of an import (uploaded, checked, stored, stopped, resumed, deleted), and its preview.

Checking and storing both read the file in chunks. A chunk is one transaction, which also saves the position in the
file. If a worker is killed, the job continues after the last complete chunk and stores no row twice.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.db import transaction
from django.db.models import Count, F, Max
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from chat.import_export import upload_formats
from chat.import_export.documents_and_artifacts import import_artifacts, import_documents
from chat.import_export.import_chats import import_chats, import_messages, import_receipts
from chat.import_export.import_lines import (
    MAX_LINE,
    Chunk,
    Places,
    Record,
    forget_lines,
    parse_line,
    read_chunk,
)
from chat.import_export.import_memories import NoVectors, Read, import_memories, read_memories
from chat.models import Chat
from chat.models.imports import MAX_ATTEMPTS, Import, ImportKind, ImportRow, ImportStatus, Outcome
from memories.models import Memory, SourceType
from memories.writing import tombstones
from memories.writing.drafts import UNSTORABLE, cut_at_word, is_sensitive
from memoryhub.database.queries import alone
from memoryhub.errors import Conflict, DomainError, Invalid, NotFound
from memoryhub.ids import new_id
from memoryhub.localization import grouped
from memoryhub.stored_messages import kept
from workspaces.access import default_workspace, get_workspace
from workspaces.audit import Verb, record
from workspaces.models import Agent, Artifact, Document, Role, User, Workspace
from workspaces.quotas import QuotaReached, require_room, spend

COUNTED = ("workspace", "agent", "chat", "message", "memory", "document", "artifact", "receipt")
# Other kinds have a row only if they are refused.
ROW_FOR_EACH = {"workspace", "agent", "chat", "memory", "document", "artifact"}

Counts = dict[str, dict[str, int]]


def embed_ahead(imported: Import, records: list[Record], *, now: datetime) -> list[Read]:
    """Parse the memories, and embed those to compare, before the transaction, because it may wait for a model."""
    native = imported.kind == ImportKind.MEMORYHUB
    compares = not native or imported.checked_at is not None
    places = Places(imported, now=now, stores=False)
    return read_memories(_of(records, "memory"), places, embed=compares and imported.takes_memories)


def import_records(
    imported: Import, records: list[Record], read: list[Read], *, now: datetime, stores: bool
) -> None:
    """Set each record's outcome, and store new records if ``stores``. ``read``: the memories, from ``embed_ahead``."""
    places = Places(imported, now=now, stores=stores)
    for kind, add in (("workspace", places.add_workspace), ("agent", places.add_agent)):
        for each in _of(records, kind):
            with each.refused_on_error():
                add(each)
    import_documents(_of(records, "document"), places)
    if imported.takes_chats:
        import_chats(_of(records, "chat"), places)
        import_messages(_of(records, "message"), places)
    import_artifacts(_of(records, "artifact"), places)
    if imported.takes_memories:
        native = imported.kind == ImportKind.MEMORYHUB
        import_memories(read, places, native=native, newest=imported.newest_memory, rows=imported.rows.all())
    if imported.takes_chats and imported.takes_memories:
        import_receipts(_of(records, "receipt"), places)
    imported.places = places.known


def count(counts: Counts, imported: Import, records: list[Record]) -> None:
    """Add the outcomes of the records to ``counts``, which is {kind: {outcome: number}}."""
    for each in records:
        if each.kind != "header" and not _is_left(imported, each):
            of_kind = counts.setdefault(each.kind or "other", dict.fromkeys(Outcome.values, 0))
            of_kind[each.outcome] += 1


def count_searched(imported: Import, piece: Chunk) -> dict[str, int]:
    """Return the totals of the search for memories in messages, up to the end of this chunk, as in ``Searched``."""
    if piece.searched is None or not piece.searched.messages:
        return imported.searched
    memory_count = imported.searched.get("found", 0)
    memory_count += sum(
        record.kind == "memory" and record.is_new and "source_message_id" in record.line
        for record in piece.records
    )
    return asdict(replace(piece.searched, found=memory_count))


def count_refusals(imported: Import, records: list[Record], *, now: datetime) -> None:
    """Add the memories that the preview refused to the dashboard's counts of the import's or the user's workspace."""
    refused = [record.refusal for record in records if record.refusal is not None]
    if refused:
        place = imported.workspace or default_workspace(imported.user)
        tombstones.count_refusals(refused, place.pk, SourceType.IMPORT, now)


def store_rows(imported: Import, records: list[Record], *, stored: bool) -> None:
    """Save the expected outcomes of these lines or, with ``stored``, replace them with the actual ones. One query."""
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
        update_fields=["outcome", "reason", "duplicate_of", "same_as", "became"],
    )


def _of(records: list[Record], kind: str) -> list[Record]:
    return [record for record in records if record.kind == kind and record.is_new]


def _is_left(imported: Import, record: Record) -> bool:
    """Return whether the record is of a kind that the user did not choose."""
    takes = {
        "memory": imported.takes_memories,
        "chat": imported.takes_chats,
        "message": imported.takes_chats,
        "receipt": imported.takes_chats and imported.takes_memories,
    }
    return not takes.get(record.kind, True)


logger = logging.getLogger(__name__)
LOCK = "chat.import_export"
ORPHANED = timedelta(hours=1)
MOST_OPEN = 20  # per user, so that many uploads cannot fill the disk


class JobResult(StrEnum):
    NOTHING = "nothing to do"
    ELSEWHERE = "another process is at it"
    UNFINISHED = "unfinished"
    WAITING = "the embedder does not answer"
    FULL = "the person may have no more"
    FAILED = "failed"
    CHECKED = "checked"
    DONE = "done"


def begin(
    user: User, *, workspace: Workspace | None, filename: str, pieces: Iterable[bytes], now: datetime
) -> Import:
    """Save an upload and check it in the background. Without ``workspace``, data goes to the workspaces that the file
    names.

    Raises TooLarge for a file above the limit, Invalid for an unknown format, Forbidden for viewers, Conflict if the
    user has MOST_OPEN unfinished imports, and QuotaReached if there is no space left.
    """
    if workspace is not None:
        get_workspace(user, workspace.public_id, need=Role.EDITOR)
    unfinished = Import.objects.of(user).exclude(status__in=[ImportStatus.DONE, ImportStatus.FAILED])
    if unfinished.count() >= MOST_OPEN:
        raise Conflict(_("You have %s unfinished imports. Finish or delete one first.") % MOST_OPEN)
    spend("uploads", user, now=now)
    require_room("bytes", user)  # before anything is written, and again once the size is known
    public_id = new_id("imp")
    path = upload_formats.store_upload(public_id, pieces)
    try:
        require_room("bytes", user, path.stat().st_size)
        upload_formats.make_utf8(path)
        imported = Import.objects.create(
            public_id=public_id,
            user=user,
            workspace=workspace,
            filename=_clean_name(filename),
            kind=upload_formats.detect_kind(path),
            size=path.stat().st_size,
            created_at=now,
            progressed_at=now,
        )
    except BaseException:
        upload_formats.remove(public_id)
        raise
    _queue(imported)
    return imported


def get_import(user: User, public_id: str) -> Import:
    """Return the user's import. Raises NotFound for other users' imports."""
    imported = Import.objects.of(user).select_related("workspace").filter(public_id=public_id).first()
    if imported is None:
        raise NotFound(_("This import does not exist, or you do not have access to it."))
    return imported


def start(
    imported: Import, *, now: datetime, takes_chats: bool = True, takes_memories: bool = True
) -> Import:
    """Start to store the previewed lines, in a background job. Raises Conflict unless the preview is complete, and
    Invalid if nothing is chosen.
    """
    with transaction.atomic():
        locked = _locked(imported)
        if locked.status != ImportStatus.PREVIEW or locked.checked_at is None:
            raise Conflict(_("This import is not waiting to be started."))
        if not takes_chats and not takes_memories:
            raise Invalid(
                _("Choose chats, memories or both."), fields={"takes_memories": _("nothing is chosen")}
            )
        locked.takes_chats, locked.takes_memories = takes_chats, takes_memories
        locked.status, locked.places, locked.attempts = ImportStatus.RUNNING, {}, 0
        locked.newest_memory = Memory.objects.aggregate(newest=Max("pk"))["newest"] or 0
        locked.progressed_at, locked.began_at = now, None
        if locked.sample:  # only a sample was searched: read the upload again and search all of it
            locked.rows.all().delete()
            locked.looked_bytes = locked.looked_lines = 0
            locked.read_bytes = locked.read_count = locked.read_lines = 0
        locked.save()
        _queue(locked)
    return locked


def stop(imported: Import, *, now: datetime) -> Import:
    """Stop storing until the import is resumed. Rows already stored stay. Raises Conflict if it is not running."""
    with transaction.atomic():
        locked = _locked(imported)
        if locked.status != ImportStatus.RUNNING:
            raise Conflict(_("This import is not running."))
        locked.status, locked.progressed_at = ImportStatus.STOPPED, now
        locked.save(update_fields=["status", "progressed_at"])
    return locked


def resume(imported: Import, *, now: datetime) -> Import:
    """Continue a stopped import. Raises Conflict if it is not stopped."""
    with transaction.atomic():
        locked = _locked(imported)
        if locked.status != ImportStatus.STOPPED:
            raise Conflict(_("This import is not stopped."))
        locked.status, locked.progressed_at, locked.attempts, locked.error = ImportStatus.RUNNING, now, 0, ""
        locked.began_at = None
        locked.save(update_fields=["status", "progressed_at", "attempts", "error", "began_at"])
        _queue(locked)
    return locked


def delete(imported: Import) -> None:
    """Delete the upload and its preview. Rows already stored stay."""
    with transaction.atomic():
        Import.objects.filter(pk=imported.pk).delete()
        transaction.on_commit(lambda: upload_formats.remove(imported.public_id))


def advance(import_id: int, *, seconds: float) -> JobResult:
    """Check or, after confirmation, store chunks of an import for about ``seconds``, in one process at a time."""
    with alone(LOCK, import_id) as is_alone:
        if not is_alone:
            return JobResult.ELSEWHERE
        imports = Import.objects.at_work().filter(pk=import_id)
        # The import is loaded even if the user no longer has access to its workspace.
        imported = imports.select_related("user", "workspace").first()
        if imported is None:
            return JobResult.NOTHING
        if imported.attempts >= MAX_ATTEMPTS:
            line = imported.looked_lines if imported.is_checking else imported.stored_lines
            return _fail(
                imported, kept("It could not be read beyond line %s, several times.") % grouped(line)
            )
        Import.objects.filter(pk=imported.pk).update(attempts=F("attempts") + 1)
        try:
            return _go_through(imported, time.monotonic() + seconds)
        except QuotaReached as error:
            running = Import.objects.filter(pk=imported.pk, status=ImportStatus.RUNNING)
            running.update(status=ImportStatus.STOPPED, error=error.message[:300])
            return JobResult.FULL
        except NoVectors:
            return _wait(imported, kept("The embedding model does not answer."))
        except DomainError as error:
            return _fail(imported, error.message)


def sweep(*, now: datetime) -> int:
    """Queue unfinished imports without a job, remove expired ones, and return the number of unfinished imports."""
    waiting = list(Import.objects.at_work())
    for imported in waiting:
        with alone(LOCK, imported.pk) as is_alone:
            if is_alone:
                _queue(imported)
    for imported in Import.objects.expired(now):
        if imported.status in (ImportStatus.DONE, ImportStatus.FAILED):
            imported.rows.all().delete()
            upload_formats.remove(imported.public_id)
        else:
            delete(imported)
    _clear_orphans(now)
    return len(waiting)


def lines_file(imported: Import) -> Path:
    """Return the path of the import's JSON lines. For an export of MemoryHub this is the upload itself."""
    native = imported.kind == ImportKind.MEMORYHUB
    path_of = upload_formats.upload_of if native else upload_formats.lines_of
    return path_of(imported.public_id)


def _go_through(imported: Import, deadline: float) -> JobResult:
    stores = not imported.is_checking
    if imported.began_at is None:
        imported.began_at, imported.began_progress = timezone.now(), imported.progress
        imported.save(update_fields=["began_at", "began_progress"])
    for piece in _chunks(imported):
        read = embed_ahead(imported, piece.records, now=timezone.now())
        with transaction.atomic():
            locked = Import.objects.at_work().select_for_update(of=("self",)).filter(pk=imported.pk).first()
            if locked is None or locked.is_checking == stores:
                return JobResult.NOTHING  # stopped, or deleted
            locked.workspace = imported.workspace
            now = timezone.now()
            import_records(locked, piece.records, read, now=now, stores=stores)
            forget_lines(lines_file(locked), [each.offset for each in piece.records if each.was_forgotten])
            _step(locked, piece, now, stores=stores)
        if piece.ends:
            return JobResult.DONE if stores else JobResult.CHECKED
        if time.monotonic() >= deadline:
            _queue(imported)
            return JobResult.UNFINISHED
    return JobResult.NOTHING


def _chunks(imported: Import) -> Iterator[Chunk]:
    stores = not imported.is_checking
    if imported.kind != ImportKind.MEMORYHUB and (not stores or imported.sample):
        yield from upload_formats.prepare(imported, samples=not stores)
        return
    offset = imported.stored_bytes if stores else imported.looked_bytes
    number = imported.stored_lines if stores else imported.looked_lines
    try:
        with lines_file(imported).open("rb") as file:
            while True:
                piece = read_chunk(file, offset=offset, number=number)
                offset, number = piece.offset, piece.number
                yield piece
                if piece.ends:
                    return
    except FileNotFoundError:
        raise NotFound(_("The uploaded file is no longer here. Upload it again.")) from None


def _step(imported: Import, piece: Chunk, now: datetime, *, stores: bool) -> None:
    """Save the outcomes and the progress after this chunk, which was stored or only checked, in its transaction."""
    store_rows(imported, piece.records, stored=stores)
    imported.attempts, imported.error, imported.progressed_at = 0, "", now
    if stores:
        count(imported.outcomes, imported, piece.records)
        imported.stored_bytes, imported.stored_lines = piece.offset, piece.number
    else:
        count(imported.foreseen, imported, piece.records)
        count_refusals(imported, piece.records, now=now)
        imported.searched = count_searched(imported, piece)
    if not stores or imported.sample:
        imported.looked_bytes, imported.looked_lines = piece.offset, piece.number
        imported.read_bytes, imported.read_count = piece.read_bytes or piece.offset, piece.read_count
        imported.read_lines = piece.read_lines
    if piece.ends and stores:
        imported.status, imported.finished_at = ImportStatus.DONE, now
        details = {
            f"{kind}_{name}": n for kind, of in imported.outcomes.items() for name, n in of.items() if n
        }
        record(
            Verb.IMPORTED,
            by=imported.user,
            workspace=imported.workspace,
            target=imported.public_id,
            details=details,
        )
        transaction.on_commit(lambda: upload_formats.remove(imported.public_id))
    elif piece.ends:
        imported.checked_at = now
        # Storing reads only the file of lines.
        if imported.kind != ImportKind.MEMORYHUB and not imported.sample:
            transaction.on_commit(lambda: upload_formats.remove_upload(imported.public_id))
    imported.save()


def _wait(imported: Import, why: str) -> JobResult:
    """Record why the job could not continue. The next sweep retries it, up to MAX_ATTEMPTS times."""
    Import.objects.filter(pk=imported.pk).update(error=why)
    if imported.attempts + 1 >= MAX_ATTEMPTS and not imported.is_checking:
        Import.objects.filter(pk=imported.pk, status=ImportStatus.RUNNING).update(status=ImportStatus.STOPPED)
    return JobResult.WAITING


def _fail(imported: Import, why: str) -> JobResult:
    Import.objects.filter(pk=imported.pk).update(
        status=ImportStatus.FAILED, error=why[:300], finished_at=timezone.now()
    )
    upload_formats.remove(imported.public_id)
    return JobResult.FAILED


def _queue(imported: Import) -> None:
    job = {"import_id": imported.pk, "task_name": "import"}
    transaction.on_commit(lambda: async_task("chat.tasks.run_import", **job))


def _locked(imported: Import) -> Import:
    locked = Import.objects.select_for_update(of=("self",)).filter(pk=imported.pk).first()
    if locked is None:
        raise NotFound(_("This import has since been deleted."))
    return locked


def _clear_orphans(now: datetime) -> None:
    """Remove files whose import was deleted together with its user or workspace."""
    stored_ids = list(upload_formats.stored_imports())
    there = set(Import.objects.filter(public_id__in=stored_ids).values_list("public_id", flat=True))
    for public_id in stored_ids:
        if public_id not in there and upload_formats.is_older(public_id, than=now - ORPHANED):
            upload_formats.remove(public_id)


def _clean_name(filename: str) -> str:
    name = filename.replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in name if letter.isprintable())[-150:]


REASONS = 20  # limit of reasons for refusals on the page
SHOWN = 300  # limit in characters of a line's text
TEXT_IN = {
    "memory": "content",
    "message": "content",
    "chat": "title",
    "workspace": "name",
    "agent": "name",
    "document": "title",
    "artifact": "title",
}
# For each prefix of ids: the rows that a user may see, the field with the text, and the page.
PAGES: dict[str, tuple[Callable[[User], Any], str, str]] = {
    "mem": (
        lambda user: Memory.objects.visible_to(user).filter(deleted_at=None),
        "content",
        "chat:workspace",
    ),
    "chat": (lambda user: Chat.objects.visible_to(user).live(), "title", "chat:chat"),
    "doc": (lambda user: Document.objects.visible_to(user).live(), "title", "workspaces:document"),
    "art": (lambda user: Artifact.objects.visible_to(user).live(), "title", "workspaces:artifact"),
    "agent": (lambda user: Agent.objects.visible_to(user), "name", "workspaces:agent"),
    "ws": (lambda user: Workspace.objects.visible_to(user), "name", "chat:workspace"),
}


@dataclass(frozen=True)
class Shown:
    row: ImportRow
    text: str  # empty if the line holds a credential or cannot be read, or if the file is gone
    here: str = ""  # current text of the row that the line became or duplicates
    address: str = ""  # URL of that row
    gone: bool = False  # the file was removed, because the import is finished, failed or expired


def with_texts(imported: Import, rows: Iterable[ImportRow]) -> list[Shown]:
    """Return the rows with their current texts and the beginning of those in the file, which no table stores."""
    rows = list(rows)
    here = _here(imported, {row.became or row.duplicate_of for row in rows} - {""})

    def shown(row: ImportRow, text: str = "", *, gone: bool = False) -> Shown:
        what, address = here.get(row.became or row.duplicate_of, ("", ""))
        return Shown(row, text, cut_at_word(what, SHOWN), address, gone)

    if imported.status == ImportStatus.DONE:  # the file is removed soon afterwards
        return [shown(row, gone=True) for row in rows]
    try:
        with lines_file(imported).open("rb") as file:
            shown_rows = []
            for row in rows:
                file.seek(row.offset)
                shown_rows.append(shown(row, _text(row, file.readline(MAX_LINE))))
            return shown_rows
    except FileNotFoundError:
        return [shown(row, gone=True) for row in rows]


def refusals(imported: Import) -> list[dict[str, Any]]:
    """Return the number of refused lines for each kind and reason, the most frequent first."""
    rows = imported.rows.filter(outcome=Outcome.REFUSED).order_by().values("kind", "reason")
    counted = rows.annotate(count=Count("id")).order_by("-count", "reason")
    return [dict(each) for each in counted[:REASONS]]


def _here(imported: Import, ids: set[str]) -> dict[str, tuple[str, str]]:
    """Return (text, URL) of each row that the importer may see, by the row's id. One query for each kind of row."""
    links: dict[str, tuple[str, str]] = {}
    for prefix, (visible_to, says, page) in PAGES.items():
        wanted = {each for each in ids if each.startswith(f"{prefix}_")}
        place = "public_id" if prefix == "ws" else "workspace__public_id"
        rows = visible_to(imported.user).filter(public_id__in=wanted).values_list("public_id", says, place)
        for public_id, text, at in rows if wanted else ():
            links[public_id] = (text or _("New chat"), _address(page, public_id, text, at))
    return links


def _address(page: str, public_id: str, text: str, place: str) -> str:
    if page == "chat:chat" or place == public_id:
        return reverse(page, args=[public_id])
    if page == "chat:workspace":  # a memory's URL opens the memory panel with a search for its text
        return f"{reverse(page, args=[place])}?{urlencode({'find': text[:100]})}"
    return reverse(page, args=[place, public_id])


def _text(row: ImportRow, raw: bytes) -> str:
    try:
        text = parse_line(raw).get(TEXT_IN.get(row.kind, ""))
    except Invalid:
        return ""
    if not isinstance(text, str) or is_sensitive(text):
        return ""
    return cut_at_word(UNSTORABLE.sub("", text), SHOWN)
