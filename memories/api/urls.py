"""Routes of memories, recall and search below ``/chat/api/workspaces/{ws}/``."""

from django.urls import path

import workspaces.api.fields  # noqa: F401  registers the path converters
from memories.api import forgetting, review, views

MEMORIES = "workspaces/<ws_id:workspace_id>/memories"
MEMORY = f"{MEMORIES}/<mem_id:memory_id>"
PROPOSALS = "workspaces/<ws_id:workspace_id>/proposals"
CLEARINGS = "workspaces/<ws_id:workspace_id>/clearings"
COPIES = "workspaces/<ws_id:workspace_id>/copies"
QUESTIONS = "workspaces/<ws_id:workspace_id>/recall-questions"
TIDY = "workspaces/<ws_id:workspace_id>/tidy"
PROFILE = "workspaces/<ws_id:workspace_id>/profile"
PROPOSAL = f"{PROPOSALS}/<mem_id:memory_id>"

app_name = "memories_api"
urlpatterns = [
    path(MEMORIES, views.MemoryList.as_view(), name="memories"),
    path(MEMORY, views.MemoryDetail.as_view(), name="memory"),
    path(f"{MEMORY}/restore", views.MemoryRestore.as_view(), name="restore"),
    path(f"{MEMORY}/forget", forgetting.MemoryForget.as_view(), name="forget"),
    path(f"{MEMORY}/revisions", views.MemoryRevisions.as_view(), name="revisions"),
    path(PROPOSALS, review.ProposalList.as_view(), name="proposals"),
    path(f"{PROPOSAL}/approve", review.ProposalApprove.as_view(), name="approve"),
    path(f"{PROPOSAL}/reject", review.ProposalReject.as_view(), name="reject"),
    path(CLEARINGS, forgetting.ClearingList.as_view(), name="clearings"),
    path(f"{CLEARINGS}/<clr_id:clearing_id>", forgetting.ClearingDetail.as_view(), name="clearing"),
    path(f"{CLEARINGS}/<clr_id:clearing_id>/undo", forgetting.ClearingUndo.as_view(), name="clearing_undo"),
    path(COPIES, forgetting.CopyList.as_view(), name="copies"),
    path(f"{COPIES}/<mem_id:memory_id>/forget", forgetting.CopyForget.as_view(), name="copies_forget"),
    path(f"{COPIES}/<mem_id:memory_id>/keep", forgetting.CopyKeep.as_view(), name="copies_keep"),
    path(QUESTIONS, views.QuestionList.as_view(), name="recall_questions"),
    path(f"{QUESTIONS}/run", views.QuestionRun.as_view(), name="recall_questions_run"),
    path(f"{QUESTIONS}/<ask_id:ask_id>", views.QuestionDetail.as_view(), name="recall_question"),
    path(TIDY, review.TidyList.as_view(), name="tidy"),
    path(f"{TIDY}/pairs", review.TidyPairs.as_view(), name="tidy_pairs"),
    path(f"{TIDY}/kept", review.TidyKeep.as_view(), name="tidy_keep"),
    path(f"{TIDY}/kept/<int:kept_id>", review.TidyKept.as_view(), name="tidy_kept"),
    path(PROFILE, views.Profile.as_view(), name="profile"),
    path(f"{PROFILE}/lines/<mem_id:memory_id>", views.ProfileLine.as_view(), name="profile_line"),
    path("workspaces/<ws_id:workspace_id>/recall", views.Recall.as_view(), name="recall"),
    path("workspaces/<ws_id:workspace_id>/search", views.Search.as_view(), name="search"),
]
