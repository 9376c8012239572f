"""REST endpoints for a workspace's recall questions, which test whether recall finds the expected memories."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.access import get_memory
from memories.models import RecallQuestion
from memories.models.recall_question import QUESTION_LENGTH
from memories.recalling import recall_test
from memories.recalling.recall_test import MOST_EXPECTED
from workspaces.access import get_workspace
from workspaces.api.authentication import KeyedView
from workspaces.api.fields import Body, Moment, Text, Words
from workspaces.api.idempotency import ONCE
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.models import Role

documented = documented_under("memories")
RUN_SECONDS = 20.0


class QuestionBody(Body):
    example = {"text": "When is the launch?", "memory_ids": [f"mem_{ID}"]}
    text = Text(max_length=QUESTION_LENGTH)
    memory_ids = Words(word_length=32, min_length=1, max_length=MOST_EXPECTED)


class ExpectedJson(serializers.Serializer[Any]):
    example = {"memory_id": f"mem_{ID}", "rank": 1, "used": True, "reason": ""}
    memory_id = serializers.CharField(source="memory.public_id")
    rank = serializers.IntegerField(allow_null=True, help_text="Its place among what was found, or null.")
    used = serializers.BooleanField(help_text="Whether an answer would use it.")
    reason = serializers.CharField(help_text="Why it is not used.")


class QuestionJson(serializers.Serializer[Any]):
    example = {"id": f"ask_{ID}", "text": "When is the launch?", "personal": False, "missed": 0}
    id = serializers.CharField(source="public_id")
    text = serializers.CharField()
    personal = serializers.SerializerMethodField(help_text="Yours alone, since one of its memories is.")
    missed = serializers.SerializerMethodField(help_text="How many of its memories an answer would not use.")
    expected = ExpectedJson(many=True)
    ran_at = Moment(allow_null=True)
    used_count = serializers.IntegerField(help_text="How many memories an answer would use, expected or not.")
    degraded = serializers.CharField(help_text="Why recall fell back to words then, if it did.")
    created_at = Moment()

    def get_personal(self, question: RecallQuestion) -> bool:
        return question.owner_id is not None

    def get_missed(self, question: RecallQuestion) -> int:
        return len(recall_test.misses(question))


class RanJson(serializers.Serializer[Any]):
    asked = serializers.IntegerField()
    missed = serializers.IntegerField(help_text="Questions with a memory that an answer would not use.")


class QuestionList(KeyedView):
    @documented("recall_questions_list", page_of(QuestionJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the recall questions of a workspace.

        Newest first, each with the memories that should be found and what the last run found.
        """
        workspace = get_workspace(self.person, workspace_id)
        return self.page(
            recall_test.questions_of(workspace, self.person),
            QuestionJson,
            descending=True,
            list_name=f"recall questions of {workspace.public_id}",
        )

    @documented("recall_questions_create", {201: QuestionJson}, body=QuestionBody, headers=ONCE, errors=[409])
    def post(self, request: Request, workspace_id: str) -> Response:
        """Save a recall question.

        It is run at once, and again whenever the embedding model, the threshold or the memories have changed.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        body = self.body(QuestionBody)

        def make() -> RecallQuestion:
            wanted = [get_memory(self.person, each, workspace=workspace) for each in body["memory_ids"]]
            return recall_test.keep_question(
                workspace, body["text"], wanted, by=self.person, now=timezone.now()
            )

        made = self.make_once(
            make, lambda person, found: recall_test.get_question(person, found, workspace=workspace)
        )
        kept = recall_test.get_question(self.person, made.public_id, workspace=workspace)
        return Response(QuestionJson(kept).data, status=status.HTTP_201_CREATED)


class QuestionRun(KeyedView):
    @documented("recall_questions_run", RanJson)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Run all recall questions now.

        Stops after 20 seconds; the remaining questions run in the background if something has changed.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        questions = recall_test.questions_of(workspace, self.person).order_by("ran_at")
        asked = recall_test.run(questions, now=timezone.now(), seconds=RUN_SECONDS)
        missed = sum(
            bool(recall_test.misses(each)) for each in recall_test.questions_of(workspace, self.person)
        )
        return Response({"asked": asked, "missed": missed})


class QuestionDetail(KeyedView):
    @documented("recall_questions_delete")
    def delete(self, request: Request, workspace_id: str, ask_id: str) -> Response:
        """Remove a recall question. Its memories stay."""
        workspace = get_workspace(self.person, workspace_id)
        recall_test.get_question(self.person, ask_id, workspace=workspace, need=Role.EDITOR).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)
