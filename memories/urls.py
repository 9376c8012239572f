from __future__ import annotations

from django.urls import path

from memories.pages import (
    asset_views,
    forget_views,
    memory_page_views,
    node_views,
    profile_views,
    proposal_views,
    recall_test_views,
    tidy_views,
)
from memories.pages import panel_views as views

WORKSPACE = "workspaces/<str:ws_id>/"
RECALL_TEST = "workspaces/<str:ws_id>/recall-test/"
NODE = "workspaces/<str:ws_id>/nodes/<str:node_id>/"
PROPOSAL = "workspaces/<str:ws_id>/proposals/<str:mem_id>/"
MEMORIES = "workspaces/<str:ws_id>/memories/"
MEMORY = "workspaces/<str:ws_id>/memories/<str:mem_id>/"
ASSET = "workspaces/<str:ws_id>/memories/<str:mem_id>/assets/<str:asset_id>/"

app_name = "memories"
urlpatterns = [
    path(MEMORIES, views.panel, name="panel"),
    path(f"{MEMORIES}all/", memory_page_views.page, name="all"),
    path(f"{MEMORIES}all/change/", memory_page_views.change, name="all_change"),
    path(f"{WORKSPACE}profile/", profile_views.page, name="profile"),
    path(f"{WORKSPACE}profile/hide/", profile_views.hide, name="profile_hide"),
    path(f"{WORKSPACE}profile/use/", profile_views.use, name="profile_use"),
    path(f"{MEMORIES}add/", views.create, name="create"),
    path(f"{MEMORIES}count/", views.count, name="count"),
    path(MEMORY, views.card, name="card"),
    path(f"{MEMORY}edit/", views.edit, name="edit"),
    path(f"{MEMORY}delete/", views.delete, name="delete"),
    path(f"{MEMORY}restore/", views.restore, name="restore"),
    path(f"{MEMORY}pin/", views.pin, name="pin"),
    path(f"{MEMORY}replace/", views.replace, name="replace"),
    path(f"{MEMORY}history/", views.history, name="history"),
    path(f"{MEMORY}forget/", forget_views.forget, name="forget"),
    path(f"{MEMORY}assets/", asset_views.attach, name="attach"),
    path(ASSET, asset_views.get, name="asset"),
    path(f"{ASSET}remove/", asset_views.remove, name="asset_remove"),
    path(f"{PROPOSAL}approve/", proposal_views.approve, name="approve"),
    path(f"{PROPOSAL}reject/", proposal_views.reject, name="reject"),
    path(f"{PROPOSAL}reconsider/", proposal_views.reconsider, name="reconsider"),
    path(f"{WORKSPACE}clear/", forget_views.page, name="clear"),
    path(f"{WORKSPACE}clear/for-good/", forget_views.for_good, name="clear_for_good"),
    path(f"{WORKSPACE}clear/<str:clearing_id>/undo/", forget_views.undo, name="clear_undo"),
    path(f"{WORKSPACE}copies/<str:mem_id>/forget/", forget_views.forget_copies, name="copies_forget"),
    path(f"{WORKSPACE}copies/<str:mem_id>/keep/", forget_views.keep_copies, name="copies_keep"),
    path(RECALL_TEST, recall_test_views.page, name="recall_test"),
    path(f"{RECALL_TEST}offered/", recall_test_views.offered, name="recall_test_offered"),
    path(f"{RECALL_TEST}run/", recall_test_views.run, name="recall_test_run"),
    path(f"{RECALL_TEST}<str:ask_id>/remove/", recall_test_views.remove, name="recall_test_remove"),
    path(f"{WORKSPACE}tidy/", tidy_views.page, name="tidy"),
    path(f"{WORKSPACE}tidy/forget/", tidy_views.forget, name="tidy_forget"),
    path(f"{WORKSPACE}tidy/replace/", tidy_views.replace, name="tidy_replace"),
    path(f"{WORKSPACE}tidy/replaced/<str:mem_id>/undo/", tidy_views.undo_replace, name="tidy_undo_replace"),
    path(f"{WORKSPACE}tidy/keep/", tidy_views.keep, name="tidy_keep"),
    path(f"{WORKSPACE}tidy/kept/<int:kept_id>/undo/", tidy_views.undo_keep, name="tidy_undo_keep"),
    path(f"{WORKSPACE}tidy/index/", tidy_views.index, name="tidy_index"),
    path(f"{WORKSPACE}nodes/", node_views.node_list, name="nodes"),
    path(NODE, node_views.node, name="node"),
    path(f"{NODE}find/", node_views.find_memories, name="node_find"),
    path(f"{NODE}link/", node_views.link_memory, name="node_link"),
    path(f"{NODE}unlink/", node_views.unlink_memory, name="node_unlink"),
    path(f"{NODE}relate/", node_views.relate, name="node_relate"),
    path(f"{NODE}unrelate/", node_views.unrelate, name="node_unrelate"),
    path(f"{NODE}differ/", node_views.differ, name="node_differ"),
    path(f"{NODE}merge/", node_views.merge, name="node_merge"),
    path(f"{NODE}delete/", node_views.delete, name="node_delete"),
    path("receipts/<str:msg_id>/", views.receipt, name="receipt"),
    path("receipts/items/<int:item_id>/not-relevant/", views.not_relevant, name="not_relevant"),
]
