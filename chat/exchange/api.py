"""Export and import, over REST."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema_field
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.views import workspace_or_404
from chat.exchange import run
from chat.exchange.export import MEDIA_TYPE, export_response
from chat.exchange.preview import with_texts
from chat.exchange.upload import refuse_too_large
from chat.models.imports import (
    Import,
    ImportKind,
    ImportStatus,
    Outcome,
)
from workspaces.access import get_workspace
from workspaces.models import Role
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_example,
    page_of,
    request_example,
)
from workspaces.rest.fields import (
    Body,
    Flag,
    Moment,
    Text,
)
from workspaces.rest.idempotency import ONCE
from workspaces.rest.paging import PageQuery, paged
from workspaces.rest.views import ApiView

KINDS = ["workspace", "agent", "chat", "message", "memory", "receipt", "other"]
IMPORT: dict[str, Any] = {
    "id": "imp_4fKq2TzB8mYw1RsX9vLcHn3D",
    "workspace_id": "ws_4fKq2TzB8mYw1RsX9vLcHn3D",
    "filename": "conversations.json",
    "kind": "chatgpt",
    "size": 5_242_880,
    "status": "preview",
    "checked": True,
    "progress": 0.0,
    "preview": {"memory": {"new": 40, "update": 0, "duplicate": 2, "refused": 1}},
    "stored": {},
    "error": "",
    "created_at": "2026-03-07T10:30:00.000000Z",
    "finished_at": None,
    "expires_at": "2026-03-14T10:30:00.000000Z",
}
ROW: dict[str, Any] = {
    "line": 12,
    "kind": "memory",
    "outcome": "duplicate",
    "reason": "",
    "text": "The deadline is March 15",
    "duplicate_of": "mem_4fKq2TzB8mYw1RsX9vLcHn3D",
    "same_as_line": None,
}
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


class OutcomesJson(serializers.Serializer[Any]):
    new = serializers.IntegerField()
    update = serializers.IntegerField(  # type: ignore[assignment]  # the name is the API's
        help_text="Change a memory of the same key in place."
    )
    duplicate = serializers.IntegerField(help_text="Are here already.")
    refused = serializers.IntegerField()


class ImportJson(serializers.ModelSerializer[Import]):
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(
        source="workspace.public_id",
        allow_null=True,
        default=None,
        help_text="Where it goes; null: as in the file.",
    )
    kind = serializers.ChoiceField(choices=ImportKind.values)
    status = serializers.ChoiceField(choices=ImportStatus.values)
    checked = serializers.SerializerMethodField(
        help_text="Whether the preview is complete; then it can be started."
    )
    progress = serializers.FloatField(help_text="Of looking, or after the start of storing: 0 to 1.")
    preview = serializers.DictField(
        child=OutcomesJson(), source="foreseen", help_text="What would become of the lines, by kind."
    )
    stored = serializers.DictField(
        child=OutcomesJson(), source="outcomes", help_text="What became of them so far."
    )
    error = serializers.CharField(help_text="Why it failed or waits, in a sentence.")
    created_at = Moment()
    finished_at = Moment(allow_null=True)
    expires_at = Moment(help_text="When the file is deleted unless something is done with it.")

    class Meta:
        model = Import
        fields = list(IMPORT)

    def get_checked(self, imported: Import) -> bool:
        return imported.checked_at is not None


class ImportRowJson(serializers.Serializer[Any]):
    line = serializers.IntegerField(source="row.number")
    kind = serializers.ChoiceField(choices=KINDS, source="row.kind")
    outcome = serializers.ChoiceField(choices=Outcome.values, source="row.outcome")
    reason = serializers.CharField(source="row.reason", help_text="Why; never what stood there.")
    text = serializers.CharField(help_text="Its beginning. Empty where it looks like a credential.")
    duplicate_of = serializers.CharField(
        source="row.duplicate_of", help_text="The id of what is here already."
    )
    same_as_line = serializers.IntegerField(
        source="row.same_as", allow_null=True, help_text="The line of this file that says it already."
    )


@extend_schema_field(OpenApiTypes.BINARY)
class OneFile(serializers.FileField):
    """The part of the form that is the file."""


class UploadBody(Body):
    file = OneFile(help_text="An export of MemoryHub, ChatGPT or Claude, or a list of statements.")
    workspace_id = Text(
        required=False,
        help_text="Everything goes there. Without it each workspace of the file to its own, made if need be; "
        "what has none to your own workspace.",
    )


class StartBody(Body):
    chats = Flag(default=True, help_text="Take chats, messages and what they recalled.")
    memories = Flag(default=True, help_text="Take memories.")


class RowQuery(PageQuery):
    outcome = serializers.ChoiceField(choices=Outcome.values, required=False, help_text="Only these.")
    kind = serializers.ChoiceField(choices=KINDS, required=False, help_text="Only these.")


class WorkspaceExport(ApiView):
    @documented(
        "Export a workspace",
        tag="exchange",
        operation="workspaces_export",
        answers={(200, MEDIA_TYPE): FILE},
        errors=[404],
        description="What you may see of it: settings, assistants, chats (of the private ones your own), memories "
        "with their history, receipts.",
    )
    def get(self, request: Request, workspace_id: str) -> StreamingHttpResponse:
        workspace = get_workspace(self.person, workspace_id)
        return export_response(self.person, workspace=workspace, now=timezone.now())


class Export(ApiView):
    @documented(
        "Export all that is yours",
        tag="exchange",
        operation="export",
        answers={(200, MEDIA_TYPE): FILE},
        description="What you may see of every workspace you are a member of, your personal memories included.",
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        return export_response(self.person, now=timezone.now())


class OneUpload(MultiPartParser):
    """Refuses by length before anything of the body is read."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        request: HttpRequest = (parser_context or {})["request"]
        refuse_too_large(request.META.get("CONTENT_LENGTH"))
        return super().parse(stream, media_type, parser_context)


class ImportList(ApiView):
    parser_classes = [OneUpload]

    @documented(
        "List your imports",
        tag="exchange",
        operation="imports_list",
        answers={200: page_of(ImportJson, "Import")},
        query=PageQuery,
        description="Newest first.",
        examples=[page_example(IMPORT)],
    )
    def get(self, request: Request) -> Response:
        return self.page(
            Import.objects.of(self.person).select_related("workspace"),
            ImportJson,
            descending=True,
            list_name=f"imports of {self.person.public_id}",
        )

    @documented(
        "Upload a file to import",
        tag="exchange",
        operation="imports_create",
        answers={201: ImportJson},
        body={"multipart/form-data": UploadBody},
        errors=[404, 409, 429],
        writes=True,
        headers=ONCE,
        description="Nothing is stored yet: the file is looked at in the background, line by line. Editors and owners.",
        examples=[
            OpenApiExample(
                "An export",
                value={"file": "(its bytes)"},
                request_only=True,
                media_type="multipart/form-data",
            ),
            answer_example("To be looked at", {**IMPORT, "checked": False, "preview": {}}, code=201),
        ],
    )
    def post(self, request: Request) -> Response:
        body = self.body(UploadBody)
        workspace = None
        if "workspace_id" in body:
            workspace = workspace_or_404(self.person, body["workspace_id"], need=Role.EDITOR)
        file, now = body["file"], timezone.now()
        imported = self.once(
            lambda: run.begin(
                self.person, workspace=workspace, filename=file.name, pieces=file.chunks(), now=now
            ),
            keep=lambda made: {"import": made.public_id},
            again=lambda note: run.get_import(self.person, note["import"]),
        )
        return Response(ImportJson(imported).data, status=status.HTTP_201_CREATED)


class ImportDetail(ApiView):
    @documented(
        "Look at an import",
        tag="exchange",
        operation="imports_get",
        answers={200: ImportJson},
        errors=[404],
        description="Yours alone, whoever else is in the workspace.",
        examples=[answer_example("An import", IMPORT)],
    )
    def get(self, request: Request, import_id: str) -> Response:
        return Response(ImportJson(run.get_import(self.person, import_id)).data)

    @documented(
        "Delete an import",
        tag="exchange",
        operation="imports_delete",
        answers={204: None},
        errors=[404],
        writes=True,
        description="The file and its preview go. What it stored stays.",
    )
    def delete(self, request: Request, import_id: str) -> Response:
        run.delete(run.get_import(self.person, import_id))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ImportRows(ApiView):
    @documented(
        "Preview an import",
        tag="exchange",
        operation="imports_rows",
        answers={200: page_of(ImportRowJson, "ImportRow")},
        query=RowQuery,
        errors=[404],
        description="What would become of each line, in their order; of messages and receipts only those refused.",
        examples=[page_example(ROW)],
    )
    def get(self, request: Request, import_id: str) -> Response:
        imported = run.get_import(self.person, import_id)
        query = self.query(RowQuery)
        chosen = {name: query[name] for name in ("outcome", "kind") if name in query}
        page = paged(
            request,
            imported.rows.filter(**chosen),
            keys=["number"],
            descending=False,
            list_name=f"rows of {imported.public_id} {chosen}",
            shape=lambda rows: ImportRowJson(with_texts(imported, rows), many=True).data,
        )
        return Response(page)


class ImportStart(ApiView):
    @documented(
        "Start an import",
        tag="exchange",
        operation="imports_start",
        answers={202: ImportJson},
        body=StartBody,
        errors=[404, 409],
        writes=True,
        description="Stores what the preview showed, in the background. 409 until `checked`, and once it was started.",
        examples=[
            request_example("Only the memories", {"chats": False}),
            answer_example("Running", {**IMPORT, "status": "running"}, code=202),
        ],
    )
    def post(self, request: Request, import_id: str) -> Response:
        imported = run.get_import(self.person, import_id)
        body = self.body(StartBody)
        run.start(imported, now=timezone.now(), takes_chats=body["chats"], takes_memories=body["memories"])
        return _accepted(self.person, import_id)


class ImportStop(ApiView):
    @documented(
        "Stop an import",
        tag="exchange",
        operation="imports_stop",
        answers={202: ImportJson},
        errors=[404, 409],
        writes=True,
        description="It can be resumed where it stopped; what was stored stays. 409 unless it is running.",
        examples=[answer_example("Stopped", {**IMPORT, "status": "stopped"}, code=202)],
    )
    def post(self, request: Request, import_id: str) -> Response:
        run.stop(run.get_import(self.person, import_id), now=timezone.now())
        return _accepted(self.person, import_id)


class ImportResume(ApiView):
    @documented(
        "Resume an import",
        tag="exchange",
        operation="imports_resume",
        answers={202: ImportJson},
        errors=[404, 409],
        writes=True,
        description="409 unless it is stopped.",
        examples=[answer_example("Running", {**IMPORT, "status": "running"}, code=202)],
    )
    def post(self, request: Request, import_id: str) -> Response:
        run.resume(run.get_import(self.person, import_id), now=timezone.now())
        return _accepted(self.person, import_id)


def _accepted(person: Any, import_id: str) -> Response:
    return Response(ImportJson(run.get_import(person, import_id)).data, status=status.HTTP_202_ACCEPTED)
