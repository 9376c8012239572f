"""Artifacts, which are texts saved from an answer or written by a person: save, change, undo, delete, restore, search.

Editors write, and every member reads. Each change creates a version. If the current version is not the one that the
editor saw, the change is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Conflict, Invalid, NotFound, SecretRefused
from workspaces.access import (
    get_owned,
    home,
    lock_as_editor,
    lock_owned,
    lock_places,
    record_in_audit_log,
    require_right_to_forget,
    require_right_to_move,
)
from workspaces.actions.purging import Counts, counted, purge_deleted
from workspaces.actions.workspaces import clean_text
from workspaces.audit import Verb
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.index.embedding import queue_embedding
from workspaces.index.hybrid_search import area_within, index_words, unindex_words
from workspaces.index.scores import excerpt, related
from workspaces.models import Artifact, ArtifactKind, ArtifactVersion, PassageVector, Role, User, Workspace
from workspaces.models.documents import (
    ARTIFACT,
    CONTENT_LENGTH,
    LANGUAGE_LENGTH,
    OWNED_HERE,
    OWNED_OWN,
    OWNED_PLACE,
    TITLE_LENGTH,
)
from workspaces.models.index import Kind
from workspaces.quotas import require_room, spend


@dataclass(frozen=True)
class Source:
    """The chat and message that an artifact was saved from, by public id."""

    chat_id: str = ""
    message_id: str = ""


class Stale(Conflict):
    """Raised when an artifact has changed since its editor loaded it. ``artifact`` is its current state."""

    code = "stale"
    default_message = later(
        "This has been changed since you opened it. Nothing is lost: look at both, then decide."
    )

    def __init__(self, artifact: Artifact) -> None:
        super().__init__()
        self.artifact = artifact

    def headers(self) -> dict[str, str]:
        return {"ETag": etag(self.artifact)}


def version_of(artifact: Artifact) -> str:
    """Return the version tag. It changes with the content, but not by deleting or restoring."""
    return f"{artifact.public_id}-{artifact.version}"


def etag(artifact: Artifact) -> str:
    return f'"{version_of(artifact)}"'


def get_artifact(
    user: User, public_id: str, *, workspace: Workspace | None = None, or_deleted: bool = False
) -> Artifact:
    """Return the artifact with this public id. The user's role is set as its ``role``.

    ``workspace``: if given, the artifact must be visible there. ``or_deleted``: also return a soft-deleted one. Raises
    NotFound if the user may not see it.
    """
    rows = Artifact.objects.all()
    artifact = get_owned(rows, user, public_id, workspace=workspace, need=Role.VIEWER, or_deleted=or_deleted)
    if artifact is None:
        raise NotFound(_("This artifact does not exist, or you do not have access to it."))
    return artifact


def create_artifact(
    workspace: Workspace,
    written: Written,
    *,
    kind: str,
    by: User,
    now: datetime,
    source: Source | None = None,
    personal: bool = False,
    by_model: bool = False,
    confirmed: bool = False,
) -> Artifact:
    """Create an artifact. Editors only.

    ``personal``: visible to ``by`` only, in all their workspaces. ``confirmed``: the person confirmed a text that looks
    like a credential or a private number. Raises LooksSensitive without that confirmation, and SecretRefused for such a
    text from a model. Raises TooManyRequests, Invalid for a wrong field, QuotaReached, and Conflict if it is personal
    but its text may not leave ``workspace``.
    """
    if kind not in ArtifactKind.values:
        raise Invalid(fields={"kind": _("Must be one of %s.") % ", ".join(ArtifactKind.values)})
    written, source = cleaned(written), source or Source()
    if by_model or not confirmed:
        refuse_sensitive("", said(written), may_ask=not by_model)
    spend("uploads", by, now=now)
    workspace, owner = home(workspace, by, personal=personal)
    with transaction.atomic():
        lock_as_editor(workspace, by)
        artifact = Artifact(
            workspace=workspace,
            owner=owner,
            kind=kind,
            version=0,
            source_chat_id=source.chat_id,
            source_message_id=source.message_id,
            created_by=by,
            created_at=now,
        )
        _put(artifact, written, by=by, now=now, by_model=by_model)
        record_in_audit_log(Verb.ARTIFACT_ADDED, artifact, by)
    return get_artifact(by, artifact.public_id)


def update_artifact(
    artifact: Artifact,
    *,
    by: User,
    now: datetime,
    title: str | None = None,
    content: str | None = None,
    language: str | None = None,
    seen: Collection[str] | None = None,
    by_model: bool = False,
    confirmed: bool = False,
) -> Artifact:
    """Save a new version with the given fields; ``None`` leaves a field unchanged. Unchanged values create no version.

    ``seen``: the version tags (``version_of``) that the change is based on; None skips the check. ``confirmed``: as in
    ``create_artifact``. Raises Stale if the current version is not in ``seen``, Invalid, SecretRefused, QuotaReached.
    """
    with transaction.atomic():
        locked = lock_artifact(artifact, by)
        if seen is not None and version_of(locked) not in seen:
            raise Stale(locked)
        before = Written(locked.title, locked.content, locked.language)
        written = cleaned(
            Written(
                before.title if title is None else title,
                before.content if content is None else content,
                before.language if language is None else language,
            )
        )
        if written != before:
            if by_model or not confirmed:
                refuse_sensitive(said(before), said(written), may_ask=not by_model)
            spend("uploads", by, now=now)
            unindex_words(ARTIFACTS, [locked.pk])
            _put(locked, written, by=by, now=now, by_model=by_model)
            record_in_audit_log(Verb.ARTIFACT_CHANGED, locked, by)
    return get_artifact(by, artifact.public_id)


def get_version(artifact: Artifact, number: int) -> ArtifactVersion:
    version = artifact.versions.select_related("by").filter(number=number).first()
    if version is None:
        raise NotFound(_("There is no such version of this artifact."))
    return version


def restore_version(
    artifact: Artifact, number: int, *, by: User, now: datetime, seen: Collection[str] | None = None
) -> Artifact:
    """Save an earlier version again as the newest one. The versions in between stay."""
    earlier = get_version(artifact, number)
    return update_artifact(
        artifact,
        by=by,
        now=now,
        title=earlier.title,
        content=earlier.content,
        language=earlier.language,
        seen=seen,
        confirmed=True,  # it was saved before
    )


def undo(artifact: Artifact, number: int, *, by: User, now: datetime) -> None:
    """Undo the newest version: restore the previous version, or delete an artifact with a single one.

    ``number``: the version to undo. Raises Stale if there is a newer one.
    """
    if artifact.version != number:
        raise Stale(artifact)
    if number == 1:
        delete(artifact, by=by, now=now, seen={version_of(artifact)})
    else:
        restore_version(artifact, number - 1, by=by, now=now, seen={version_of(artifact)})


def move(artifact: Artifact, to: Workspace | None, *, by: User) -> Artifact:
    """Move an artifact with its versions to the workspace ``to``, or make it personal to ``by`` if that is None.

    Raises Forbidden if ``by`` may not take it from other members, Conflict if its text may not leave its workspace, and
    NotFound if it was deleted.
    """
    place, owner = home(to or artifact.workspace, by, personal=to is None)
    require_right_to_move(artifact, place, owner, by)
    with transaction.atomic():
        lock_places(by, artifact.workspace, place)
        locked = lock_artifact(artifact, by)
        if (locked.workspace, locked.owner) == (place, owner):
            return get_artifact(by, artifact.public_id)
        unindex_words(ARTIFACTS, [locked.pk])
        vectors = PassageVector.objects.filter(place=locked.place, kind=ARTIFACT, ref=locked.pk)
        locked.workspace, locked.owner = place, owner
        locked.save(update_fields=["workspace", "owner"])
        index_words(ARTIFACTS, [locked.pk])
        vectors.update(place=locked.place)
        record_in_audit_log(Verb.ARTIFACT_MOVED, artifact, by)
        if owner is None:
            record_in_audit_log(Verb.ARTIFACT_ADDED, locked, by)
    return get_artifact(by, artifact.public_id)


def delete(artifact: Artifact, *, by: User, now: datetime, seen: Collection[str] | None = None) -> None:
    """Soft-delete an artifact: it is not listed or found until it is restored.

    ``seen``: the version tags (``version_of``) that the person saw; None skips the check. Raises Stale if the current
    version is not among them.
    """
    with transaction.atomic():
        locked = lock_artifact(artifact, by)
        if seen is not None and version_of(locked) not in seen:
            raise Stale(locked)
        soft_delete(locked, now=now)
        record_in_audit_log(Verb.ARTIFACT_DELETED, locked, by)


def soft_delete(locked: Artifact, *, now: datetime) -> None:
    """Soft-delete a locked, live artifact. The caller checks the right to delete."""
    unindex_words(ARTIFACTS, [locked.pk])
    _set_deleted(locked, now)


def restore(artifact: Artifact, *, by: User, now: datetime) -> Artifact:
    with transaction.atomic():
        locked = lock_artifact(artifact, by, or_deleted=True)
        if locked.deleted_at is not None:
            locked.updated_at = now  # restarts the retention period (workspaces.retention)
            _set_deleted(locked, None)
            index_words(ARTIFACTS, [locked.pk])
            queue_embedding(ARTIFACTS, [locked.pk])
            record_in_audit_log(Verb.ARTIFACT_RESTORED, locked, by)
    return get_artifact(by, artifact.public_id)


def _put(artifact: Artifact, written: Written, *, by: User, now: datetime, by_model: bool) -> None:
    """Store the next version of an artifact that is new or whose row the caller has locked, and rebuild its index
    entries.

    Raises QuotaReached beyond the storage quota of ``by``.
    """
    size = len(written.content.encode())
    require_room("bytes", by, size)
    artifact.title, artifact.content, artifact.language = written.title, written.content, written.language
    artifact.gist = gist_of(written, artifact.kind)
    artifact.version += 1
    artifact.updated_at = now
    artifact.save()
    artifact.versions.create(
        number=artifact.version,
        title=written.title,
        language=written.language,
        content=written.content,
        size=size,
        by=by,
        by_model=by_model,
        created_at=now,
    )
    PassageVector.objects.filter(place=artifact.place, kind=ARTIFACT, ref=artifact.pk).delete()
    index_words(ARTIFACTS, [artifact.pk])
    queue_embedding(ARTIFACTS, [artifact.pk])


def lock_artifact(artifact: Artifact, by: User, *, or_deleted: bool = False) -> Artifact:
    """Lock the artifact until the commit, and return its current row. ``or_deleted``: also lock a soft-deleted one.

    Raises NotFound if it was deleted or moved, Forbidden if ``by`` is no editor of its workspace.
    """
    rows = Artifact.objects.all()
    row = lock_owned(rows if or_deleted else rows.live(), artifact, by)
    if row is None:
        raise NotFound(_("This artifact has since been deleted."))
    return row


def _set_deleted(locked: Artifact, at: datetime | None) -> None:
    locked.deleted_at = at
    locked.save(update_fields=["deleted_at", "updated_at"])
    vectors = PassageVector.objects.filter(place=locked.place, kind=ARTIFACT, ref=locked.pk)
    vectors.update(live=at is None)


# Checking an artifact's content, and cutting it to the part that is embedded.

GIST_LENGTH = 4000  # characters; an embedder reads no more
_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class Written:
    """Title, content and language of an artifact, as entered."""

    title: str
    content: str
    language: str = ""


def cleaned(written: Written) -> Written:
    title = clean_text("title", " ".join(written.title.split()), low=1, high=TITLE_LENGTH)
    content = written.content.replace("\r\n", "\n")
    if not content.strip():
        raise Invalid(fields={"content": _("Must not be blank.")})
    content = clean_text("content", content, low=1, high=CONTENT_LENGTH)
    language = clean_text("language", written.language.strip().lower(), low=0, high=LANGUAGE_LENGTH)
    return Written(title, content, language)


def said(written: Written) -> str:
    return f"{written.title}\n{written.content}"


def gist_of(written: Written, kind: str) -> str:
    text = written.content[: 5 * GIST_LENGTH]
    if kind == ArtifactKind.HTML:
        text = " ".join(_TAG.sub(" ", text).split())
    return f"{written.title}\n{text[:GIST_LENGTH]}"


@dataclass(frozen=True)
class Past:
    """A version of an imported artifact."""

    written: Written
    by: User | None
    by_model: bool
    at: datetime
    imported: bool = False


def checked_versions(versions: Sequence[Past]) -> list[Past]:
    """Return the cleaned versions of an imported artifact in the same order.

    Raises Invalid for a wrong field, and SecretRefused for a text that looks like a credential. An import cannot ask
    for confirmation.
    """
    clean_versions = [replace(each, written=cleaned(each.written)) for each in versions]
    before = ""
    for each in clean_versions:
        refuse_sensitive(before, said(each.written), may_ask=False)
        before = said(each.written)
    return clean_versions


def import_artifact(artifact: Artifact, versions: Sequence[Past], *, by: User) -> None:
    """Store an imported artifact. Its ``versions``, from ``checked_versions``, are numbered from 1.

    Editors only. Raises QuotaReached.
    """
    rows = [
        ArtifactVersion(
            artifact=artifact,
            number=number,
            title=each.written.title,
            language=each.written.language,
            content=each.written.content,
            size=len(each.written.content.encode()),
            by=each.by if each.by and by.is_superuser else by,  # counts against this person's quota
            by_model=each.by_model,
            imported=each.imported or each.by_model or (by.is_superuser and each.by not in (None, by)),
            created_at=each.at,
        )
        for number, each in enumerate(versions, 1)
    ]
    newest = versions[-1].written
    artifact.title, artifact.content, artifact.language = newest.title, newest.content, newest.language
    artifact.gist, artifact.version = gist_of(newest, artifact.kind), len(rows)
    with transaction.atomic():
        lock_as_editor(artifact.workspace, by)
        require_room("bytes", by, sum(row.size for row in rows))
        artifact.save(force_insert=True)
        ArtifactVersion.objects.bulk_create(rows)
        index_words(ARTIFACTS, [artifact.pk])
        queue_embedding(ARTIFACTS, [artifact.pk])
        record_in_audit_log(Verb.ARTIFACT_ADDED, artifact, by)


# Sensitive text: a credential or private number is saved only if a person confirms, never from a model or import.
#
# The memories app detects such text and registers its function here.


class LooksSensitive(SecretRefused):
    """Raised for a text that looks sensitive. A person may confirm and save it anyway."""

    code = "sensitive"
    default_message = later(
        "This looks like it contains a password, a key or a personal number, so it was not saved. "
        "Confirm to save it anyway."
    )


_judges: list[Callable[[str], bool]] = []


def register_judge(is_sensitive: Callable[[str], bool]) -> None:
    if is_sensitive not in _judges:
        _judges.append(is_sensitive)


def refuse_sensitive(before: str, after: str, *, may_ask: bool) -> None:
    """Raise an error if the lines that a change adds to a text look sensitive.

    ``before``: the stored text. ``after``: the new text. The error is LooksSensitive with ``may_ask``, so that a person
    may confirm and save the text anyway; else SecretRefused.
    """
    known = set(before.splitlines())
    new = "\n".join(line for line in after.splitlines() if line not in known)
    if any(is_sensitive(new) for is_sensitive in _judges):
        wrong = {"content": _("looks like a credential or a personal number")}
        raise LooksSensitive(fields=wrong) if may_ask else SecretRefused(fields=wrong)


PURGED_AT_ONCE = 500


def forget_artifact(artifact: Artifact, *, by: User) -> Counts:
    """Remove an artifact permanently, with its versions, words and vectors. Return the numbers of removed rows by kind.

    Raises Forbidden unless ``by`` is the editor who added it or an owner of its workspace, NotFound if it is gone.
    """
    with transaction.atomic():
        locked = lock_artifact(artifact, by, or_deleted=True)
        require_right_to_forget(locked, by)
        record_in_audit_log(Verb.ARTIFACT_FORGOTTEN, locked, by)
        return remove([locked.pk])


def purge(*, now: datetime, seconds: float) -> int:
    rows = Artifact.objects.all()
    return purge_deleted(rows, remove, "artifacts", now=now, seconds=seconds, most=PURGED_AT_ONCE)


def remove(ids: list[int]) -> Counts:
    """Delete these artifacts permanently. Return the numbers of deleted rows by kind.

    A trigger deletes words and vectors.
    """
    return counted(Artifact.objects.filter(pk__in=ids).delete()[1])


@dataclass(frozen=True)
class FoundArtifact:
    artifact: Artifact
    score: float
    excerpt: str


def find_artifacts(
    query: str, workspace: Workspace, user: User, *, limit: int, policy: DataPolicy
) -> list[FoundArtifact]:
    """Return the artifacts that match the query and that this person may see here, best first.

    ``policy``: the data policy, which decides whether personal artifacts are included. Embeds the query once; if that
    fails, searches by words only. Raises NotFound if the person is no member.
    """
    where = area_within(policy, workspace, user)
    query = query.replace("\x00", " ").strip()
    if not query or limit < 1:
        return []
    rows = within_policy(Artifact.objects.visible_to(user).live(), workspace, user, policy)
    scores = related(ARTIFACTS, query, where)
    best = sorted(scores, key=lambda ref: (-scores[ref], ref))
    there = rows.select_related("workspace").in_bulk(best)
    shown = [there[ref] for ref in best if ref in there][:limit]
    return [FoundArtifact(each, scores[each.pk], excerpt(each.content, query)) for each in shown]


ARTIFACTS = Kind(
    number=ARTIFACT,
    name="artifact",
    model=Artifact,
    place=OWNED_PLACE,
    words="artifacts_counted_words",
    here=OWNED_HERE,
    own=OWNED_OWN,
    text="gist",
)
