"""What waits for review, over REST."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import examples
from memories.api.queries import described, memory_json, memory_response
from memories.api.saving import save_once, saved_response
from memories.api.serializers import Confirmable, MemoryJson, SavedMemoryJson
from memories.models import Memory
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH
from memories.writing import review
from memories.writing.drafts import TAG_LENGTH, TAGS
from memories.writing.gate import Draft
from workspaces.access import get_workspace
from workspaces.models import Role
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_of,
    request_example,
)
from workspaces.rest.fields import Text, Words
from workspaces.rest.idempotency import ONCE
from workspaces.rest.keys import KeyedView
from workspaces.rest.paging import PageQuery


class ProposalBody(Confirmable):
    content = Text(max_length=CONTENT_LENGTH)
    category = Text(max_length=CATEGORY_LENGTH, required=False)
    tags = Words(word_length=TAG_LENGTH, max_length=TAGS, required=False)


class ProposalList(KeyedView):
    @documented(
        "List what waits for review",
        tag="memories",
        operation="proposals_list",
        answers={200: page_of(MemoryJson, "Proposal")},
        query=PageQuery,
        errors=[404, 429],
        description="Oldest first. Nothing recalls, counts or lists a proposal elsewhere.",
        examples=[answer_example("A page", examples.PAGE)],
    )
    def get(self, request: Request, workspace_id: str) -> Response:
        workspace = get_workspace(self.person, workspace_id)
        return self.page(
            described(review.proposals(workspace, self.person)),
            memory_json,
            list_name=f"proposals of {workspace.public_id}",
        )

    @documented(
        "Propose a memory",
        tag="memories",
        operation="proposals_create",
        answers={202: MemoryJson, 200: SavedMemoryJson},
        body=ProposalBody,
        errors=[404, 409, 429],
        writes=True,
        headers=ONCE,
        description="202: it waits. 200 with `duplicate: true` when it is known. Viewers may where the workspace "
        "reviews proposals, editors always.",
        examples=[
            request_example("A proposal", {"content": "Quarterly review meets every Thursday"}),
            answer_example("It waits", examples.MEMORY, code=202),
            answer_example("Known already", {**examples.MEMORY, "duplicate": True}),
            examples.SECRET,
            examples.SENSITIVE,
        ],
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        workspace = get_workspace(self.person, workspace_id)
        review.require_to_save(workspace)
        body: dict[str, Any] = self.body(ProposalBody)
        draft = Draft(workspace=workspace, author=self.person, **body).to_review()
        now = timezone.now()
        saved = save_once(self, lambda: review.save_or_propose(draft, by=self.person, now=now))
        if saved.pending:
            return memory_response(saved.memory, status=status.HTTP_202_ACCEPTED)
        return saved_response(saved)


class ProposalView(KeyedView):
    session_only = True

    def proposal(self, workspace_id: str, memory_id: str) -> Memory:
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        return review.get_proposal(self.person, memory_id, workspace=workspace)


class ProposalApprove(ProposalView):
    @documented(
        "Approve a proposal",
        tag="memories",
        operation="proposals_approve",
        answers={200: SavedMemoryJson},
        errors=[404, 409, 429],
        writes=True,
        session_only=True,
        description="It is in use from now on, a rejected one too. `duplicate: true`: another says it by now, and this "
        "one is dropped. A person at a browser decides; no key may.",
        examples=[answer_example("In use", {**examples.MEMORY, "duplicate": False})],
    )
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        memory = self.proposal(workspace_id, memory_id)
        saved = review.approve(memory, by=self.person, now=timezone.now())
        return memory_response(saved.memory, status=status.HTTP_200_OK, duplicate=saved.duplicate)


class ProposalReject(ProposalView):
    @documented(
        "Reject a proposal",
        tag="memories",
        operation="proposals_reject",
        answers={204: None},
        errors=[404, 429],
        writes=True,
        session_only=True,
        description="It is not stored, and the same is not proposed again. Can be approved later all the same.",
    )
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        review.reject(self.proposal(workspace_id, memory_id), by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
