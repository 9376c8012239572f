"""Documents of a workspace, over REST."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from memoryhub.errors import NotFound
from memoryhub.stored_files import require_fitting
from workspaces.access import get_workspace, require_right_to_forget
from workspaces.api.base import ApiView, StrictJsonParser
from workspaces.api.fields import Body, Flag, Moment, StoredSentence, Text
from workspaces.api.idempotency import ONCE, Note
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.api.serializers import (
    FOR_ONESELF,
    MOVES,
    PersonalField,
    PersonJson,
    RemovedJson,
    removed_json,
)
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.documents import documents, reading_jobs
from workspaces.documents.files import download
from workspaces.models import Document, DocumentStatus, Role, User, Workspace
from workspaces.models.documents import TITLE_LENGTH

documented = documented_under("documents")
NO_FILE: dict[str, Any] = {
    "invalid": later("Must be a file: a part with a file name."),
    "empty": later("The file is empty."),
}


class DocumentJson(serializers.Serializer[Any]):
    example = {
        "id": f"doc_{ID}",
        "title": "Lease.pdf",
        "media_type": "application/pdf",
        "sha256": "5f3a" * 16,
    }
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(source="workspace.public_id")
    title = serializers.CharField(max_length=TITLE_LENGTH)
    media_type = serializers.CharField(help_text="From its first bytes and its name's ending.")
    size = serializers.IntegerField(min_value=0, help_text="Bytes.")
    sha256 = serializers.RegexField("^[0-9a-f]{64}$", help_text="Of the content, hexadecimal.")
    version = serializers.IntegerField(min_value=1, help_text="Counts up with every newer file.")
    status = serializers.ChoiceField(
        choices=DocumentStatus.values,
        help_text="indexing: it is read and found by its words; ready: all of it is found by its meaning too.",
    )
    found_by_meaning = serializers.SerializerMethodField(
        help_text="The share of its passages that are found by their meaning, 0 to 1; null without an embedder."
    )
    error = StoredSentence(help_text="Why it, or pictures in it, could not be read; empty otherwise.")
    pages = serializers.IntegerField(min_value=0, help_text="0 where it has none.")
    passages = serializers.IntegerField(
        source="passage_count", min_value=0, help_text="Pieces of its text that are found one by one."
    )
    characters = serializers.IntegerField(min_value=0, help_text="Of its text.")
    personal = PersonalField()
    draft = serializers.BooleanField(
        source="is_draft",
        help_text="Whether it waits for its message to be sent. Until then only you see it.",
    )
    created_by = PersonJson(allow_null=True)
    created_at = Moment()
    updated_at = Moment()

    def get_found_by_meaning(self, document: Document) -> float | None:
        if not hasattr(document, "by_meaning"):
            reading_jobs.with_shares([document])
        return document.by_meaning


class BroughtJson(DocumentJson):
    example = DocumentJson.example | {"status": "waiting"}
    duplicate = serializers.BooleanField(help_text="Whether the workspace had this content already.")


class DocumentBody(Body):
    example = {"title": "House rules", "text": "# Kitchen\nThe last one out turns the oven off."}
    file = serializers.FileField(
        required=False,
        help_text="As `multipart/form-data`: a part with a file name.",
        error_messages=NO_FILE,
    )
    title = Text(max_length=TITLE_LENGTH, required=False, help_text="The file's name unless given.")
    text = Text(
        required=False, max_length=5_000_000, help_text="Instead of a file, as Markdown; with a title."
    )
    personal = Flag(default=False, help_text=FOR_ONESELF)
    draft = Flag(
        default=False,
        help_text="true: for a message that you send later with its id in `documents`. Only you see it until then, it "
        "is in no list and no search, `DELETE` removes it for good, and after a day it is removed.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("file" in attrs) == ("text" in attrs):
            raise serializers.ValidationError({"file": _("Send a file, or a title and a text.")})
        if "text" in attrs and "title" not in attrs:
            raise serializers.ValidationError({"title": _("Is required with a text.")})
        return attrs


class VersionBody(Body):
    example = {"text": "# Kitchen\nThe last one out turns the oven and the light off."}
    file = serializers.FileField(
        required=False, help_text="As `multipart/form-data`: a part with a file name.", error_messages=NO_FILE
    )
    text = Text(required=False, max_length=5_000_000, help_text="Instead of a file, as Markdown.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("file" in attrs) == ("text" in attrs):
            raise serializers.ValidationError({"file": _("Send a file or a text.")})
        return attrs


class VersionJson(serializers.Serializer[Any]):
    example = {"version": 1, "media_type": "application/pdf", "sha256": "5f3a" * 16}
    version = serializers.IntegerField(min_value=1)
    media_type = serializers.CharField()
    size = serializers.IntegerField(min_value=0, help_text="Bytes.")
    sha256 = serializers.RegexField("^[0-9a-f]{64}$", help_text="Of the content, hexadecimal.")
    created_by = PersonJson(source="version_by", allow_null=True)
    created_at = Moment(source="version_at")


class VersionQuery(serializers.Serializer[Any]):
    version = serializers.IntegerField(
        required=False, min_value=1, max_value=10_000_000, help_text="An earlier one. Left out: the newest."
    )


class DocumentChanges(Body):
    example = {"title": "Lease of 2026"}
    title = Text(max_length=TITLE_LENGTH, required=False)
    personal = Flag(required=False, help_text=MOVES)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError({"title": _("Send a title, or say whether it is `personal`.")})
        return attrs


def _document_or_draft(person: User, public_id: str, workspace: Workspace | None = None) -> Document:
    with suppress(NotFound):
        return documents.get_document(person, public_id, workspace=workspace)
    return documents.get_draft(person, public_id, workspace=workspace)


class _TakesFiles(ApiView):
    parser_classes = [StrictJsonParser, MultiPartParser]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Reject a large request by its Content-Length, because the CSRF check would read the whole body."""
        require_fitting(request, settings.DOCUMENT_MAX_BYTES)
        super().initial(request, *args, **kwargs)

    def brought_once(self, make: Callable[[], documents.Brought]) -> Response:
        """Respond with 201 and the new document, or with 200 if a document with this content existed.

        A repeated request with the same ``Idempotency-Key`` gets the same response.
        """

        def keep(upload: documents.Brought) -> Note:
            return {"made": upload.document.public_id, "known": upload.is_known}

        def reload(note: Note) -> documents.Brought:
            document = _document_or_draft(self.person, str(note["made"]))
            return documents.Brought(document, bool(note["known"]))

        brought = self.once(make, keep=keep, reload=reload)
        brought.document.duplicate = brought.is_known  # type: ignore[attr-defined]
        code = status.HTTP_200_OK if brought.is_known else status.HTTP_201_CREATED
        return Response(BroughtJson(brought.document).data, status=code)


class DocumentList(_TakesFiles):
    @documented("documents_list", page_of(DocumentJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the documents of a workspace.

        Newest first, including your personal ones from any workspace.
        """
        workspace = get_workspace(self.person, workspace_id)
        rows = Document.objects.live().select_related("workspace", "created_by")
        queryset = within_policy(rows, workspace, self.person, DataPolicy.here(workspace))
        return self.page(
            queryset,
            shape=lambda rows: DocumentJson(reading_jobs.with_shares(rows), many=True).data,
            list_name=f"documents of {workspace.public_id}",
            descending=True,
        )

    @documented(
        "documents_create",
        {201: BroughtJson, 200: BroughtJson},
        body=DocumentBody,
        headers=ONCE,
        errors=[409, 503],
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        """Add a document.

        Editors and owners only. Send a file as `multipart/form-data`, or `title` and `text` as JSON. It is read in the
        background; `status` shows the progress. If a document with the same content exists, you get that one: 200, with
        `duplicate: true`. With `draft: true`, the document belongs to the workspace only when a message that names it
        is sent. 413 if the file has more bytes than MEMORYHUB_DOCUMENT_MAX_BYTES allows.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        body, now = self.body(DocumentBody), timezone.now()

        def make() -> documents.Brought:
            who: dict[str, Any] = {name: body[name] for name in ("personal", "draft")}
            who |= {"by": self.person, "now": now}
            if "text" in body:
                return documents.write(workspace, title=body["title"], text=body["text"], **who)
            file, title = body["file"], body.get("title", "")
            return documents.add_document(
                workspace, name=file.name or "", content=file.chunks(), title=title, **who
            )

        return self.brought_once(make)


class _OfDocument(ApiView):
    def document(
        self, workspace_id: str, document_id: str, need: Role = Role.VIEWER, *, or_deleted: bool = False
    ) -> Document:
        workspace = get_workspace(self.person, workspace_id, need=need)
        return documents.get_document(self.person, document_id, workspace=workspace, or_deleted=or_deleted)


class DocumentDetail(_OfDocument):
    @documented("documents_get", DocumentJson)
    def get(self, request: Request, workspace_id: str, document_id: str) -> Response:
        """Get a document.

        You can also get your own drafts.
        """
        workspace = get_workspace(self.person, workspace_id)
        return Response(DocumentJson(_document_or_draft(self.person, document_id, workspace)).data)

    @documented("documents_update", DocumentJson, body=DocumentChanges, errors=[409])
    def patch(self, request: Request, workspace_id: str, document_id: str) -> Response:
        """Rename a document, or change who sees it.

        The person who added it or an owner of the workspace may make it their personal document. 409 if there is
        already a document with the same content, or if the document would leave a workspace that keeps everything on
        this machine.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        document = documents.get_document(self.person, document_id, workspace=workspace)
        body, now = self.body(DocumentChanges), timezone.now()
        with transaction.atomic():
            if "personal" in body:
                to = None if body["personal"] else workspace
                document = documents.move(document, to, by=self.person, now=now)
            if "title" in body:
                document = documents.rename(document, title=body["title"], by=self.person, now=now)
        return Response(DocumentJson(document).data)

    @documented("documents_delete")
    def delete(self, request: Request, workspace_id: str, document_id: str) -> Response:
        """Delete a document.

        It is no longer listed or found; `restore` brings it back. A draft is removed for good.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        document = _document_or_draft(self.person, document_id, workspace)
        if document.is_draft:
            documents.discard(document, by=self.person)
        else:
            documents.delete(document, by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class DocumentRestore(_OfDocument):
    @documented("documents_restore", DocumentJson, errors=[409])
    def post(self, request: Request, workspace_id: str, document_id: str) -> Response:
        """Restore a deleted document.

        409 if the same file has been added again since. Restoring one that is in use changes nothing.
        """
        document = self.document(workspace_id, document_id, Role.EDITOR, or_deleted=True)
        return Response(DocumentJson(documents.restore(document, by=self.person, now=timezone.now())).data)


class DocumentContent(_OfDocument):
    @documented(
        "documents_content",
        {
            (200, "*/*"): OpenApiResponse(
                OpenApiTypes.BINARY,
                description="The bytes, as a download under its title; the type is that of the file.",
                examples=[OpenApiExample("A file", value="(its bytes)")],
            )
        },
        query=VersionQuery,
    )
    def get(self, request: Request, workspace_id: str, document_id: str) -> HttpResponseBase:
        """Download a document's file."""
        document = self.document(workspace_id, document_id)
        number = self.query(VersionQuery).get("version", document.version)
        return download(document, documents.get_version(document, number))


class DocumentVersions(_OfDocument, _TakesFiles):
    @documented("documents_versions", page_of(VersionJson))
    def get(self, request: Request, workspace_id: str, document_id: str) -> Response:
        """List the earlier versions of a document.

        Newest first, without the current version. `content?version=` downloads one.
        """
        document = self.document(workspace_id, document_id)
        return self.page(
            document.versions.select_related("version_by"),
            VersionJson,
            keys=["version"],
            list_name=f"versions of {document.public_id}",
            descending=True,
        )

    @documented(
        "documents_replace",
        {201: BroughtJson, 200: BroughtJson},
        body=VersionBody,
        headers=ONCE,
        errors=[409, 503],
    )
    def post(self, request: Request, workspace_id: str, document_id: str) -> Response:
        """Add a newer version of a document.

        Editors and owners only. The previous version is kept. Only passages that changed are embedded again. If the
        content is the same, nothing changes: 200, with `duplicate: true`. 409 if another document has this content.
        """
        document = self.document(workspace_id, document_id, Role.EDITOR)
        body, now = self.body(VersionBody), timezone.now()

        def make() -> documents.Brought:
            if "text" in body:
                return documents.replace_text(document, text=body["text"], by=self.person, now=now)
            file = body["file"]
            return documents.replace(
                document, name=file.name or "", content=file.chunks(), by=self.person, now=now
            )

        return self.brought_once(make)


class DocumentForget(_OfDocument):
    @documented("documents_forget", RemovedJson, fresh=True)
    def post(self, request: Request, workspace_id: str, document_id: str) -> Response:
        """Forget a document for good.

        The person who added it or an owner of the workspace may do this, even once it is deleted. Removes its files in
        all versions, its passages with their vectors and words, and the citations of it in answers. This cannot be
        undone.
        """
        document = self.document(workspace_id, document_id, Role.EDITOR, or_deleted=True)
        require_right_to_forget(document, self.person)
        self.require_fresh_password()
        return Response(removed_json(documents.forget_document(document, by=self.person)))
