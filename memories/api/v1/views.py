"""Organisation memory: the memories of one workspace and its asker's own, for programs with a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import Q, prefetch_related_objects
from django.utils import timezone
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.access import get_memory
from memories.api.examples import SECRET, SENSITIVE
from memories.api.saving import save_once
from memories.api.v1 import examples
from memories.api.v1.serializers import (
    CATEGORY,
    NAMES,
    SCOPES,
    MemoryQuery,
    OrganisationDeleteBody,
    OrganisationDeletedJson,
    OrganisationMemoryBody,
    OrganisationMemoryChanges,
    OrganisationMemoryJson,
    OrganisationRecallBody,
    OrganisationRecallJson,
    OrganisationSavedJson,
    PlaceQuery,
    field_values,
)
from memories.models import Memory, Scope
from memories.models.memory import MemoryQuerySet
from memories.recalling.recall import recall
from memories.writing import gate
from memories.writing.sources import from_source, set_sources
from memories.writing.versions import etag
from memoryhub.errors import DomainError, Forbidden, NotFound
from memoryhub.ids import PATTERN
from workspaces.access import default_workspace, get_workspace
from workspaces.accounts.sign_in import typed_password_lately
from workspaces.agents.agents import choose_agent
from workspaces.audit import note_bulk_read
from workspaces.leaving_machine import Reach
from workspaces.models import Agent, Role, Workspace
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_of,
    request_example,
)
from workspaces.rest.etags import ETAG, IF_MATCH, versions_seen
from workspaces.rest.idempotency import ONCE
from workspaces.rest.keys import KeyedView

TAG = "organisation memory"
DELETING = (
    "Needs a browser session whose person typed their password again in the last five minutes "
    "(`/accounts/reauthenticate/`): else 403 with code `reauthenticate`. An API key gets 403 with code "
    "`session_only`, whoever owns it."
)


class OrganisationView(KeyedView):
    """Reads the active workspace: its shared memories, those of its assistants, and the asker's own."""

    def workspace(self, need: Role = Role.VIEWER) -> Workspace:
        """The active one: the key's own, for a session the one asked for, else its person's default one."""
        asked = self.query(PlaceQuery).get("workspace_id")
        if self.key is not None:
            if asked not in {None, self.key.workspace.public_id}:
                raise NotFound("There is no such workspace, or this key is not for it.")
            return get_workspace(self.person, self.key.workspace.public_id, need=need)
        if asked is None:
            return default_workspace(self.person)
        if not PATTERN.fullmatch(asked):
            raise NotFound("There is no such workspace, or it is not yours to see.")
        return get_workspace(self.person, asked, need=need)

    def memories(self, workspace: Workspace) -> MemoryQuerySet:
        found = Memory.objects.visible_to(self.person).live().listed()
        in_sight = Q(workspace=workspace) | Q(owner=self.person)
        return found.filter(in_sight).defer("search", "source_excerpt").prefetch_related("sources")

    def agent(self, workspace: Workspace, values: dict[str, Any], **options: bool) -> Agent | None:
        """The assistant that is named in these values; takes the name out of them."""
        agent_id = values.pop("agent_id", None)
        return choose_agent(workspace, agent_id, **options) if agent_id is not None else None

    def memory(self, memory_id: str, need: Role = Role.VIEWER) -> Memory:
        workspace = self.workspace(need)
        memory = get_memory(self.person, memory_id, need=need)
        if memory.scope != Scope.USER and memory.workspace_id != workspace.pk:
            raise NotFound("There is no such memory, or it is not yours to see.")
        return memory

    def require_fresh_password(self) -> None:
        if not typed_password_lately(self.request._request):
            raise Forbidden(
                "Deleting needs your password once more: type it at /accounts/reauthenticate/ and send this again.",
                code="reauthenticate",
            )


def shown(memory: Memory, *, code: int = status.HTTP_200_OK, **more: Any) -> Response:
    """One memory with its ETag. ``more`` stands beside its fields."""
    return Response(
        {**OrganisationMemoryJson(memory).data, **more}, status=code, headers={"ETag": etag(memory)}
    )


@contextmanager
def told_in_our_names() -> Iterator[None]:
    """What the gate refuses, with the fields as callers of this API know them."""
    try:
        yield
    except DomainError as error:
        names = {inside: outside for outside, inside in NAMES.items()}
        error.fields = {names.get(name, name): text for name, text in error.fields.items()}
        raise


class MemoryList(OrganisationView):
    @documented(
        "List memories",
        tag=TAG,
        operation="v1_memories_list",
        answers={200: page_of(OrganisationMemoryJson, "OrganisationMemory")},
        query=MemoryQuery,
        errors=[404, 429],
        description="The memories of the workspace, those of its assistants, and your global ones, newest first. "
        "Inserts and deletes while you page repeat and skip nothing.",
        examples=[answer_example("A page", examples.PAGE)],
    )
    def get(self, request: Request) -> Response:
        workspace = self.workspace()
        query = self.query(MemoryQuery)
        rows = self.memories(workspace)
        if "agentId" in query:
            with told_in_our_names():
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
        note_bulk_read(len(answer.data["items"]), by=self.person, workspace=workspace)
        return answer

    @documented(
        "Save a memory",
        tag=TAG,
        operation="v1_memories_create",
        answers={201: OrganisationSavedJson, 200: OrganisationSavedJson},
        headers=[*ONCE, ETAG],
        body=OrganisationMemoryBody,
        query=PlaceQuery,
        errors=[404, 429],
        writes=True,
        description="201 with the new memory. 200 when there is none: one of the same key, scope and workspace was "
        "updated in place (same id; what is left out is kept), or one says nearly the same (`duplicate: true`). 422 "
        "with code `secret`: a credential; with code `sensitive`: a personal number, stored when the same comes with "
        "`confirm: true`, unless `source` is auto.",
        examples=[
            request_example(
                "A fact",
                {"key": "deadline", "value": "The project deadline is March 15, 2026", "importance": 7},
            ),
            answer_example("Saved", {**examples.MEMORY, "duplicate": False}, code=201),
            answer_example("Updated by its key", {**examples.MEMORY, "duplicate": False}),
            SECRET,
            SENSITIVE,
        ],
    )
    def post(self, request: Request) -> Response:
        workspace = self.workspace(Role.EDITOR)
        values = field_values(self.body(OrganisationMemoryBody))
        named, dedupe = {*values}, values.pop("dedupe")
        values.setdefault("category", CATEGORY)
        with told_in_our_names():
            agent = self.agent(workspace, values)
            draft = gate.Draft(workspace=workspace, author=self.person, agent=agent, named=named, **values)
            now = timezone.now()
            saved = save_once(self, lambda: gate.save_memory(draft, by=self.person, now=now, dedupe=dedupe))
        code = status.HTTP_201_CREATED if saved.created else status.HTTP_200_OK
        return shown(saved.memory, code=code, duplicate=saved.duplicate)

    @documented(
        "Delete several memories",
        tag=TAG,
        operation="v1_memories_delete_several",
        answers={200: OrganisationDeletedJson},
        body=OrganisationDeleteBody,
        query=PlaceQuery,
        errors=[404, 429],
        writes=True,
        session_only=True,
        description=f"At most 100 at once; all of them or, on any error, none. {DELETING}",
        examples=[
            request_example("Two", {"ids": [*examples.DELETED["deleted"], *examples.DELETED["missing"]]}),
            answer_example("One was gone already", examples.DELETED),
        ],
    )
    def delete(self, request: Request) -> Response:
        self.require_fresh_password()
        workspace = self.workspace(Role.EDITOR)
        ids = self.body(OrganisationDeleteBody)["ids"]
        now = timezone.now()
        with transaction.atomic():
            there = {
                memory.public_id: memory for memory in self.memories(workspace).filter(public_id__in=ids)
            }
            for public_id in sorted(there):  # in one order, so that two of these never wait for each other
                gate.delete_memory(there[public_id], by=self.person, now=now)
        deleted = [public_id for public_id in ids if public_id in there]
        return Response({"deleted": deleted, "missing": [each for each in ids if each not in there]})


class MemoryDetail(OrganisationView):
    @documented(
        "Look at a memory",
        tag=TAG,
        operation="v1_memories_get",
        answers={200: OrganisationMemoryJson},
        headers=[ETAG],
        query=PlaceQuery,
        errors=[404, 429],
        examples=[answer_example("A memory", examples.MEMORY)],
    )
    def get(self, request: Request, memory_id: str) -> Response:
        return shown(self.memory(memory_id))

    @documented(
        "Change a memory",
        tag=TAG,
        operation="v1_memories_update",
        answers={200: OrganisationMemoryJson},
        headers=[ETAG, IF_MATCH],
        body=OrganisationMemoryChanges,
        query=PlaceQuery,
        errors=[404, 409, 429],
        writes=True,
        description="What is left out stays; a new value takes an old summary with it. 409 when the key is taken, "
        "or with code `stale`.",
        examples=[
            request_example("A new value", {"value": "The project deadline is April 1, 2026"}),
            answer_example("Changed", examples.MEMORY),
            SECRET,
            SENSITIVE,
        ],
    )
    def patch(self, request: Request, memory_id: str) -> Response:
        memory = self.memory(memory_id, Role.EDITOR)
        changes: dict[str, Any] = field_values(self.body(OrganisationMemoryChanges))
        sources = changes.pop("sources", None)
        with told_in_our_names():
            memory = gate.edit_memory(
                memory, by=self.person, now=timezone.now(), seen=versions_seen(request), **changes
            )
        if sources is not None:
            memory = set_sources(memory, sources, now=timezone.now())
        return shown(memory)

    @documented(
        "Delete a memory",
        tag=TAG,
        operation="v1_memories_delete",
        answers={204: None},
        headers=[IF_MATCH],
        query=PlaceQuery,
        errors=[404, 429],
        writes=True,
        session_only=True,
        description=DELETING,
    )
    def delete(self, request: Request, memory_id: str) -> Response:
        self.require_fresh_password()
        memory = self.memory(memory_id, Role.EDITOR)
        gate.delete_memory(memory, by=self.person, now=timezone.now(), seen=versions_seen(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Recall(OrganisationView):
    only_reads = True

    @documented(
        "Recall what matters to a query",
        tag=TAG,
        operation="v1_memories_recall",
        answers={200: OrganisationRecallJson},
        body=OrganisationRecallBody,
        query=PlaceQuery,
        errors=[404, 429],
        description="By full text over key, summary, value, category and tags, and where that finds nothing by parts "
        "of words (`%`, `_` and `\\` are letters like others). Best first; of equals the pinned, then the important, "
        "then the newly changed ones. Your global memories included; those of an assistant only with its `agentId`.",
        examples=[
            request_example("A question", {"query": "When is the deadline?", "limit": 5}),
            answer_example("Found", examples.RECALL),
        ],
    )
    def post(self, request: Request) -> Response:
        workspace = self.workspace()
        values = field_values(self.body(OrganisationRecallBody))
        with told_in_our_names():
            agent = self.agent(workspace, values, or_archived=True)
        who: dict[str, Any] = {"workspace": workspace, "user": self.person, "agent": agent}
        found = recall(**who, reach=Reach.here(workspace), ranking="lexical", now=timezone.now(), **values)
        prefetch_related_objects([item.memory for item in found.items], "sources")
        memories = [{**OrganisationMemoryJson(item.memory).data, "score": item.score} for item in found.items]
        return Response({"memories": memories})
