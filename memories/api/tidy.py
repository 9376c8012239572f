"""REST endpoints for tidying up memories: stale, unused, duplicate and contradictory ones."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.access import get_memory
from memories.api.queries import described
from memories.api.serializers import MemoryJson
from memories.models import Memory
from memories.tidying import deciding
from memories.tidying.lists import LISTS
from memories.tidying.pairs import Pair, pairs_in
from workspaces.access import get_workspace
from workspaces.api.authentication import KeyedView
from workspaces.api.fields import Body, Choice, Text
from workspaces.api.pagination import PageQuery
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.models import Role

documented = documented_under("memories")


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
        """List memories that deserve a look.

        Oldest first, without memories that somebody marked as still good.
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

        Without pairs that somebody marked as both valid. To resolve a pair, set `replaced_by` of the older memory,
        delete one of the two, or keep both.
        """
        workspace = get_workspace(self.person, workspace_id)
        found = pairs_in(workspace, self.person, timezone.now())
        ids = [
            memory.pk
            for pair in [*found.duplicates, *found.contradictions]
            for memory in (pair.older, pair.newer)
        ]
        rows = list(described(Memory.objects.filter(pk__in=ids)))
        shown = {row.pk: json for row, json in zip(rows, MemoryJson(rows, many=True).data, strict=True)}

        def as_json(pairs: list[Pair]) -> list[dict[str, Any]]:
            return [{"older": shown[pair.older.pk], "newer": shown[pair.newer.pk]} for pair in pairs]

        return Response(
            {
                "duplicates": as_json(found.duplicates),
                "contradictions": as_json(found.contradictions),
                "partly": found.partly,
            }
        )


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
        kept = deciding.keep(memory, beside=beside, by=self.person, now=timezone.now())
        return Response({"id": kept.pk}, status=status.HTTP_201_CREATED)


class TidyKept(KeyedView):
    @documented("tidy_undo_keep")
    def delete(self, request: Request, workspace_id: str, kept_id: int) -> Response:
        """Undo keeping. The memory or pair is listed again."""
        workspace = get_workspace(self.person, workspace_id)
        deciding.take_back(deciding.get_kept(self.person, kept_id, workspace=workspace))
        return Response(status=status.HTTP_204_NO_CONTENT)
