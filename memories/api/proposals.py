"""REST endpoints for proposed memories that wait for review."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.queries import described, memory_response
from memories.api.saving import save_once, saved_response
from memories.api.serializers import Confirmable, MemoryJson, SavedMemoryJson
from memories.models import Memory
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH
from memories.writing import review
from memories.writing.drafts import TAG_LENGTH, TAGS
from memories.writing.gate import Draft
from workspaces.access import get_workspace
from workspaces.api.authentication import KeyedView
from workspaces.api.fields import Body, Flag, Text, Words
from workspaces.api.idempotency import ONCE
from workspaces.api.schema import documented_under, page_of
from workspaces.models import Role

documented = documented_under("memories")


class ProposalBody(Confirmable):
    example = {"content": "Quarterly review meets every Thursday"}
    content = Text(max_length=CONTENT_LENGTH)
    category = Text(max_length=CATEGORY_LENGTH, required=False)
    tags = Words(word_length=TAG_LENGTH, max_length=TAGS, required=False)


class ProposalList(KeyedView):
    @documented("proposals_list", page_of(MemoryJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the memories that wait for review.

        Oldest first. Proposals are not recalled, counted or listed anywhere else.
        """
        workspace = get_workspace(self.person, workspace_id)
        return self.page(
            described(review.proposals(workspace, self.person)),
            MemoryJson,
            list_name=f"proposals of {workspace.public_id}",
        )

    @documented("proposals_create", {202: MemoryJson, 200: SavedMemoryJson}, body=ProposalBody, headers=ONCE)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Propose a memory.

        202: it waits for review. 200 with `duplicate: true` if it is already known. Viewers can propose if the
        workspace reviews proposals, editors always can.
        """
        workspace = get_workspace(self.person, workspace_id)
        review.require_to_save(workspace)
        body: dict[str, Any] = self.body(ProposalBody)
        draft = Draft(workspace=workspace, author=self.person, **body).to_review()
        now = timezone.now()
        saved = save_once(self, lambda: review.save_or_propose(draft, by=self.person, now=now))
        if saved.pending:
            return memory_response(saved.memory, status=status.HTTP_202_ACCEPTED)
        return saved_response(saved)


class ApproveBody(Body):
    example = {"replacing": True}
    replacing = Flag(
        default=False,
        help_text="true: the older memory of `may_replace` no longer holds, as with `replaced_by` of a memory.",
    )


class ProposalView(KeyedView):
    session_only = True

    def proposal(self, workspace_id: str, memory_id: str) -> Memory:
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        return review.get_proposal(self.person, memory_id, workspace=workspace)


class ProposalApprove(ProposalView):
    @documented("proposals_approve", SavedMemoryJson, body=ApproveBody, errors=[409])
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Approve a proposal.

        It is used from now on; this also works for a rejected one. `duplicate: true`: another memory already says it,
        so this one is dropped.
        """
        memory = self.proposal(workspace_id, memory_id)
        saved = review.approve(memory, by=self.person, now=timezone.now(), **self.body(ApproveBody))
        return memory_response(saved.memory, status=status.HTTP_200_OK, duplicate=saved.duplicate)


class ProposalReject(ProposalView):
    @documented("proposals_reject")
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Reject a proposal.

        It is not stored, and the same text is not proposed again. You can still approve it later.
        """
        review.reject(self.proposal(workspace_id, memory_id), by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
