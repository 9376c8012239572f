from __future__ import annotations

from django.urls import path

from chat.views import exchange as views

app_name = "exchange"
urlpatterns = [
    path("workspaces/<str:ws_id>/export/", views.export_workspace, name="export_workspace"),
    path("export/", views.export_all, name="export_all"),
    path("chats/<str:chat_id>/export/", views.export_chat, name="export_chat"),
    path("profile/copy/", views.personal_copy, name="personal_copy"),
    path("imports/", views.imports, name="imports"),
    path("imports/<str:import_id>/", views.import_page, name="import"),
    path("imports/<str:import_id>/progress/", views.progress, name="progress"),
    path("imports/<str:import_id>/start/", views.start, name="start"),
    path("imports/<str:import_id>/stop/", views.stop, name="stop"),
    path("imports/<str:import_id>/resume/", views.resume, name="resume"),
    path("imports/<str:import_id>/delete/", views.delete, name="delete"),
]
