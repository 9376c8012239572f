from django.urls import path

from memories.views import attached_files, panel, profile, recall_test, tidy_and_forget, topics

WORKSPACE = "workspaces/<str:ws_id>/"
RECALL_TEST = "workspaces/<str:ws_id>/recall-test/"
NODE = "workspaces/<str:ws_id>/nodes/<str:node_id>/"
PROPOSAL = "workspaces/<str:ws_id>/proposals/<str:mem_id>/"
MEMORIES = "workspaces/<str:ws_id>/memories/"
MEMORY = "workspaces/<str:ws_id>/memories/<str:mem_id>/"
ASSET = "workspaces/<str:ws_id>/memories/<str:mem_id>/assets/<str:asset_id>/"

app_name = "memories"
urlpatterns = [
    path(MEMORIES, panel.panel, name="panel"),
    path(f"{MEMORIES}all/", panel.page, name="all"),
    path(f"{MEMORIES}all/change/", panel.change, name="all_change"),
    path(f"{WORKSPACE}profile/", profile.page, name="profile"),
    path(f"{WORKSPACE}profile/hide/", profile.hide, name="profile_hide"),
    path(f"{WORKSPACE}profile/use/", profile.use, name="profile_use"),
    path(f"{MEMORIES}add/", panel.create, name="create"),
    path(f"{MEMORIES}count/", panel.count, name="count"),
    path(MEMORY, panel.card, name="card"),
    path(f"{MEMORY}edit/", panel.edit, name="edit"),
    path(f"{MEMORY}delete/", panel.delete, name="delete"),
    path(f"{MEMORY}restore/", panel.restore, name="restore"),
    path(f"{MEMORY}pin/", panel.pin, name="pin"),
    path(f"{MEMORY}replace/", panel.replace, name="replace"),
    path(f"{MEMORY}history/", panel.history, name="history"),
    path(f"{MEMORY}forget/", tidy_and_forget.forget_memory, name="forget"),
    path(f"{MEMORY}assets/", attached_files.attach, name="attach"),
    path(ASSET, attached_files.get, name="asset"),
    path(f"{ASSET}remove/", attached_files.remove, name="asset_remove"),
    path(f"{PROPOSAL}approve/", tidy_and_forget.approve, name="approve"),
    path(f"{PROPOSAL}reject/", tidy_and_forget.reject, name="reject"),
    path(f"{PROPOSAL}reconsider/", tidy_and_forget.reconsider, name="reconsider"),
    path(f"{WORKSPACE}clear/", tidy_and_forget.clear_page, name="clear"),
    path(f"{WORKSPACE}clear/for-good/", tidy_and_forget.for_good, name="clear_for_good"),
    path(f"{WORKSPACE}clear/<str:clearing_id>/undo/", tidy_and_forget.undo, name="clear_undo"),
    path(f"{WORKSPACE}copies/<str:mem_id>/forget/", tidy_and_forget.forget_copies, name="copies_forget"),
    path(f"{WORKSPACE}copies/<str:mem_id>/keep/", tidy_and_forget.keep_copies, name="copies_keep"),
    path(RECALL_TEST, recall_test.recall_test_page, name="recall_test"),
    path(f"{RECALL_TEST}offered/", recall_test.offered, name="recall_test_offered"),
    path(f"{RECALL_TEST}run/", recall_test.run, name="recall_test_run"),
    path(f"{RECALL_TEST}<str:ask_id>/remove/", recall_test.remove, name="recall_test_remove"),
    path(f"{WORKSPACE}tidy/", tidy_and_forget.page, name="tidy"),
    path(f"{WORKSPACE}tidy/forget/", tidy_and_forget.forget, name="tidy_forget"),
    path(f"{WORKSPACE}tidy/replace/", tidy_and_forget.replace, name="tidy_replace"),
    path(
        f"{WORKSPACE}tidy/replaced/<str:mem_id>/undo/", tidy_and_forget.undo_replace, name="tidy_undo_replace"
    ),
    path(f"{WORKSPACE}tidy/keep/", tidy_and_forget.keep, name="tidy_keep"),
    path(f"{WORKSPACE}tidy/kept/<int:kept_id>/undo/", tidy_and_forget.undo_keep, name="tidy_undo_keep"),
    path(f"{WORKSPACE}tidy/index/", tidy_and_forget.index, name="tidy_index"),
    path(f"{WORKSPACE}nodes/", topics.node_list, name="nodes"),
    path(NODE, topics.node, name="node"),
    path(f"{NODE}find/", topics.find_memories, name="node_find"),
    path(f"{NODE}link/", topics.link_memory, name="node_link"),
    path(f"{NODE}unlink/", topics.unlink_memory, name="node_unlink"),
    path(f"{NODE}relate/", topics.relate, name="node_relate"),
    path(f"{NODE}unrelate/", topics.unrelate, name="node_unrelate"),
    path(f"{NODE}differ/", topics.differ, name="node_differ"),
    path(f"{NODE}merge/", topics.merge, name="node_merge"),
    path(f"{NODE}delete/", topics.delete, name="node_delete"),
    path("receipts/<str:msg_id>/", panel.receipt, name="receipt"),
    path("receipts/items/<int:item_id>/not-relevant/", panel.not_relevant, name="not_relevant"),
]
