"""Artifacts of a workspace, over REST."""

from typing import Any

from django.db import transaction
from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces import artifacts
from workspaces.access import get_workspace, require_right_to_forget
from workspaces.api.base import ETAG, IF_MATCH, ApiView, versions_seen
from workspaces.api.fields import Body, Choice, Flag, Moment, Text
from workspaces.api.idempotency import ONCE
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.api.serializers import (
    FOR_ONESELF,
    MOVES,
    PersonalField,
    PersonJson,
    RemovedJson,
    removed_json,
)
from workspaces.artifacts import Written, forget_artifact
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.models import Artifact, ArtifactKind, Role
from workspaces.models.documents import CONTENT_LENGTH, LANGUAGE_LENGTH, TITLE_LENGTH

documented = documented_under("artifacts")


class ArtifactJson(serializers.Serializer[Any]):
    example = {"id": f"art_{ID}", "title": "Rows of a table", "kind": "code", "language": "python"}
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(source="workspace.public_id")
    title = serializers.CharField(max_length=TITLE_LENGTH)
    kind = serializers.ChoiceField(choices=ArtifactKind.values)
    language = serializers.CharField(help_text="Of code; empty otherwise.")
    content = serializers.CharField(help_text="Of the newest version; a table as Markdown.")
    version = serializers.IntegerField(min_value=1, help_text="The number of the newest version.")
    personal = PersonalField()
    source_chat_id = serializers.CharField(allow_null=True, help_text="The chat that it was kept from.")
    source_message_id = serializers.CharField(allow_null=True, help_text="The answer that it was kept from.")
    created_by = PersonJson(allow_null=True)
    imported = serializers.BooleanField(
        read_only=True, help_text="Whether somebody else imported it under that person's name."
    )
    created_at = Moment()
    updated_at = Moment()

    def to_representation(self, artifact: Artifact) -> dict[str, Any]:
        shown = super().to_representation(artifact)
        return shown | {name: shown[name] or None for name in ("source_chat_id", "source_message_id")}


class ArtifactVersionJson(serializers.Serializer[Any]):
    number = serializers.IntegerField(min_value=1)
    title = serializers.CharField()
    language = serializers.CharField()
    content = serializers.CharField()
    by = PersonJson(allow_null=True)
    by_model = serializers.BooleanField(help_text="true: a model wrote it, for that person.")
    imported = serializers.BooleanField(
        read_only=True, help_text="true: somebody else imported it under that name, or as a model's."
    )
    created_at = Moment()


class Confirmable(Body):
    confirm = Flag(
        source="confirmed",
        default=False,
        help_text="true: you were asked (422 with code `sensitive`) and want it kept all the same.",
    )


class ArtifactBody(Confirmable):
    example = {"title": "Rows of a table", "kind": "code", "language": "python", "content": "rows = []"}
    title = Text(max_length=TITLE_LENGTH)
    kind = Choice(ArtifactKind.values)
    language = Text(max_length=LANGUAGE_LENGTH, allow_blank=True, required=False, default="")
    content = Text(max_length=CONTENT_LENGTH, trim_whitespace=False)
    personal = Flag(default=False, help_text=FOR_ONESELF)


class ArtifactChanges(Confirmable):
    example = {"content": "rows = [1]"}
    title = Text(max_length=TITLE_LENGTH, required=False)
    language = Text(max_length=LANGUAGE_LENGTH, allow_blank=True, required=False)
    content = Text(max_length=CONTENT_LENGTH, trim_whitespace=False, required=False)
    personal = Flag(required=False, help_text=MOVES)


def _shown(artifact: Artifact, code: int = status.HTTP_200_OK) -> Response:
    return Response(ArtifactJson(artifact).data, status=code, headers={"ETag": artifacts.etag(artifact)})


class ArtifactList(ApiView):
    @documented("artifacts_list", page_of(ArtifactJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the artifacts of a workspace.

        Newest first, including your personal ones from any workspace.
        """
        workspace = get_workspace(self.person, workspace_id)
        queryset = within_policy(Artifact.objects.live(), workspace, self.person, DataPolicy.here(workspace))
        return self.page(
            queryset.select_related("workspace", "created_by"),
            ArtifactJson,
            list_name=f"artifacts of {workspace.public_id}",
            descending=True,
        )

    @documented("artifacts_create", {201: ArtifactJson}, body=ArtifactBody, headers=[*ONCE, ETAG])
    def post(self, request: Request, workspace_id: str) -> Response:
        """Create an artifact.

        Editors and owners only. 422 with code `sensitive` if it seems to contain a credential or a personal number; it
        is saved if you send it again with `confirm: true`.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        body = self.body(ArtifactBody)
        options = {name: body.pop(name) for name in ("kind", "personal", "confirmed")}
        written = Written(**body)
        artifact = self.make_once(
            lambda: artifacts.create_artifact(
                workspace, written, by=self.person, now=timezone.now(), **options
            ),
            artifacts.get_artifact,
        )
        return _shown(artifact, status.HTTP_201_CREATED)


class _OfArtifact(ApiView):
    def artifact(
        self, workspace_id: str, artifact_id: str, need: Role = Role.VIEWER, *, or_deleted: bool = False
    ) -> Artifact:
        workspace = get_workspace(self.person, workspace_id, need=need)
        return artifacts.get_artifact(self.person, artifact_id, workspace=workspace, or_deleted=or_deleted)


class ArtifactDetail(_OfArtifact):
    @documented("artifacts_get", ArtifactJson, headers=[ETAG])
    def get(self, request: Request, workspace_id: str, artifact_id: str) -> Response:
        """Get an artifact."""
        return _shown(self.artifact(workspace_id, artifact_id))

    @documented("artifacts_update", ArtifactJson, body=ArtifactChanges, headers=[ETAG, IF_MATCH])
    def patch(self, request: Request, workspace_id: str, artifact_id: str) -> Response:
        """Change an artifact.

        Creates a new version, unless only `personal` changes. Earlier versions stay. Fields you leave out stay as they
        are. 409 with code `stale` if it has changed since the version in `If-Match`; 422 with code `sensitive` as for a
        new artifact.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        artifact = artifacts.get_artifact(self.person, artifact_id, workspace=workspace)
        body, seen = self.body(ArtifactChanges), versions_seen(request)
        personal = body.pop("personal", None)
        with transaction.atomic():
            artifact = artifacts.update_artifact(
                artifact, **body, by=self.person, now=timezone.now(), seen=seen
            )
            if personal is not None:
                artifact = artifacts.move(artifact, None if personal else workspace, by=self.person)
        return _shown(artifact)

    @documented("artifacts_delete", headers=[IF_MATCH])
    def delete(self, request: Request, workspace_id: str, artifact_id: str) -> Response:
        """Delete an artifact.

        It is no longer listed or found; `restore` brings it back.
        """
        artifact = self.artifact(workspace_id, artifact_id, Role.EDITOR)
        artifacts.delete(artifact, by=self.person, now=timezone.now(), seen=versions_seen(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ArtifactVersions(_OfArtifact):
    @documented("artifacts_versions", page_of(ArtifactVersionJson))
    def get(self, request: Request, workspace_id: str, artifact_id: str) -> Response:
        """List the versions of an artifact.

        Newest first, each with its author, time and content.
        """
        artifact = self.artifact(workspace_id, artifact_id)
        return self.page(
            artifact.versions.select_related("by"),
            ArtifactVersionJson,
            keys=["number"],
            list_name=f"versions of {artifact.public_id}",
            descending=True,
        )


class ArtifactRestore(_OfArtifact):
    @documented("artifacts_restore", ArtifactJson, headers=[ETAG])
    def post(self, request: Request, workspace_id: str, artifact_id: str) -> Response:
        """Restore a deleted artifact.

        Restoring one that is in use changes nothing.
        """
        artifact = self.artifact(workspace_id, artifact_id, Role.EDITOR, or_deleted=True)
        return _shown(artifacts.restore(artifact, by=self.person, now=timezone.now()))


class ArtifactForget(_OfArtifact):
    @documented("artifacts_forget", RemovedJson, fresh=True)
    def post(self, request: Request, workspace_id: str, artifact_id: str) -> Response:
        """Forget an artifact for good.

        Its creator or an owner of the workspace may do this, even once it is deleted. Removes its text, all its
        versions, its words and vectors. If it was saved from a chat, the messages stay there. This cannot be undone.
        """
        artifact = self.artifact(workspace_id, artifact_id, Role.EDITOR, or_deleted=True)
        require_right_to_forget(artifact, self.person)
        self.require_fresh_password()
        return Response(removed_json(forget_artifact(artifact, by=self.person)))
