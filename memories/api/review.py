"""REST endpoints for proposed memories, and for tidying up stale, unused, duplicate and contradictory ones."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memories import tidy
from memories.access import get_memory
from memories.api.memory_requests import described, memory_response, save_once, saved_response
from memories.api.serializers import Confirmable, MemoryJson, SavedMemoryJson
from memories.models import Memory
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH
from memories.tidy import LISTS, Pair, Pairs, pairs_in
from memories.writing import review
from memories.writing.drafts import TAG_LENGTH, TAGS
from memories.writing.gate import Draft
from workspaces.access import get_workspace
from workspaces.api.base import KeyedView
from workspaces.api.fields import Body, Choice, Flag, Text, Words
from workspaces.api.idempotency import ONCE
from workspaces.api.paging import PageQuery
from workspaces.api.schema import ID, documented_under, page_of
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

        It becomes an ordinary memory. A rejected proposal can be approved too. `duplicate: true`: another memory
        already says the same, and the proposal is dropped.
        """
        memory = self.proposal(workspace_id, memory_id)
        saved = review.approve(memory, by=self.person, now=timezone.now(), **self.body(ApproveBody))
        return memory_response(saved.memory, status=status.HTTP_200_OK, duplicate=saved.duplicate)


class ProposalReject(ProposalView):
    @documented("proposals_reject")
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Reject a proposal.

        The same text is not proposed again. You can still approve it later.
        """
        review.reject(self.proposal(workspace_id, memory_id), by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class TidyQuery(PageQuery):
    show = Choice(
        LISTS,
        help_text="stale: not recalled for half a year; unused: in no answer for a month; unindexed: found by words "
        "only; waiting: for review.",
    )


class PairJson(serializers.Serializer[Any]):
    older = MemoryJson()
    newer = MemoryJson()


class PairsJson(serializers.Serializer[Any]):
    duplicates = PairJson(many=True)
    contradictions = PairJson(many=True)
    partly = serializers.BooleanField(help_text="Only the newest 3,000 memories were compared.")


class KeepBody(Body):
    example = {"memory_id": f"mem_{ID}"}
    memory_id = Text(max_length=32)
    beside = Text(max_length=32, required=False, help_text="The id of the other, where both stay.")


class KeptJson(serializers.Serializer[Any]):
    example = {"id": 7}
    id = serializers.IntegerField()


class TidyList(KeyedView):
    @documented("tidy_list", page_of(MemoryJson), query=TidyQuery)
    def get(self, request: Request, workspace_id: str) -> Response:
        """List memories to tidy up.

        `show` selects the list. Oldest first, without memories that somebody decided to keep.
        """
        workspace = get_workspace(self.person, workspace_id)
        show = self.query(TidyQuery)["show"]
        rows = LISTS[show](workspace, self.person, timezone.now())
        name = f"{show} memories of {workspace.public_id}"
        return self.page(described(rows), MemoryJson, list_name=name)


class TidyPairs(KeyedView):
    @documented("tidy_pairs", PairsJson)
    def get(self, request: Request, workspace_id: str) -> Response:
        """List pairs of memories that say the same or contradict each other.

        Pairs that somebody decided to keep are left out. To resolve a pair, set `replaced_by` of the older memory,
        delete one of the two, or keep both.
        """
        workspace = get_workspace(self.person, workspace_id)
        tidy_pairs = pairs_in(workspace, self.person, timezone.now())
        pairs = [*tidy_pairs.duplicates, *tidy_pairs.contradictions]
        ids = {memory.pk for pair in pairs for memory in (pair.older, pair.newer)}
        rows = {row.pk: row for row in described(Memory.objects.filter(pk__in=ids))}

        def loaded(pairs: list[Pair]) -> list[Pair]:
            return [Pair(rows[pair.older.pk], rows[pair.newer.pk]) for pair in pairs]

        duplicates, contradictions = loaded(tidy_pairs.duplicates), loaded(tidy_pairs.contradictions)
        return Response(PairsJson(Pairs(duplicates, contradictions, tidy_pairs.partly)).data)


class TidyKeep(KeyedView):
    @documented("tidy_keep", {201: KeptJson}, body=KeepBody)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Keep a memory as it is, or keep both memories of a pair.

        They are not listed again until their text changes.
        """
        workspace, body = get_workspace(self.person, workspace_id, need=Role.EDITOR), self.body(KeepBody)
        memory, *other = [
            get_memory(self.person, body[name], workspace=workspace, need=Role.EDITOR)
            for name in ("memory_id", "beside")
            if name in body
        ]
        beside = other[0] if other else None
        decision = tidy.record_as_kept(memory, beside=beside, by=self.person, now=timezone.now())
        return Response({"id": decision.pk}, status=status.HTTP_201_CREATED)


class TidyKept(KeyedView):
    @documented("tidy_undo_keep")
    def delete(self, request: Request, workspace_id: str, kept_id: int) -> Response:
        """Undo keeping a memory or pair, which is then listed again."""
        workspace = get_workspace(self.person, workspace_id)
        tidy.take_back(tidy.get_kept(self.person, kept_id, workspace=workspace))
        return Response(status=status.HTTP_204_NO_CONTENT)
