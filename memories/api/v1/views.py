"""REST endpoints of organisation memory (/api/v1): the memories of one workspace and the caller's own."""

from typing import Any

from django.db import transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.access import get_memory
from memories.api.memory_requests import change, delete_memory, recalled, save
from memories.api.v1.serializers import (
    CATEGORY,
    NAMES,
    SCOPES,
    MemoryQuery,
    OrganisationDeleteBody,
    OrganisationDeletedJson,
    OrganisationMemoryBody,
    OrganisationMemoryJson,
    OrganisationMemoryUpdate,
    OrganisationRecallBody,
    OrganisationRecallJson,
    OrganisationSavedJson,
    PlaceQuery,
)
from memories.models import Memory, Scope
from memories.models.memory import MemoryQuerySet
from memories.topics import linkable_memories
from memories.writing import gate
from memories.writing.changing import etag
from memories.writing.drafts import from_source
from memoryhub.errors import DomainError, NotFound
from workspaces.access import default_workspace, get_workspace, named_workspace
from workspaces.actions import workspaces
from workspaces.actions.workspaces import choose_agent
from workspaces.api.base import ETAG, IF_MATCH, KeyedView
from workspaces.api.fields import Moment
from workspaces.api.idempotency import ONCE
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.audit import record_bulk_read
from workspaces.models import Role, Workspace

documented = documented_under("organisation memory")


class OrganisationView(KeyedView):
    """Base view for the active workspace: its shared memories, those of its assistants, and the caller's own."""

    always_takes = PlaceQuery

    def workspace(self, need: Role = Role.VIEWER) -> Workspace:
        """Return the workspace that the request is about, if the person has at least the role ``need`` in it.

        With an API key, this is the workspace of the key, and NotFound is raised if ``?workspace_id=`` names another
        one. Without a key, it is the workspace that ``?workspace_id=`` names, or else the person's default workspace.
        """
        workspace_id = self.query(PlaceQuery).get("workspace_id")
        if self.key is not None:
            if workspace_id not in {None, self.key.workspace.public_id}:
                raise NotFound(_("This workspace does not exist, or this key is not for it."))
            return get_workspace(self.person, self.key.workspace.public_id, need=need)
        if workspace_id is None:
            return default_workspace(self.person)
        return named_workspace(self.person, workspace_id, need=need)

    def handle_exception(self, error: Exception) -> Response:
        """Rename the fields in validation errors to the camelCase names of this API."""
        if isinstance(error, DomainError):
            for name in error.fields:
                error.message = error.message.replace(f"{name}: ", f"{NAMES.get(name, name)}: ")
            error.fields = {NAMES.get(name, name): text for name, text in error.fields.items()}
        return super().handle_exception(error)

    def memories(self, workspace: Workspace) -> MemoryQuerySet:
        rows = linkable_memories(workspace, self.person).listed().select_related("replaced_by")
        return rows.defer("search", "source_excerpt").prefetch_related("sources")

    def memory(self, memory_id: str, need: Role = Role.VIEWER) -> Memory:
        workspace = self.workspace(need)
        memory = get_memory(self.person, memory_id, need=need)
        if memory.scope != Scope.USER and memory.workspace_id != workspace.pk:
            raise NotFound(_("This memory does not exist, or you do not have access to it."))
        return memory


def shown(memory: Memory, *, code: int = status.HTTP_200_OK, **more: Any) -> Response:
    """Return a response with a memory and its ETag. ``more`` are further fields."""
    return Response(
        {**OrganisationMemoryJson(memory).data, **more}, status=code, headers={"ETag": etag(memory)}
    )


class MemoryList(OrganisationView):
    @documented("v1_memories_list", page_of(OrganisationMemoryJson), query=MemoryQuery)
    def get(self, request: Request) -> Response:
        """List memories.

        Memories of the workspace and its assistants, and your global ones, newest first. No memory is repeated or left
        out between pages, even if memories are added or deleted in the meantime.
        """
        workspace = self.workspace()
        query = self.query(MemoryQuery)
        rows = self.memories(workspace)
        if "agentId" in query:
            rows = rows.filter(agent=choose_agent(workspace, query["agentId"], or_archived=True))
        if "scope" in query:
            rows = rows.filter(scope=SCOPES[query["scope"]])
        if "tag" in query:
            rows = rows.filter(tags__contains=[query["tag"]])
        if "source_id" in query:
            rows = from_source(rows, query["source_id"])
        rows = rows.filter(**{name: query[name] for name in ("category", "key") if name in query})
        answer = self.page(
            rows,
            OrganisationMemoryJson,
            descending=True,
            list_name=f"organisation memories of {workspace.public_id}",
        )
        record_bulk_read(len(answer.data["items"]), by=self.person, workspace=workspace)
        return answer

    @documented(
        "v1_memories_create",
        {201: OrganisationSavedJson, 200: OrganisationSavedJson},
        body=OrganisationMemoryBody,
        headers=[*ONCE, ETAG],
    )
    def post(self, request: Request) -> Response:
        """Save a memory.

        201 with the new memory. 200 if none was added: with `duplicate: true` because a memory says nearly the same,
        otherwise because one with the same key, scope and workspace was updated in place (same id; fields you leave out
        stay). 422 with code `secret` for a credential. 422 with code `sensitive` for a personal number; send it again
        with `confirm: true` to store it, unless `source` is auto.
        """
        workspace = self.workspace(Role.EDITOR)
        saved = save(self, workspace, self.body(OrganisationMemoryBody), default_category=CATEGORY)
        code = status.HTTP_201_CREATED if saved.created else status.HTTP_200_OK
        return shown(saved.memory, code=code, duplicate=saved.duplicate)

    @documented(
        "v1_memories_delete_several", OrganisationDeletedJson, body=OrganisationDeleteBody, fresh=True
    )
    def delete(self, request: Request) -> Response:
        """Delete several memories.

        At most 100 at a time. On any error, none is deleted.
        """
        self.require_fresh_password()
        workspace = self.workspace(Role.EDITOR)
        ids, now = self.body(OrganisationDeleteBody)["ids"], timezone.now()
        with transaction.atomic():
            # A fixed order prevents deadlocks between two requests.
            memories = list(self.memories(workspace).filter(public_id__in=ids).order_by("public_id"))
            for memory in memories:
                gate.delete_memory(memory, by=self.person, now=now)
        known = {memory.public_id for memory in memories}
        deleted = [each for each in ids if each in known]
        return Response({"deleted": deleted, "missing": [each for each in ids if each not in known]})


class MemoryDetail(OrganisationView):
    @documented("v1_memories_get", OrganisationMemoryJson, headers=[ETAG])
    def get(self, request: Request, memory_id: str) -> Response:
        """Get a memory."""
        return shown(self.memory(memory_id))

    @documented(
        "v1_memories_update",
        OrganisationMemoryJson,
        body=OrganisationMemoryUpdate,
        headers=[*ONCE, ETAG, IF_MATCH],
    )
    def patch(self, request: Request, memory_id: str) -> Response:
        """Change a memory.

        Fields you leave out stay as they are, but a new value removes the old summary. 409 if the key is taken, or with
        code `stale` if the memory has changed since the version in `If-Match`.
        """
        memory = self.memory(memory_id, Role.EDITOR)
        return shown(change(self, memory, self.body(OrganisationMemoryUpdate)))

    @documented("v1_memories_delete", headers=[IF_MATCH], fresh=True)
    def delete(self, request: Request, memory_id: str) -> Response:
        """Delete a memory."""
        self.require_fresh_password()
        return delete_memory(self, self.memory(memory_id, Role.EDITOR))


class Recall(OrganisationView):
    only_reads = True

    @documented("v1_memories_recall", OrganisationRecallJson, body=OrganisationRecallBody)
    def post(self, request: Request) -> Response:
        r"""Recall the memories that are relevant to a query.

        Searches key, summary, value, category and tags by full text and, if that finds nothing, by parts of words (`%`,
        `_` and `\` are ordinary characters). Best first; of equally good memories, pinned ones come first, then
        important, then recently changed ones. Includes your global memories, and an assistant's only with its
        `agentId`.
        """
        workspace = self.workspace()
        recall_result = recalled(self.person, workspace, self.body(OrganisationRecallBody), ranking="lexical")
        memories = [item.memory for item in recall_result.items]
        prefetch_related_objects(memories, "sources", "replaced_by")
        shown = OrganisationMemoryJson(memories, many=True).data
        scored = [
            {**json, "score": item.score} for json, item in zip(shown, recall_result.items, strict=True)
        ]
        return Response({"memories": scored})


class OrganisationAgentJson(serializers.Serializer[Any]):
    example = {"id": f"agent_{ID}", "name": "Proofreader", "instructions": "Correct spelling and grammar."}
    id = serializers.CharField(source="public_id")
    name = serializers.CharField(max_length=workspaces.AGENT_NAME_LENGTH)
    description = serializers.CharField(max_length=workspaces.AGENT_DESCRIPTION_LENGTH)
    instructions = serializers.CharField(max_length=workspaces.INSTRUCTIONS_LENGTH)
    workspaceId = serializers.CharField(source="workspace.public_id")
    archivedAt = Moment(source="archived_at", allow_null=True)
    createdAt = Moment(source="created_at")
    updatedAt = Moment(source="updated_at")


class AgentList(OrganisationView):
    @documented("v1_agents_list", page_of(OrganisationAgentJson))
    def get(self, request: Request) -> Response:
        """List the assistants.

        Assistants of the workspace that are not archived, oldest first.
        """
        workspace = self.workspace()
        return self.page(
            workspace.agents.in_use().select_related("workspace"),
            OrganisationAgentJson,
            list_name=f"organisation agents of {workspace.public_id}",
        )


class AgentDetail(OrganisationView):
    @documented("v1_agents_get", OrganisationAgentJson)
    def get(self, request: Request, agent_id: str) -> Response:
        """Get an assistant, even an archived one."""
        agent = workspaces.get_agent(self.person, agent_id, workspace=self.workspace())
        return Response(OrganisationAgentJson(agent).data)
