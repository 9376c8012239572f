"""Every change to artifacts: keep, change, take back, delete, restore. Editors write, every member reads.

Each change is a version of its own, and made only to the version that its maker has seen: nothing is overwritten.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import lock_as_editor
from workspaces.actions.owned import (
    get_owned,
    home,
    lock_owned,
    lock_places,
    note,
    require_right_to_move,
)
from workspaces.artifacts.delicate import refuse_delicate
from workspaces.artifacts.kind import ARTIFACTS
from workspaces.artifacts.written import Written, cleaned, gist_of, said
from workspaces.audit import Verb
from workspaces.index.vector_rows import queue_embedding
from workspaces.index.words import index_words, unindex_words
from workspaces.models import Artifact, ArtifactKind, ArtifactVersion, PassageVector, Role, User, Workspace
from workspaces.models.artifact import ARTIFACT
from workspaces.quotas import require_room
from workspaces.throttles import spend


@dataclass(frozen=True)
class Source:
    """The chat and message that it was kept from, by public id."""

    chat_id: str = ""
    message_id: str = ""


class Stale(Conflict):
    """The artifact is not as its editor has seen it; ``artifact`` is as it stands now."""

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
    """Another one after every change; deleting and restoring make none."""
    return f"{artifact.public_id}-{artifact.version}"


def etag(artifact: Artifact) -> str:
    return f'"{version_of(artifact)}"'


def get_artifact(
    user: User,
    public_id: str,
    *,
    workspace: Workspace | None = None,
    need: Role = Role.VIEWER,
    or_deleted: bool = False,
) -> Artifact:
    """As ``get_owned``. NotFound for strangers."""
    rows = Artifact.objects.all()
    artifact = get_owned(rows, user, public_id, workspace=workspace, need=need, or_deleted=or_deleted)
    if artifact is None:
        raise NotFound(_("This artifact does not exist, or you do not have access to it."))
    return artifact


def keep(
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
    """A new artifact. Editors only. ``personal``: for ``by`` alone, in every workspace of theirs. ``confirmed``: they
    confirmed a text that looks like a credential or a private number, and want it kept.

    Raises TooManyRequests, Invalid, SecretRefused, QuotaReached, Conflict.
    """
    if kind not in ArtifactKind.values:
        raise Invalid(fields={"kind": _("Must be one of %s.") % ", ".join(ArtifactKind.values)})
    written, source = cleaned(written), source or Source()
    if by_model or not confirmed:
        refuse_delicate("", said(written), may_ask=not by_model)
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
        note(Verb.ARTIFACT_ADDED, artifact, by)
    return get_artifact(by, artifact.public_id)


def change(
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
    """A new version with what is passed; ``None`` leaves it as it is. The same again makes none.

    ``seen``: the result of ``version_of`` for the versions it may follow; None: any. ``confirmed``: as of
    ``keep``. Raises Stale, Invalid, SecretRefused, QuotaReached.
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
                refuse_delicate(said(before), said(written), may_ask=not by_model)
            spend("uploads", by, now=now)
            unindex_words(ARTIFACTS, [locked.pk])
            _put(locked, written, by=by, now=now, by_model=by_model)
            note(Verb.ARTIFACT_CHANGED, locked, by)
    return get_artifact(by, artifact.public_id)


def get_version(artifact: Artifact, number: int) -> ArtifactVersion:
    found = artifact.versions.select_related("by").filter(number=number).first()
    if found is None:
        raise NotFound(_("There is no such version of this artifact."))
    return found


def bring_back(
    artifact: Artifact, number: int, *, by: User, now: datetime, seen: Collection[str] | None = None
) -> Artifact:
    """An earlier version once more, as the newest one: what came between stays in the history."""
    earlier = get_version(artifact, number)
    return change(
        artifact,
        by=by,
        now=now,
        title=earlier.title,
        content=earlier.content,
        language=earlier.language,
        seen=seen,
        confirmed=True,  # it was kept before
    )


def undo(artifact: Artifact, number: int, *, by: User, now: datetime) -> None:
    """Take back what made this version, the newest: the one before comes back, and what was just kept is deleted.

    Raises Stale where it has been changed since.
    """
    if artifact.version != number:
        raise Stale(artifact)
    if number == 1:
        delete(artifact, by=by, now=now, seen={version_of(artifact)})
    else:
        bring_back(artifact, number - 1, by=by, now=now, seen={version_of(artifact)})


def move(artifact: Artifact, to: Workspace | None, *, by: User) -> Artifact:
    """For everyone in this workspace, or, with None, for ``by`` alone, in every workspace of theirs; with its versions.

    Raises Forbidden, NotFound, and Conflict where it stays on this machine.
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
        note(Verb.ARTIFACT_MOVED, artifact, by)
        if owner is None:
            note(Verb.ARTIFACT_ADDED, locked, by)
    return get_artifact(by, artifact.public_id)


def delete(artifact: Artifact, *, by: User, now: datetime, seen: Collection[str] | None = None) -> None:
    """Out of use: neither listed nor found, until it is restored."""
    with transaction.atomic():
        locked = lock_artifact(artifact, by)
        if seen is not None and version_of(locked) not in seen:
            raise Stale(locked)
        take_out(locked, now=now)
        note(Verb.ARTIFACT_DELETED, locked, by)


def take_out(locked: Artifact, *, now: datetime) -> None:
    """Delete a row that is locked and live. The caller knows that it may go."""
    unindex_words(ARTIFACTS, [locked.pk])
    _set_deleted(locked, now)


def restore(artifact: Artifact, *, by: User, now: datetime) -> Artifact:
    with transaction.atomic():
        locked = lock_artifact(artifact, by, or_deleted=True)
        if locked.deleted_at is not None:
            locked.updated_at = now  # for how long it is kept from here on (workspaces.retention)
            _set_deleted(locked, None)
            index_words(ARTIFACTS, [locked.pk])
            queue_embedding(ARTIFACTS, [locked.pk])
            note(Verb.ARTIFACT_RESTORED, locked, by)
    return get_artifact(by, artifact.public_id)


def _put(artifact: Artifact, written: Written, *, by: User, now: datetime, by_model: bool) -> None:
    """The next version of a locked or new artifact, found from now on and no more by what it said before."""
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
    """The row as it stands, held until the commit, and with it the right to write."""
    rows = Artifact.objects.all()
    found = lock_owned(rows if or_deleted else rows.live(), artifact, by)
    if found is None:
        raise NotFound(_("This artifact has since been deleted."))
    return found


def _set_deleted(locked: Artifact, at: datetime | None) -> None:
    locked.deleted_at = at
    locked.save(update_fields=["deleted_at", "updated_at"])
    vectors = PassageVector.objects.filter(place=locked.place, kind=ARTIFACT, ref=locked.pk)
    vectors.update(live=at is None)
