"""REST endpoints for a workspace's memories, profile, recall, search and recall questions."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.access import get_memory
from memories.api.memory_requests import (
    LIVE_IN,
    change_memory,
    delete_memory,
    described,
    memory_response,
    recalled,
    save,
    saved_response,
)
from memories.api.serializers import (
    FoundJson,
    MemoryBody,
    MemoryJson,
    MemoryUpdate,
    ProfileJson,
    ProfileLineBody,
    RecallBody,
    RecallJson,
    RestoredMemoryJson,
    RevisionJson,
    SavedMemoryJson,
    SearchBody,
    SearchJson,
)
from memories.models import Memory, RecallQuestion
from memories.models.recall import QUESTION_LENGTH
from memories.recalling import recall_tests
from memories.recalling.profile import hidden_lines, hide_line, profile_of
from memories.recalling.recall_tests import MOST_EXPECTED
from memories.recalling.workspace_search import search_workspace
from memories.writing import changing
from workspaces.access import get_workspace
from workspaces.api.base import ETAG, IF_MATCH, KeyedView
from workspaces.api.fields import Body, Moment, Text, Words
from workspaces.api.idempotency import ONCE
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.audit import record_bulk_read
from workspaces.data_policy import DataPolicy
from workspaces.models import Role

documented = documented_under("memories")


class MemoryList(KeyedView):
    @documented("memories_list", page_of(MemoryJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the memories of a workspace.

        Newest first. No memory is repeated or left out between pages, even if memories are added or deleted in the
        meantime.
        """
        workspace = get_workspace(self.person, workspace_id)
        answer = self.page(
            LIVE_IN.of(workspace=workspace.pk, user=self.person.pk, now=timezone.now()),
            MemoryJson,
            descending=True,
            list_name=f"memories of {workspace.public_id}",
        )
        record_bulk_read(len(answer.data["items"]), by=self.person, workspace=workspace)
        return answer

    @documented(
        "memories_create",
        {201: SavedMemoryJson, 200: SavedMemoryJson},
        body=MemoryBody,
        headers=[*ONCE, ETAG],
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        """Save a memory.

        201 with the new memory. 200 if a memory says nearly the same (`duplicate: true`) or has the same key (updated
        in place). 422 with code `secret` for a credential. 422 with code `sensitive` for a personal number; send it
        again with `confirm: true` to store it.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        return saved_response(save(self, workspace, self.body(MemoryBody)))


class WorkspaceMemoryView(KeyedView):
    """Base view for one memory of the workspace in the URL."""

    def memory(
        self, workspace_id: str, memory_id: str, need: Role = Role.VIEWER, *, include_deleted: bool = False
    ) -> Memory:
        workspace = get_workspace(self.person, workspace_id)
        return get_memory(
            self.person, memory_id, workspace=workspace, need=need, include_deleted=include_deleted
        )


class MemoryDetail(WorkspaceMemoryView):
    @documented("memories_get", MemoryJson, headers=[ETAG])
    def get(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Get a memory."""
        return memory_response(self.memory(workspace_id, memory_id))

    @documented("memories_update", MemoryJson, body=MemoryUpdate, headers=[*ONCE, ETAG, IF_MATCH])
    def patch(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Change a memory.

        Fields you leave out stay as they are. New content is embedded again. 409 if the key is taken, or with code
        `stale` if the memory has changed since the version in `If-Match`.
        """
        return change_memory(self, self.memory(workspace_id, memory_id, Role.EDITOR))

    @documented("memories_delete", headers=[IF_MATCH])
    def delete(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Delete a memory.

        It disappears from every list, count and recall at once; `restore` brings it back.
        """
        return delete_memory(self, self.memory(workspace_id, memory_id, Role.EDITOR))


class MemoryRestore(WorkspaceMemoryView):
    @documented("memories_restore", RestoredMemoryJson, headers=[ETAG])
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Restore a deleted memory.

        Restoring a memory that is not deleted changes nothing. If another memory has taken its key, it is restored
        without the key (`lost_key`).
        """
        memory = self.memory(workspace_id, memory_id, Role.EDITOR, include_deleted=True)
        restored = changing.restore_memory(memory, by=self.person, now=timezone.now())
        return memory_response(restored, lost_key=None if restored.key == memory.key else memory.key)


class MemoryRevisions(WorkspaceMemoryView):
    @documented("memories_revisions", page_of(RevisionJson))
    def get(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Show the history of a memory.

        Each revision has the person, the time and the previous values. Newest first.
        """
        memory = self.memory(workspace_id, memory_id)
        return self.page(
            memory.revisions.select_related("by"),
            RevisionJson,
            keys=["at", "id"],
            descending=True,
            list_name=f"revisions of {memory.public_id}",
        )


class Profile(KeyedView):
    @documented("memories_profile", ProfileJson)
    def get(self, request: Request, workspace_id: str) -> Response:
        """Get your profile in a workspace.

        Up to twelve memories about you and up to twelve about the workspace, by category. Whether chats use it can only
        be changed on the Profile page.
        """
        workspace, now = get_workspace(self.person, workspace_id), timezone.now()
        sections = profile_of(workspace, self.person, policy=DataPolicy.here(workspace), now=now)
        profile = {
            "you": sections.you,
            "workspace": sections.here,
            "hidden": described(hidden_lines(workspace, self.person, now)),
            "in_chats": self.person.profile_in_chats,
        }
        return Response(ProfileJson(profile).data)


class ProfileLine(KeyedView):
    @documented("memories_profile_line", body=ProfileLineBody)
    def put(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Hide a memory from your profile, or show it again.

        The memory is still recalled, and other people's profiles stay as they are.
        """
        workspace, body = get_workspace(self.person, workspace_id), self.body(ProfileLineBody)
        hide_line(memory_id, workspace, self.person, hidden=body["hidden"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class Recall(KeyedView):
    only_reads = True

    @documented("memories_recall", RecallJson, body=RecallBody)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Recall the memories that are relevant to a query.

        Memories with their scores, best first, including your personal ones. An assistant's memories are included only
        with its `agent_id`.
        """
        workspace = get_workspace(self.person, workspace_id)
        recall_result = recalled(self.person, workspace, self.body(RecallBody))
        shown = MemoryJson([item.memory for item in recall_result.items], many=True).data
        answer = {
            "memories": [
                {**memory, "score": item.score, "score_parts": item.parts}
                for memory, item in zip(shown, recall_result.items, strict=True)
            ],
            "ranking": recall_result.ranking,
            "degraded": bool(recall_result.degraded),
            "degraded_reason": recall_result.degraded or None,
        }
        return Response(answer)


class Search(KeyedView):
    only_reads = True

    @documented("workspaces_search", SearchJson, body=SearchBody)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Search a workspace.

        Results of all types, best first: memories, including your personal ones, passages of documents with their
        position, artifacts, and messages. Messages are found by their words, in all chats that you may see but
        temporary ones.

        The model's tool `x_workspace_search` finds the same with two exceptions. In a chat that others read, it leaves
        out personal content unless you allowed it there. Messages of your private chats are left out unless the
        workspace allows other chats to include them.
        """
        workspace = get_workspace(self.person, workspace_id)
        results = search_workspace(
            workspace=workspace,
            user=self.person,
            policy=DataPolicy.here(workspace),
            private_chats=True,
            now=timezone.now(),
            **self.body(SearchBody),
        )
        return Response({"results": FoundJson(results, many=True).data})


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
        return len(recall_tests.misses(question))


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
            recall_tests.questions_of(workspace, self.person),
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
            return recall_tests.save_question(
                workspace, body["text"], wanted, by=self.person, now=timezone.now()
            )

        saved_question = self.make_once(
            make, lambda person, public_id: recall_tests.get_question(person, public_id, workspace=workspace)
        )
        question = recall_tests.get_question(self.person, saved_question.public_id, workspace=workspace)
        return Response(QuestionJson(question).data, status=status.HTTP_201_CREATED)


class QuestionRun(KeyedView):
    @documented("recall_questions_run", RanJson)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Run all recall questions now.

        Stops after 20 seconds; the remaining questions run in the background if something has changed.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        questions = recall_tests.questions_of(workspace, self.person).order_by("ran_at")
        run_count = recall_tests.run(questions, now=timezone.now(), seconds=RUN_SECONDS)
        missed = [each for each in questions.all() if recall_tests.misses(each)]
        return Response({"asked": run_count, "missed": len(missed)})


class QuestionDetail(KeyedView):
    @documented("recall_questions_delete")
    def delete(self, request: Request, workspace_id: str, ask_id: str) -> Response:
        """Delete a test question of recall. The memories that it expects to be found are kept."""
        workspace = get_workspace(self.person, workspace_id)
        recall_tests.get_question(self.person, ask_id, workspace=workspace, need=Role.EDITOR).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)
