"""``/api/v1/memories…``"""

from __future__ import annotations

from django.urls import path, re_path

import workspaces.rest.ids  # noqa: F401  registers the path converters
from memories.api.v1 import agents, assets, nodes, views
from workspaces.rest.keys import KeyedView
from workspaces.rest.views import NoSuchRoute

app_name = "v1"
urlpatterns = [
    path("memories", views.MemoryList.as_view(), name="memories"),
    path("memories/recall", views.Recall.as_view(), name="recall"),
    path("memories/<mem_id:memory_id>", views.MemoryDetail.as_view(), name="memory"),
    path("agents", agents.AgentList.as_view(), name="agents"),
    path("agents/<agent_id:agent_id>", agents.AgentDetail.as_view(), name="agent"),
    path("memories/<mem_id:memory_id>/assets", assets.AssetList.as_view(), name="assets"),
    path("assets/<asset_id:asset_id>", assets.AssetDetail.as_view(), name="asset"),
    path("memory-nodes", nodes.NodeList.as_view(), name="nodes"),
    path("memory-nodes/<node_id:node_id>", nodes.NodeDetail.as_view(), name="node"),
    path("memory-nodes/<node_id:node_id>/memories", nodes.NodeMemories.as_view(), name="node_memories"),
    path(
        "memory-nodes/<node_id:node_id>/memories/unlink",
        nodes.NodeMemoryUnlink.as_view(),
        name="node_memory_unlink",
    ),
    path("memory-nodes/<node_id:node_id>/relations", nodes.NodeRelations.as_view(), name="node_relations"),
    path(
        "memory-nodes/<node_id:node_id>/relations/unlink",
        nodes.NodeRelationUnlink.as_view(),
        name="node_relation_unlink",
    ),
    path("memory-nodes/<node_id:node_id>/neighbours", nodes.NodeNeighbours.as_view(), name="node_neighbours"),
    # Whatever none of the routes above took.
    re_path(
        r"",
        NoSuchRoute.as_view(
            authentication_classes=KeyedView.authentication_classes,
            throttle_classes=KeyedView.throttle_classes,
        ),
        name="no_such_route",
    ),
]
