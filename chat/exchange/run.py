"""The course of an import: uploaded, looked at, stored; stopped, gone on with, cleared away.

Both passes go through the file a chunk at a time. A chunk is one transaction, which also stores how far it came: a
killed worker's job goes on behind the last whole chunk, and nothing is stored twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from chat.exchange import chunk, upload_files, upload_formats
from chat.exchange.lines import Chunk, forget_lines, read_chunk
from chat.exchange.memory_lines import NoVectors
from chat.models.imports import MAX_ATTEMPTS, Import, ImportKind, ImportStatus
from memories.models import Memory
from memoryhub.database.locks import alone
from memoryhub.errors import Conflict, DomainError, Invalid, NotFound
from memoryhub.ids import new_id
from memoryhub.kept import kept
from memoryhub.languages import grouped
from workspaces.access import get_workspace
from workspaces.audit import Verb, record
from workspaces.models import Role, User, Workspace
from workspaces.quotas import QuotaReached, require_room, spend

logger = logging.getLogger(__name__)
LOCK = "chat.exchange"
ORPHANED = timedelta(hours=1)
MOST_OPEN = 20  # of one person, so that a disk cannot be filled file by file


class Outcome(StrEnum):
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
    """Keep an upload and have it looked at in the background. Without a workspace each of the file's goes to its own.

    Raises TooLarge, Invalid for a file that is none we know, Forbidden for viewers, Conflict for too many at once,
    QuotaReached.
    """
    if workspace is not None:
        get_workspace(user, workspace.public_id, need=Role.EDITOR)
    unfinished = Import.objects.of(user).exclude(status__in=[ImportStatus.DONE, ImportStatus.FAILED])
    if unfinished.count() >= MOST_OPEN:
        raise Conflict(_("You have %s unfinished imports. Finish or delete one first.") % MOST_OPEN)
    spend("uploads", user, now=now)
    require_room("bytes", user)  # before anything is written; with its size once that is known
    public_id = new_id("imp")
    path = upload_files.keep_upload(public_id, pieces)
    try:
        require_room("bytes", user, path.stat().st_size)
        upload_formats.make_utf8(path)
        imported = Import.objects.create(
            public_id=public_id,
            user=user,
            workspace=workspace,
            filename=_clean_name(filename),
            kind=upload_formats.recognise(path),
            size=path.stat().st_size,
            created_at=now,
            progressed_at=now,
        )
    except BaseException:
        upload_files.remove(public_id)
        raise
    _queue(imported)
    return imported


def get_import(user: User, public_id: str) -> Import:
    """NotFound for everybody but who uploaded it."""
    imported = Import.objects.of(user).select_related("workspace").filter(public_id=public_id).first()
    if imported is None:
        raise NotFound(_("This import does not exist, or you do not have access to it."))
    return imported


def start(
    imported: Import, *, now: datetime, takes_chats: bool = True, takes_memories: bool = True
) -> Import:
    """Store what the preview showed, in the background. Conflict while the file is still being looked at."""
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
        if locked.sample:  # the upload is read again, and all of it searched
            locked.rows.all().delete()
            locked.looked_bytes = locked.looked_lines = 0
            locked.read_bytes = locked.read_count = locked.read_lines = 0
        locked.save()
        _queue(locked)
    return locked


def stop(imported: Import, *, now: datetime) -> Import:
    """Store no further until it is resumed. What was stored stays."""
    with transaction.atomic():
        locked = _locked(imported)
        if locked.status != ImportStatus.RUNNING:
            raise Conflict(_("This import is not running."))
        locked.status, locked.progressed_at = ImportStatus.STOPPED, now
        locked.save(update_fields=["status", "progressed_at"])
    return locked


def resume(imported: Import, *, now: datetime) -> Import:
    """Go on where it was stopped."""
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
    """Forget the upload and its preview. What it stored stays."""
    with transaction.atomic():
        Import.objects.filter(pk=imported.pk).delete()
        transaction.on_commit(lambda: upload_files.remove(imported.public_id))


def advance(import_id: int, *, seconds: float) -> Outcome:
    """Look or store for about so many seconds. One process at a time; every chunk is kept, whenever this ends."""
    with alone(LOCK, import_id) as is_alone:
        if not is_alone:
            return Outcome.ELSEWHERE
        found = Import.objects.at_work().filter(pk=import_id)
        imported = found.select_related("user", "workspace").first()  # whether they see it any more or not
        if imported is None:
            return Outcome.NOTHING
        if imported.attempts >= MAX_ATTEMPTS:
            return _fail(
                imported,
                kept("It could not be read beyond line %s, several times.") % grouped(_line(imported)),
            )
        Import.objects.filter(pk=imported.pk).update(attempts=F("attempts") + 1)
        try:
            return _go_through(imported, time.monotonic() + seconds)
        except QuotaReached as error:
            return _halt(imported, error.message)
        except NoVectors:
            return _wait(imported, kept("The embedding model does not answer."))
        except DomainError as error:
            return _fail(imported, error.message)


def sweep(*, now: datetime) -> int:
    """Queue what no job is doing, clear away what nobody finished; how many are at work."""
    waiting = list(Import.objects.at_work())
    for imported in waiting:
        with alone(LOCK, imported.pk) as is_alone:
            if is_alone:
                _queue(imported)
    for imported in Import.objects.expired(now):
        if imported.status in (ImportStatus.DONE, ImportStatus.FAILED):
            imported.rows.all().delete()
            upload_files.remove(imported.public_id)
        else:
            delete(imported)
    _clear_orphans(now)
    return len(waiting)


def path_of(imported: Import) -> Path:
    """The file of lines: the upload itself, if it is an export of ours."""
    native = imported.kind == ImportKind.MEMORYHUB
    return upload_files.upload_of(imported.public_id) if native else upload_files.lines_of(imported.public_id)


def _go_through(imported: Import, deadline: float) -> Outcome:
    stores = not imported.is_checking
    if imported.began_at is None:
        imported.began_at, imported.began_progress = timezone.now(), imported.progress
        imported.save(update_fields=["began_at", "began_progress"])
    for piece in _chunks(imported):
        read = chunk.read_ahead(imported, piece.records, now=timezone.now())
        with transaction.atomic():
            locked = Import.objects.at_work().select_for_update(of=("self",)).filter(pk=imported.pk).first()
            if locked is None or locked.is_checking == stores:
                return Outcome.NOTHING  # stopped, or deleted
            locked.workspace = imported.workspace
            now = timezone.now()
            chunk.take(locked, piece.records, read, now=now, stores=stores)
            forget_lines(path_of(locked), [each.offset for each in piece.records if each.was_forgotten])
            _step(locked, piece, now, stores=stores)
        if piece.ends:
            return Outcome.DONE if stores else Outcome.CHECKED
        if time.monotonic() >= deadline:
            _queue(imported)
            return Outcome.UNFINISHED
    return Outcome.NOTHING


def _chunks(imported: Import) -> Iterator[Chunk]:
    stores = not imported.is_checking
    if imported.kind != ImportKind.MEMORYHUB and (not stores or imported.sample):
        yield from upload_formats.prepare(imported, samples=not stores)
        return
    offset = imported.stored_bytes if stores else imported.looked_bytes
    number = imported.stored_lines if stores else imported.looked_lines
    try:
        with path_of(imported).open("rb") as file:
            while True:
                piece = read_chunk(file, offset=offset, number=number)
                offset, number = piece.offset, piece.number
                yield piece
                if piece.ends:
                    return
    except FileNotFoundError:
        raise NotFound(_("The uploaded file is no longer here. Upload it again.")) from None


def _step(imported: Import, piece: Chunk, now: datetime, *, stores: bool) -> None:
    """Note how far this chunk came, in its own transaction."""
    chunk.keep_rows(imported, piece.records, stored=stores)
    imported.attempts, imported.error, imported.progressed_at = 0, "", now
    if stores:
        chunk.count(imported.outcomes, imported, piece.records)
        imported.stored_bytes, imported.stored_lines = piece.offset, piece.number
    else:
        chunk.count(imported.foreseen, imported, piece.records)
        chunk.count_refusals(imported, piece.records, now=now)
        imported.searched = chunk.searched(imported, piece)
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
        transaction.on_commit(lambda: upload_files.remove(imported.public_id))
    elif piece.ends:
        imported.checked_at = now
        if (
            imported.kind != ImportKind.MEMORYHUB and not imported.sample
        ):  # from here on the file of lines is read
            transaction.on_commit(lambda: upload_files.remove_upload(imported.public_id))
    imported.save()


def _wait(imported: Import, why: str) -> Outcome:
    """Until the sweep comes by. After several times the person decides."""
    Import.objects.filter(pk=imported.pk).update(error=why)
    if imported.attempts + 1 >= MAX_ATTEMPTS and not imported.is_checking:
        Import.objects.filter(pk=imported.pk, status=ImportStatus.RUNNING).update(status=ImportStatus.STOPPED)
    return Outcome.WAITING


def _halt(imported: Import, why: str) -> Outcome:
    """Until the person has made room and goes on."""
    running = Import.objects.filter(pk=imported.pk, status=ImportStatus.RUNNING)
    running.update(status=ImportStatus.STOPPED, error=why[:300])
    return Outcome.FULL


def _fail(imported: Import, why: str) -> Outcome:
    Import.objects.filter(pk=imported.pk).update(
        status=ImportStatus.FAILED, error=why[:300], finished_at=timezone.now()
    )
    upload_files.remove(imported.public_id)
    return Outcome.FAILED


def _line(imported: Import) -> int:
    return imported.looked_lines if imported.is_checking else imported.stored_lines


def _queue(imported: Import) -> None:
    job = {"import_id": imported.pk, "task_name": "import"}
    transaction.on_commit(lambda: async_task("chat.tasks.run_import", **job))


def _locked(imported: Import) -> Import:
    locked = Import.objects.select_for_update(of=("self",)).filter(pk=imported.pk).first()
    if locked is None:
        raise NotFound(_("This import has since been deleted."))
    return locked


def _clear_orphans(now: datetime) -> None:
    """Files whose import is gone with its person or workspace."""
    kept = list(upload_files.all_kept())
    there = set(Import.objects.filter(public_id__in=kept).values_list("public_id", flat=True))
    for public_id in kept:
        if public_id not in there and upload_files.is_older(public_id, than=now - ORPHANED):
            upload_files.remove(public_id)


def _clean_name(filename: str) -> str:
    name = filename.replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in name if letter.isprintable())[-150:]
