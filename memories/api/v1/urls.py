"""``/api/v1/memories…``"""

from __future__ import annotations

from django.urls import path, re_path

import memoryhub.api.ids  # noqa: F401  registers the path converters
from memories.api.v1 import views
from memoryhub.api.keys import KeyedView
from memoryhub.api.views import NoSuchRoute

app_name = "v1"
urlpatterns = [
    path("memories", views.MemoryList.as_view(), name="memories"),
    path("memories/recall", views.Recall.as_view(), name="recall"),
    path("memories/<mem_id:memory_id>", views.MemoryDetail.as_view(), name="memory"),
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
