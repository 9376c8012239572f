from __future__ import annotations

from django.urls import path

from chat.pages import (
    artifact_views,
    message_views,
    model_views,
    palette_views,
    personal_views,
    run_views,
    search_views,
    short_term_views,
    version_views,
)
from chat.pages import chat_forget_views as forget_views
from chat.pages import chat_views as views

app_name = "chat"
urlpatterns = [
    path("", views.home, name="home"),
    path("workspaces/<str:ws_id>/", views.workspace, name="workspace"),
    path("workspaces/<str:ws_id>/chats/", views.create, name="create"),
    path("workspaces/<str:ws_id>/chats/list/", views.chat_list, name="chat_list"),
    path("workspaces/<str:ws_id>/runs/", run_views.runs, name="runs"),
    path(
        "workspaces/<str:ws_id>/runs/templates/<str:template_id>/delete/",
        run_views.delete,
        name="run_template_delete",
    ),
    path("workspaces/<str:ws_id>/runs/<str:run_id>/", run_views.run, name="run"),
    path("workspaces/<str:ws_id>/runs/<str:run_id>/template/", run_views.keep, name="run_template"),
    path("workspaces/<str:ws_id>/runs/<str:run_id>/live/", run_views.live, name="run_live"),
    path("workspaces/<str:ws_id>/runs/<str:run_id>/entry/", run_views.entry, name="run_entry"),
    path("workspaces/<str:ws_id>/runs/<str:run_id>/stop/", run_views.stop, name="run_stop"),
    path("workspaces/<str:ws_id>/runs/<str:run_id>/resume/", run_views.resume, name="run_resume"),
    path("workspaces/<str:ws_id>/runs/<str:run_id>/again/", run_views.again, name="run_again"),
    path("workspaces/<str:ws_id>/search/", search_views.search, name="search"),
    path("workspaces/<str:ws_id>/palette/", palette_views.palette, name="palette"),
    path("chats/<str:chat_id>/", views.chat, name="chat"),
    path("chats/<str:chat_id>/row/", views.row, name="row"),
    path("chats/<str:chat_id>/mark/", views.mark, name="mark"),
    path("chats/<str:chat_id>/rename/", views.rename, name="rename"),
    path("chats/<str:chat_id>/delete/", views.delete, name="delete"),
    path("chats/<str:chat_id>/restore/", views.restore, name="restore"),
    path("chats/<str:chat_id>/forget/", forget_views.forget, name="forget"),
    path("chats/<str:chat_id>/agent/", views.agent, name="agent"),
    path("chats/<str:chat_id>/model/", model_views.of_chat, name="model"),
    path("workspaces/<str:ws_id>/models/", model_views.of_new_chat, name="models"),
    path("chats/<str:chat_id>/short-term/", short_term_views.short_term, name="short_term"),
    path("chats/<str:chat_id>/private/", views.private, name="private"),
    path("chats/<str:chat_id>/memory/", views.memory, name="memory"),
    path("chats/<str:chat_id>/personal/", personal_views.personal, name="personal"),
    path("chats/<str:chat_id>/transcript/", views.transcript, name="transcript"),
    path("chats/<str:chat_id>/messages/", views.send, name="send"),
    path("chats/<str:chat_id>/messages/<str:message_id>/", message_views.message, name="message"),
    path("chats/<str:chat_id>/messages/<str:message_id>/edit/", version_views.edit, name="edit"),
    path("chats/<str:chat_id>/messages/<str:message_id>/versions/", version_views.versions, name="versions"),
    path("chats/<str:chat_id>/messages/<str:message_id>/back/", version_views.back, name="back"),
    path("chats/<str:chat_id>/messages/<str:message_id>/stream/", message_views.stream, name="stream"),
    path("chats/<str:chat_id>/messages/<str:message_id>/stop/", message_views.stop, name="stop"),
    path("chats/<str:chat_id>/messages/<str:message_id>/retry/", message_views.retry, name="retry"),
    path("chats/<str:chat_id>/messages/<str:message_id>/continue/", message_views.go_on, name="continue"),
    path("chats/<str:chat_id>/messages/<str:message_id>/keep/", artifact_views.keep, name="keep"),
    path("chats/<str:chat_id>/messages/<str:message_id>/remember/", message_views.remember, name="remember"),
]
