"""Routes of organisation memory below ``/api/v1/``."""

from django.urls import path, re_path

import workspaces.api.fields  # noqa: F401  registers the path converters
from memories.api.v1 import assets, topics, views
from workspaces.api.base import KeyedView, NoSuchRoute

MEMORY = "memories/<mem_id:memory_id>"
NODE = "memory-nodes/<node_id:node_id>"

app_name = "v1"
urlpatterns = [
    path("memories", views.MemoryList.as_view(), name="memories"),
    path("memories/recall", views.Recall.as_view(), name="recall"),
    path(MEMORY, views.MemoryDetail.as_view(), name="memory"),
    path("agents", views.AgentList.as_view(), name="agents"),
    path("agents/<agent_id:agent_id>", views.AgentDetail.as_view(), name="agent"),
    path(f"{MEMORY}/assets", assets.AssetList.as_view(), name="assets"),
    path("assets/<asset_id:asset_id>", assets.AssetDetail.as_view(), name="asset"),
    path("memory-nodes", topics.NodeList.as_view(), name="nodes"),
    path(NODE, topics.NodeDetail.as_view(), name="node"),
    path(f"{NODE}/memories", topics.NodeMemories.as_view(), name="node_memories"),
    path(f"{NODE}/memories/unlink", topics.NodeMemoryUnlink.as_view(), name="node_memory_unlink"),
    path(f"{NODE}/relations", topics.NodeRelations.as_view(), name="node_relations"),
    path(f"{NODE}/relations/unlink", topics.NodeRelationUnlink.as_view(), name="node_relation_unlink"),
    path(f"{NODE}/neighbours", topics.NodeNeighbours.as_view(), name="node_neighbours"),
    # Fallback for paths that no route above matches.
    re_path(
        r"",
        NoSuchRoute.as_view(
            authentication_classes=KeyedView.authentication_classes,
            throttle_classes=KeyedView.throttle_classes,
        ),
        name="no_such_route",
    ),
]
