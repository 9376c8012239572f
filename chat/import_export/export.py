"""Export of one or all workspaces of a user as JSON lines (docs/exchange.md), read a few hundred rows at a time."""

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.http import StreamingHttpResponse
from django.utils.text import slugify

from chat.import_export.documents_and_artifacts import MOST_VERSIONS
from chat.import_export.import_chats import version_fields, with_versions
from chat.import_export.import_lines import MAX_LINE, SETTINGS
from chat.models import Chat, Message
from memories.models import Memory, Receipt, ReceiptItem, Revision
from memories.writing.export_lines import memory_line
from memoryhub.database.queries import release_connection
from memoryhub.errors import NotFound
from workspaces.audit import Verb
from workspaces.audit import record as audit
from workspaces.documents.files import open_document
from workspaces.models import Agent, Artifact, ArtifactVersion, Document, PersonPicture, Role, User, Workspace

FORMAT, VERSION = "memoryhub", 1
LARGEST = (MAX_LINE - 2**16) // 4 * 3  # limit in bytes of a file, so that its base64 fits in a line
LARGEST_ARTIFACT = MAX_LINE - 2**16  # limit in bytes of the versions in a line
ROWS = 500  # per query and per piece of the response
MEDIA_TYPE = "application/x-ndjson"
# fmt: off
RECEIPT_ITEM = (
    "score", "score_parts", "strength", "content", "mentions", "used", "in_profile", "reason", "not_relevant",
)
# fmt: on

Line = dict[str, Any]
Row = TypeVar("Row", bound=Model)


def export_response(
    user: User, *, workspace: Workspace | None = None, now: datetime
) -> StreamingHttpResponse:
    """Return the export of one workspace, or of all workspaces of which the user is a member, as a download."""
    audit(Verb.EXPORTED, by=user, workspace=workspace, target=(workspace or user).public_id)
    name = slugify(workspace.name if workspace else user.get_username())[:60] or "export"
    lines = export(user, workspace=workspace, now=now)
    return download_response(lines, name=f"memoryhub-{name}-{now:%Y-%m-%d}.jsonl", media_type=MEDIA_TYPE)


def download_response(pieces: Iterator[bytes], *, name: str, media_type: str) -> StreamingHttpResponse:
    """Return the pieces as a download that is not cached. ``name`` is the file's name, in ASCII without quotes."""
    response = StreamingHttpResponse(in_pieces(pieces), content_type=media_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    response["X-Content-Type-Options"] = "nosniff"
    return response


async def in_pieces(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks one by one. Each is made in a thread, and no database connection is held between them."""
    while piece := await sync_to_async(_next)(chunks):
        yield piece


def _next(chunks: Iterator[bytes]) -> bytes:
    try:
        return next(chunks, b"")
    finally:
        release_connection()  # the client may read slowly


def export(user: User, *, workspace: Workspace | None = None, now: datetime) -> Iterator[bytes]:
    """Yield the file in pieces of whole lines. Rows that become invisible to the user are missing from later pieces."""
    workspaces = Workspace.objects.visible_to(user).order_by("created_at", "pk")
    if workspace is not None:
        workspaces = workspaces.filter(pk=workspace.pk)
    header = {"type": FORMAT, "version": VERSION, "exported_at": _at(now), "by": user.get_username()}
    yield _joined(
        [header | ({"of": "workspace"} if workspace else {"of": "person", "picture": _picture(user)})]
    )
    for key in list(workspaces.values_list("pk", flat=True)):
        each = Workspace.objects.visible_to(user).filter(pk=key).first()
        for lines in _of_workspace(user, each, now) if each else ():
            yield _joined(lines)


def _picture(user: User) -> str | None:
    """Return the user's own picture as a JPEG in base64."""
    picture = PersonPicture.objects.filter(user=user).first()
    return base64.b64encode(picture.jpeg).decode() if picture else None


def _of_workspace(user: User, workspace: Workspace, now: datetime) -> Iterator[list[Line]]:
    """Yield the lines of a workspace, ordered so that each line refers only to earlier ones."""
    role = Role(workspace.role)
    yield [_workspace_line(workspace)]
    agents = Agent.objects.visible_to(user).filter(workspace=workspace).select_related("created_by")
    chats = Chat.objects.visible_to(user).filter(workspace=workspace, is_temporary=False)
    if role != Role.OWNER:  # include a deleted chat only if this user could restore it
        own = Q(created_by=user) if role == Role.EDITOR else Q(pk=None)
        chats = chats.filter(Q(deleted_at=None) | own)
    visible_memories = Memory.objects.visible_to(user)
    if not role.allows(Role.EDITOR):
        visible_memories = visible_memories.filter(deleted_at=None)
    memories = visible_memories.filter(Q(expires_at=None) | Q(expires_at__gt=now), workspace=workspace)
    readable = Message.objects.filter(chat__in=chats).readable_by(user)
    messages = with_versions(readable.select_related("chat__workspace", "author", "imported_by", "reply_to"))
    yield from _in_pieces(agents, _agent_line)
    yield from _in_pieces(chats.select_related("workspace", "created_by", "agent"), _chat_line)
    yield from _in_pieces(messages, _message_line)
    loaded = memories.select_related(
        "workspace", "owner", "author", "edited_by", "imported_by", "agent", "may_replace"
    )
    revisions = Prefetch("revisions", Revision.objects.select_related("by"))
    yield from _in_pieces(loaded.prefetch_related("sources", "replaces", revisions), memory_line)
    answer = readable.filter(public_id=OuterRef("message_id"))
    receipts = Receipt.objects.filter(workspace=workspace)
    receipts = receipts.annotate(chat=Subquery(answer.values("chat__public_id"))).exclude(chat=None)
    items = ReceiptItem.objects.filter(memory__in=visible_memories).select_related("memory")
    receipts = receipts.select_related("user", "workspace").prefetch_related(Prefetch("items", items))
    yield from _in_pieces(receipts, _receipt_line)
    held = Document.objects.visible_to(user).live().filter(workspace=workspace)
    yield from _in_pieces(held.select_related("workspace", "created_by"), document_line, rows_at_once=1)
    artifacts = Artifact.objects.visible_to(user).live().filter(workspace=workspace)
    newest = ArtifactVersion.objects.select_related("by")
    artifacts = artifacts.select_related("workspace", "created_by")
    artifacts = artifacts.prefetch_related(Prefetch("versions", newest))
    yield from _in_pieces(artifacts, artifact_line, rows_at_once=1)


def _in_pieces(
    rows: QuerySet[Row], line: Callable[[Row], Line], *, rows_at_once: int = ROWS
) -> Iterator[list[Line]]:
    """Yield the export lines of the rows in lists of at most ``rows_at_once``, each from one query."""
    last = 0
    while batch := list(rows.filter(pk__gt=last).order_by("pk")[:rows_at_once]):
        yield [line(row) for row in batch]
        last = batch[-1].pk


def _same(row: Model, *names: str) -> Line:
    return {name: getattr(row, name) for name in names}


def _dates(row: Model, *names: str) -> Line:
    return {name: _at(getattr(row, name)) for name in names}


def _workspace_line(workspace: Workspace) -> Line:
    members = workspace.memberships.select_related("user").order_by("pk")
    return {
        "type": "workspace",
        "id": workspace.public_id,
        **_same(workspace, "name", "description", "is_default"),
        "created_at": _at(workspace.created_at),
        "settings": _same(workspace, *SETTINGS),
        "members": [{"username": each.user.get_username(), "role": each.role} for each in members],
    }


def _agent_line(agent: Agent) -> Line:
    return {
        "type": "agent",
        "id": agent.public_id,
        "workspace": agent.workspace.public_id,
        **_same(agent, "name", "description", "instructions"),
        "created_by": _who(agent.created_by),
        "imported": agent.imported,
        **_dates(agent, "created_at", "updated_at", "archived_at"),
    }


def _chat_line(chat: Chat) -> Line:
    return {
        "type": "chat",
        "id": chat.public_id,
        "workspace": chat.workspace.public_id,
        "created_by": _who(chat.created_by),
        "imported": chat.is_imported,
        "agent": chat.agent.public_id if chat.agent else None,
        **_same(chat, "title", "memory_enabled", "is_private"),
        **_dates(chat, "created_at", "active_at", "deleted_at"),
    }


def _message_line(message: Message) -> Line:
    return {
        "type": "message",
        "id": message.public_id,
        "workspace": message.chat.workspace.public_id,
        "chat": message.chat.public_id,
        "role": message.role,
        "author": _who(message.author),
        "imported_by": _who(message.imported_by),
        "imported_at": _at(message.imported_at),
        **_same(message, "content", "status", "error_code", "error"),
        "reply_to": message.reply_to.public_id if message.reply_to else None,
        **_same(message, "personal", "stays_here", "memory_enabled", "model", "attempt"),
        **_dates(message, "created_at", "finished_at", "superseded_at"),
        **version_fields(message),
    }


def _receipt_line(receipt: Any) -> Line:
    return {
        "type": "receipt",
        "workspace": receipt.workspace.public_id,
        "chat": receipt.chat,
        "message": receipt.message_id,
        "user": _who(receipt.user),
        **_same(receipt, "ranking", "threshold", "degraded"),
        "created_at": _at(receipt.created_at),
        "items": [
            {
                "memory": item.memory.public_id,
                "position": position,  # among the memories that this user may see
                **_same(item, *RECEIPT_ITEM),
            }
            for position, item in enumerate(receipt.items.all(), start=1)
        ],
    }


def document_line(document: Document) -> Line:
    """Return the line of a document, with the file's content unless it is missing or too large for a line."""
    return {
        "type": "document",
        "id": document.public_id,
        "workspace": document.workspace.public_id,
        "personal": document.is_personal,
        **_same(document, "title", "media_type", "size", "sha256"),
        "created_by": _who(document.created_by),
        "created_at": _at(document.created_at),
        "content": _content(document) if document.size <= LARGEST else None,
    }


def _content(document: Document) -> str | None:
    try:
        with open_document(document) as file:
            return base64.b64encode(file.read()).decode()
    except NotFound:
        return None


def artifact_line(artifact: Artifact) -> Line:
    """Return the line of an artifact, whose workspace, author and versions must be loaded."""
    return {
        "type": "artifact",
        "id": artifact.public_id,
        "workspace": artifact.workspace.public_id,
        "personal": artifact.is_personal,
        # The title and kind are those of the newest version.
        **_same(artifact, "title", "kind", "source_chat_id", "source_message_id"),
        "created_by": _who(artifact.created_by),
        "imported": artifact.imported,
        **_dates(artifact, "created_at", "updated_at"),
        "versions": _versions(artifact.versions.all()),
    }


def _versions(newest_first: Iterable[ArtifactVersion]) -> list[Line]:
    """Return the versions for a line, oldest first. The oldest are left out if they do not fit."""
    lines: list[Line] = []
    room = LARGEST_ARTIFACT
    for each in newest_first:
        line = {
            **_same(each, "title", "language", "content", "by_model", "imported"),
            "by": _who(each.by),
            "created_at": _at(each.created_at),
        }
        room -= len(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace"))
        if lines and (room < 0 or len(lines) == MOST_VERSIONS):
            break
        lines.append(line)
    return lines[::-1]


def _who(person: User | None) -> str | None:
    return person.get_username() if person else None


def _at(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat() if moment else None


def _joined(lines: list[Line]) -> bytes:
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    return text.encode("utf-8", "replace")
