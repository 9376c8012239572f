"""Import of documents (with the newest file) and artifacts (with all versions)."""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from chat.import_export.import_lines import Places, Record, parents_of, resolve, text_of
from memories.writing.export_lines import read_moment
from memoryhub.errors import Invalid
from memoryhub.localization import grouped
from memoryhub.stored_messages import kept
from workspaces.artifacts import Past, Written, checked_versions, import_artifact
from workspaces.documents import documents, files
from workspaces.models import Artifact, ArtifactKind, Document, Workspace
from workspaces.models.documents import CONTENT_LENGTH, LANGUAGE_LENGTH, TITLE_LENGTH

MOST_VERSIONS = 1000
NO_FILE = kept("its file is missing from the export: it was too large or no longer there")
BROKEN_FILE = kept("its file is not the one that was exported")


def import_documents(records: list[Record], places: Places) -> None:
    """Store documents as uploads of the importer. Files that exist here are duplicates.

    Raises QuotaReached if there is no space left; the import continues when there is.
    """
    for record, workspace in places.sort(records):
        try:
            title, kind = text_of(record.line, "title", TITLE_LENGTH), text_of(record.line, "media_type", 100)
            content = base64.b64decode(str(record.line.get("content") or ""), validate=True)
        except Invalid as error:
            record.refuse_for(error)
            continue
        except (binascii.Error, ValueError):
            content = b""
        sha256 = hashlib.sha256(content).hexdigest()
        personal = record.line.get("personal") is True
        at = {"owner": places.user} if personal else {"owner": None, "workspace": workspace.pk}
        same = Document.objects.live().filter(**at, sha256=sha256).first()
        if not content or len(content) > settings.DOCUMENT_MAX_BYTES:
            record.refuse(NO_FILE)
        elif sha256 != record.line.get("sha256"):
            record.refuse(BROKEN_FILE)
        elif same is not None:
            record.is_known(same.public_id)
        elif places.stores:
            name = f"file{files.ENDINGS.get(kind, '')}"
            with record.refused_on_error():
                brought = documents.add_document(
                    places.home() if personal else workspace,
                    name=name,
                    content=[content],
                    title=title,
                    personal=personal,
                    by=places.user,
                    now=places.now,
                    spends=False,
                )
                record.became = brought.document.public_id


@dataclass(eq=False)
class _Read:
    record: Record
    artifact: Artifact  # not stored yet
    versions: list[Past]
    given: str  # the artifact's id in the file


def import_artifacts(records: list[Record], places: Places) -> None:
    """Store artifacts with all versions, personal ones as the importer's. Those whose id exists here are duplicates.

    Raises QuotaReached if there is no space left; the import continues when there is.
    """
    placed = places.sort(records)
    names = (each.get("by") for record, _ in placed for each in _dicts(record.line.get("versions")))
    places.meet(str(name) for name in names if name)
    read = []
    for record, workspace in placed:
        with record.refused_on_error():
            read.append(_read(record, workspace, places))
    wanted = {each: (each.given, each.artifact.workspace.public_id) for each in read}
    ids = resolve("art", wanted.values(), places.user)
    seen: set[str] = set()
    for each, pair in wanted.items():
        local = ids[pair].local
        if ids[pair].is_here or local in seen:
            each.record.is_known(local)
        elif places.stores:
            each.artifact.public_id = local
            _point_at_source(each.artifact, places)
            with each.record.refused_on_error():
                import_artifact(each.artifact, each.versions, by=places.user)
                each.record.became = local
        seen.add(local)


def _read(record: Record, workspace: Workspace, places: Places) -> _Read:
    line = record.line
    if line.get("kind") not in ArtifactKind.values:
        raise Invalid(fields={"kind": _("Must be one of %s.") % ", ".join(ArtifactKind.values)})
    personal = line.get("personal") is True
    place = places.home() if personal else workspace
    person = places.person(place)
    version_lines = _dicts(line.get("versions"))
    if not version_lines or len(version_lines) > MOST_VERSIONS:
        raise Invalid(fields={"versions": _("must be a list of 1 to %s versions") % grouped(MOST_VERSIONS)})
    versions = checked_versions(
        [
            Past(
                Written(
                    text_of(each, "title", TITLE_LENGTH, least=1),
                    text_of(each, "content", CONTENT_LENGTH, least=1),
                    text_of(each, "language", LANGUAGE_LENGTH),
                ),
                person(text_of(each, "by", 150)),
                each.get("by_model") is True,
                _moment(each, "created_at", places.now),
                each.get("imported") is True,
            )
            for each in version_lines
        ]
    )
    made_by = person(text_of(line, "created_by", 150)) or places.user
    artifact = Artifact(
        workspace=place,
        owner=places.user if personal else None,
        kind=line["kind"],
        source_chat_id=text_of(line, "source_chat_id", 40),
        source_message_id=text_of(line, "source_message_id", 40),
        created_by=made_by,
        imported=made_by != places.user or line.get("imported") is True,
        created_at=_moment(line, "created_at", places.now),
        updated_at=_moment(line, "updated_at", places.now),
    )
    return _Read(record, artifact, versions, text_of(line, "id", 64))


def _dicts(value: Any) -> list[dict[str, Any]]:
    """Return the value if it is a list of objects, else an empty list."""
    return value if isinstance(value, list) and all(isinstance(each, dict) for each in value) else []


def _moment(line: dict[str, Any], name: str, now: datetime) -> datetime:
    return min(read_moment(name, line.get(name)) or now, now)


def _point_at_source(artifact: Artifact, places: Places) -> None:
    """Set the artifact's source to the local ids of its chat and answer, or to "" if one is not visible here."""
    chat_id = artifact.source_chat_id
    # A private chat may be in another workspace.
    at = parents_of("chat", {chat_id}, places.user).get(chat_id) or artifact.workspace.public_id
    chat = resolve("chat", [(chat_id, at)], places.user)[chat_id, at]
    pair = artifact.source_message_id, chat.local
    message = resolve("msg", [pair], places.user)[pair]
    is_here = chat.is_here and message.is_here
    artifact.source_chat_id, artifact.source_message_id = (chat.local, message.local) if is_here else ("", "")
