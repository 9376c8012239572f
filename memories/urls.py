from __future__ import annotations

from django.urls import path

from memories.assets import asset_views
from memories.nodes import node_views
from memories.pages import (
    copy_views,
    forget_views,
    proposal_views,
    recall_test_views,
    tidy_views,
)
from memories.pages import (
    panel_views as views,
)

app_name = "memories"
urlpatterns = [
    path("workspaces/<str:ws_id>/memories/", views.panel, name="panel"),
    path("workspaces/<str:ws_id>/memories/add/", views.create, name="create"),
    path("workspaces/<str:ws_id>/memories/count/", views.count, name="count"),
    path("workspaces/<str:ws_id>/memories/<str:mem_id>/", views.card, name="card"),
    path("workspaces/<str:ws_id>/memories/<str:mem_id>/edit/", views.edit, name="edit"),
    path("workspaces/<str:ws_id>/memories/<str:mem_id>/delete/", views.delete, name="delete"),
    path("workspaces/<str:ws_id>/memories/<str:mem_id>/restore/", views.restore, name="restore"),
    path("workspaces/<str:ws_id>/memories/<str:mem_id>/pin/", views.pin, name="pin"),
    path("workspaces/<str:ws_id>/memories/<str:mem_id>/replace/", views.replace, name="replace"),
    path("workspaces/<str:ws_id>/memories/<str:mem_id>/history/", views.history, name="history"),
    path("workspaces/<str:ws_id>/memories/<str:mem_id>/forget/", forget_views.forget, name="forget"),
    path("workspaces/<str:ws_id>/memories/<str:mem_id>/assets/", asset_views.attach, name="attach"),
    path(
        "workspaces/<str:ws_id>/memories/<str:mem_id>/assets/<str:asset_id>/", asset_views.get, name="asset"
    ),
    path(
        "workspaces/<str:ws_id>/memories/<str:mem_id>/assets/<str:asset_id>/remove/",
        asset_views.remove,
        name="asset_remove",
    ),
    path("workspaces/<str:ws_id>/proposals/<str:mem_id>/approve/", proposal_views.approve, name="approve"),
    path("workspaces/<str:ws_id>/proposals/<str:mem_id>/reject/", proposal_views.reject, name="reject"),
    path(
        "workspaces/<str:ws_id>/proposals/<str:mem_id>/reconsider/",
        proposal_views.reconsider,
        name="reconsider",
    ),
    path("workspaces/<str:ws_id>/copies/<str:mem_id>/forget/", copy_views.forget, name="copies_forget"),
    path("workspaces/<str:ws_id>/copies/<str:mem_id>/keep/", copy_views.keep, name="copies_keep"),
    path("workspaces/<str:ws_id>/recall-test/", recall_test_views.page, name="recall_test"),
    path(
        "workspaces/<str:ws_id>/recall-test/offered/", recall_test_views.offered, name="recall_test_offered"
    ),
    path("workspaces/<str:ws_id>/recall-test/run/", recall_test_views.run, name="recall_test_run"),
    path(
        "workspaces/<str:ws_id>/recall-test/<str:ask_id>/remove/",
        recall_test_views.remove,
        name="recall_test_remove",
    ),
    path("workspaces/<str:ws_id>/tidy/", tidy_views.page, name="tidy"),
    path("workspaces/<str:ws_id>/tidy/forget/", tidy_views.forget, name="tidy_forget"),
    path("workspaces/<str:ws_id>/tidy/keep/", tidy_views.keep, name="tidy_keep"),
    path("workspaces/<str:ws_id>/tidy/kept/<int:kept_id>/undo/", tidy_views.undo_keep, name="tidy_undo_keep"),
    path("workspaces/<str:ws_id>/tidy/index/", tidy_views.index, name="tidy_index"),
    path("workspaces/<str:ws_id>/nodes/", node_views.node_list, name="nodes"),
    path("workspaces/<str:ws_id>/nodes/<str:node_id>/", node_views.node, name="node"),
    path("workspaces/<str:ws_id>/nodes/<str:node_id>/find/", node_views.find_memories, name="node_find"),
    path("workspaces/<str:ws_id>/nodes/<str:node_id>/link/", node_views.link_memory, name="node_link"),
    path("workspaces/<str:ws_id>/nodes/<str:node_id>/unlink/", node_views.unlink_memory, name="node_unlink"),
    path("workspaces/<str:ws_id>/nodes/<str:node_id>/relate/", node_views.relate, name="node_relate"),
    path("workspaces/<str:ws_id>/nodes/<str:node_id>/unrelate/", node_views.unrelate, name="node_unrelate"),
    path("workspaces/<str:ws_id>/nodes/<str:node_id>/delete/", node_views.delete, name="node_delete"),
    path("receipts/<str:msg_id>/", views.receipt, name="receipt"),
    path("receipts/items/<int:item_id>/not-relevant/", views.not_relevant, name="not_relevant"),
]
