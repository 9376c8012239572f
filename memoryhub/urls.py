"""URL configuration of the project. Each app has its own URL modules."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from memoryhub.http import static_files

handler500 = "memoryhub.http.middleware.server_error"
# Patterns are tried in order, so frequent ones come first.
urlpatterns = [
    # Fixed paths come before variable ids, because {chat} would also match "chats" and "workspaces".
    path("chat/api/", include("workspaces.api.urls")),
    path("chat/api/", include("memories.api.urls")),
    path("chat/api/", include("chat.api.urls")),
    path("api/v1/", include("memories.api.v1.urls")),
    path("manifest.webmanifest", static_files.manifest, name="manifest"),
    path("service-worker.js", static_files.service_worker, name="service_worker"),
    path("offline/", static_files.offline, name="offline"),
    path("", include("memories.urls")),
    path("", include("chat.urls")),
    path("", include("workspaces.urls")),
    path("accounts/", include("allauth.account.urls")),  # after the workspaces app, which replaces some pages
    path("accounts/two-factor/", include("allauth.mfa.urls")),
    path("api/", include("workspaces.api.schema_urls")),
    path("admin/password_change/", RedirectView.as_view(pattern_name="account_change_password")),
    path("admin/", admin.site.urls),
]
