"""REST endpoints of export and import."""

from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema_field
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_chat
from chat.import_export import import_jobs
from chat.import_export.export import MEDIA_TYPE, export_response
from chat.import_export.import_jobs import with_texts
from chat.import_export.personal_copy import MEDIA_TYPE as COPY_TYPE
from chat.import_export.personal_copy import copy_response
from chat.import_export.upload_formats import refuse_too_large
from chat.models.imports import Import, ImportKind, ImportStatus, Outcome
from chat.views.import_export import MEDIA_TYPES, chat_response
from workspaces.access import get_workspace, named_workspace
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Flag, Moment, StoredSentence, Text
from workspaces.api.idempotency import ONCE
from workspaces.api.paging import PageQuery
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.models import Role, User

documented = documented_under("exchange")

KINDS = ["workspace", "agent", "chat", "message", "memory", "document", "artifact", "receipt", "other"]
FILE = OpenApiResponse(
    response=OpenApiTypes.STR,
    description="JSON lines, as docs/exchange.md describes them, sent while they are read.",
    examples=[
        OpenApiExample(
            "Its first line",
            value='{"type":"memoryhub","version":1,"exported_at":"2026-03-07T10:30:00+00:00","by":"maria"}\n',
            media_type=MEDIA_TYPE,
        )
    ],
)
CHAT_FILE = OpenApiResponse(
    response=OpenApiTypes.STR, description="Markdown, or with `format=json` an object."
)


class OutcomesJson(serializers.Serializer[Any]):
    new = serializers.IntegerField()
    update = serializers.IntegerField(  # type: ignore[assignment]  # the name is the API's
        help_text="Change a memory of the same key in place."
    )
    duplicate = serializers.IntegerField(help_text="Are here already.")
    refused = serializers.IntegerField()


class SampleJson(serializers.Serializer[Any]):
    messages = serializers.IntegerField(help_text="Messages of yours in the file.")
    searched = serializers.IntegerField(help_text="How many of them the preview searched.")
    memories_expected = serializers.IntegerField(
        source="expected", help_text="How many memories all of them may hold, to two figures."
    )


class ImportJson(serializers.Serializer[Any]):
    example = {
        "id": f"imp_{ID}",
        "filename": "conversations.json",
        "kind": "chatgpt",
        "size": 5_242_880,
        "checked": True,
        "error": "",
    }
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(
        source="workspace.public_id",
        allow_null=True,
        default=None,
        help_text="Where it goes; null: as in the file.",
    )
    filename = serializers.CharField()
    kind = serializers.ChoiceField(choices=ImportKind.values)
    size = serializers.IntegerField(min_value=0, help_text="Bytes.")
    status = serializers.ChoiceField(choices=ImportStatus.values)
    checked = serializers.SerializerMethodField(
        help_text="Whether the preview is complete; then it can be started."
    )
    progress = serializers.FloatField(help_text="Of looking, or after the start of storing: 0 to 1.")
    seconds_left = serializers.SerializerMethodField(
        help_text="Until the preview is complete, or all is stored, as it went so far; null when that is not known."
    )
    sample = SampleJson(
        allow_null=True,
        help_text="Of a large export of another program: the preview searched some messages for memories, the import "
        "searches all. Null where all were searched.",
    )
    preview = serializers.DictField(
        child=OutcomesJson(), source="foreseen", help_text="What would become of the lines, by kind."
    )
    stored = serializers.DictField(
        child=OutcomesJson(), source="outcomes", help_text="What became of them so far."
    )
    error = StoredSentence(help_text="Why it failed or waits, in a sentence.")
    created_at = Moment()
    finished_at = Moment(allow_null=True)
    expires_at = Moment(help_text="When the file is deleted unless something is done with it.")

    def get_seconds_left(self, imported: Import) -> int | None:
        return imported.seconds_left(timezone.now())

    def get_checked(self, imported: Import) -> bool:
        return imported.checked_at is not None


class ImportRowJson(serializers.Serializer[Any]):
    example = {"line": 12, "kind": "memory", "outcome": "duplicate", "text": "The deadline is March 15"}
    line = serializers.IntegerField(source="row.number")
    kind = serializers.ChoiceField(choices=KINDS, source="row.kind")
    outcome = serializers.ChoiceField(choices=Outcome.values, source="row.outcome")
    reason = StoredSentence(source="row.reason", help_text="Why; never what stood there.")
    text = serializers.CharField(help_text="Its beginning. Empty where it looks like a credential.")
    duplicate_of = serializers.CharField(
        source="row.duplicate_of", help_text="The id of what is here already."
    )
    became = serializers.CharField(
        source="row.became",
        help_text="The id of what was made of it, or changed by it; empty until it is stored.",
    )
    same_as_line = serializers.IntegerField(
        source="row.same_as", allow_null=True, help_text="The line of this file that says it already."
    )


@extend_schema_field(OpenApiTypes.BINARY)
class OneFile(serializers.FileField):
    """The file field of a multipart form."""


class UploadBody(Body):
    file = OneFile(help_text="An export of MemoryHub, ChatGPT or Claude, or a list of statements.")
    workspace_id = Text(
        required=False,
        help_text="Everything goes there. Without it each workspace of the file to its own, made if need be; "
        "what has none to your own workspace.",
    )


class StartBody(Body):
    example = {"chats": False}
    chats = Flag(default=True, help_text="Take chats, messages and what they recalled.")
    memories = Flag(default=True, help_text="Take memories.")


class RowQuery(PageQuery):
    outcome = serializers.ChoiceField(choices=Outcome.values, required=False, help_text="Only these.")
    kind = serializers.ChoiceField(choices=KINDS, required=False, help_text="Only these.")


class WorkspaceExport(ApiView):
    @documented("workspaces_export", {(200, MEDIA_TYPE): FILE})
    def get(self, request: Request, workspace_id: str) -> StreamingHttpResponse:
        """Export a workspace.

        Includes everything that you may see in it: settings, assistants, chats, memories with their history, and
        receipts. Of the private chats, only your own are included.
        """
        workspace = get_workspace(self.person, workspace_id)
        return export_response(self.person, workspace=workspace, now=timezone.now())


class Export(ApiView):
    @documented("export", {(200, MEDIA_TYPE): FILE})
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export all your data.

        Everything you may see in every workspace you belong to, including your personal memories.
        """
        return export_response(self.person, now=timezone.now())


class PersonalCopy(ApiView):
    @documented("account_copy", {(200, COPY_TYPE): OpenApiTypes.BINARY}, fresh=True)
    def get(self, request: Request) -> StreamingHttpResponse:
        """Get a copy of all data about you.

        A ZIP with your export, all other data about you, and your files. It is created while it is sent.
        """
        self.require_fresh_password()
        return copy_response(self.person, now=timezone.now())


class ChatExportQuery(serializers.Serializer[Any]):
    format = serializers.ChoiceField(
        choices=list(MEDIA_TYPES), default="md", help_text="md: Markdown; json: one object."
    )


class ChatExport(ApiView):
    @documented(
        "chats_export",
        {(200, MEDIA_TYPES["md"]): CHAT_FILE, (200, MEDIA_TYPES["json"]): OpenApiTypes.OBJECT},
        query=ChatExportQuery,
    )
    def get(self, request: Request, chat_id: str) -> StreamingHttpResponse:
        """Export a chat.

        The current version of the conversation, as a download for reading. An answer that is still being written is
        left out.
        """
        chat = get_chat(self.person, chat_id)
        kind = self.query(ChatExportQuery)["format"]
        return chat_response(chat, kind=kind, by=self.person, now=timezone.now())


class OneUpload(MultiPartParser):
    """Multipart parser that raises TooLarge before it reads the body, if the Content-Length is above the limit."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        request: HttpRequest = (parser_context or {})["request"]
        refuse_too_large(request.META.get("CONTENT_LENGTH"))
        return super().parse(stream, media_type, parser_context)


class ImportList(ApiView):
    parser_classes = [OneUpload]

    @documented("imports_list", page_of(ImportJson))
    def get(self, request: Request) -> Response:
        """List your imports.

        Newest first.
        """
        imports, name = Import.objects.of(self.person), f"imports of {self.person.public_id}"
        return self.page(imports.select_related("workspace"), ImportJson, descending=True, list_name=name)

    @documented("imports_create", {201: ImportJson}, body=UploadBody, headers=ONCE, errors=[429])
    def post(self, request: Request) -> Response:
        """Upload a file to import.

        The file is checked in the background, line by line. Nothing is stored until you start the import. Editors and
        owners only.
        """
        body = self.body(UploadBody)
        workspace = None
        if "workspace_id" in body:
            workspace = named_workspace(self.person, body["workspace_id"], need=Role.EDITOR)
        file, now = body["file"], timezone.now()
        imported = self.make_once(
            lambda: import_jobs.begin(
                self.person, workspace=workspace, filename=file.name, pieces=file.chunks(), now=now
            ),
            import_jobs.get_import,
        )
        return Response(ImportJson(imported).data, status=status.HTTP_201_CREATED)


class ImportDetail(ApiView):
    @documented("imports_get", ImportJson)
    def get(self, request: Request, import_id: str) -> Response:
        """Get an import.

        Only you can see your imports, even in a shared workspace.
        """
        return Response(ImportJson(import_jobs.get_import(self.person, import_id)).data)

    @documented("imports_delete")
    def delete(self, request: Request, import_id: str) -> Response:
        """Delete an import.

        Deletes the file and its preview. Data that is already stored stays.
        """
        import_jobs.delete(import_jobs.get_import(self.person, import_id))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ImportRows(ApiView):
    @documented("imports_rows", page_of(ImportRowJson), query=RowQuery)
    def get(self, request: Request, import_id: str) -> Response:
        """Preview an import.

        The expected outcome of each line, in order. Lines with messages and receipts are listed only if they are
        refused.
        """
        imported = import_jobs.get_import(self.person, import_id)
        query = self.query(RowQuery)
        chosen = {name: query[name] for name in ("outcome", "kind") if name in query}
        return self.page(
            imported.rows.filter(**chosen),
            keys=["number"],
            list_name=f"rows of {imported.public_id} {chosen}",
            shape=lambda rows: ImportRowJson(with_texts(imported, rows), many=True).data,
        )


class ImportStart(ApiView):
    @documented("imports_start", {202: ImportJson}, body=StartBody, errors=[409])
    def post(self, request: Request, import_id: str) -> Response:
        """Start an import.

        Stores the lines in the background, as the preview showed. 409 before the status is `checked`, or if the import
        was started before.
        """
        imported = import_jobs.get_import(self.person, import_id)
        chosen = {f"takes_{kind}": chosen for kind, chosen in self.body(StartBody).items()}
        import_jobs.start(imported, now=timezone.now(), **chosen)
        return _accepted(self.person, import_id)


class ImportStop(ApiView):
    @documented("imports_stop", {202: ImportJson}, errors=[409])
    def post(self, request: Request, import_id: str) -> Response:
        """Stop an import.

        Data that is already stored stays. You can resume the import later. 409 if it is not running.
        """
        import_jobs.stop(import_jobs.get_import(self.person, import_id), now=timezone.now())
        return _accepted(self.person, import_id)


class ImportResume(ApiView):
    @documented("imports_resume", {202: ImportJson}, errors=[409])
    def post(self, request: Request, import_id: str) -> Response:
        """Resume an import.

        409 if it is not stopped.
        """
        import_jobs.resume(import_jobs.get_import(self.person, import_id), now=timezone.now())
        return _accepted(self.person, import_id)


def _accepted(person: User, import_id: str) -> Response:
    imported = import_jobs.get_import(person, import_id)
    return Response(ImportJson(imported).data, status=status.HTTP_202_ACCEPTED)
