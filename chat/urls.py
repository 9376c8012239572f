"""URLs of chat's pages, of export and import, and of client programs (``/v1/``, ``/mcp``)."""

from django.urls import include, path, re_path

from chat.programs.openai_api import views as openai_api
from chat.views import chat_settings, chats, import_export, messages, palette, runs, sharing, workspace_search
from chat.views import saved_prompts as prompts
from chat.views.connect import connect
from chat.views.mcp import Mcp

RUN = "workspaces/<str:ws_id>/runs/<str:run_id>"
TEMPLATE = "workspaces/<str:ws_id>/runs/templates/<str:template_id>"

chat_patterns = [
    path("", chats.home, name="home"),
    path("workspaces/<str:ws_id>/", chats.workspace, name="workspace"),
    path("workspaces/<str:ws_id>/chats/", chats.create, name="create"),
    path("workspaces/<str:ws_id>/chats/list/", chats.chat_list, name="chat_list"),
    path("workspaces/<str:ws_id>/prompts/", prompts.prompts, name="prompts"),
    path("workspaces/<str:ws_id>/prompts/choices/", prompts.choices, name="prompt_choices"),
    path("workspaces/<str:ws_id>/prompts/<str:prompt_id>/", prompts.prompt, name="prompt"),
    path("workspaces/<str:ws_id>/prompts/<str:prompt_id>/delete/", prompts.delete, name="delete_prompt"),
    path("workspaces/<str:ws_id>/runs/", runs.runs, name="runs"),
    path(f"{TEMPLATE}/delete/", runs.delete, name="run_template_delete"),
    path(f"{RUN}/", runs.run, name="run"),
    path(f"{RUN}/template/", runs.keep, name="run_template"),
    path(f"{RUN}/live/", runs.live, name="run_live"),
    path(f"{RUN}/entry/", runs.entry, name="run_entry"),
    path(f"{RUN}/stop/", runs.stop, name="run_stop"),
    path(f"{RUN}/plan/", runs.plan, name="run_plan"),
    path(f"{RUN}/resume/", runs.resume, name="run_resume"),
    path(f"{RUN}/again/", runs.repeat, name="rerun"),
    path("workspaces/<str:ws_id>/search/", workspace_search.search, name="search"),
    path("workspaces/<str:ws_id>/palette/", palette.palette, name="palette"),
    path("chats/<str:chat_id>/", chats.chat, name="chat"),
    path("chats/<str:chat_id>/row/", chats.row, name="row"),
    path("chats/<str:chat_id>/mark/", chats.mark, name="mark"),
    path("chats/<str:chat_id>/print/", sharing.paper, name="print"),
    path("chats/<str:chat_id>/links/", sharing.links, name="links"),
    path("chats/<str:chat_id>/links/make/", sharing.make, name="make_link"),
    path("chats/<str:chat_id>/links/<str:link_id>/update/", sharing.update, name="update_link"),
    path("chats/<str:chat_id>/links/<str:link_id>/close/", sharing.close, name="close_link"),
    path("workspaces/<str:ws_id>/links/", sharing.workspace_links, name="workspace_links"),
    path("shared/<str:share_token>/", sharing.shared, name="shared"),
    path("chats/<str:chat_id>/tags/", chats.tags, name="tags"),
    path("chats/<str:chat_id>/rename/", chats.rename, name="rename"),
    path("chats/<str:chat_id>/delete/", chats.delete, name="delete"),
    path("chats/<str:chat_id>/restore/", chats.restore, name="restore"),
    path("chats/<str:chat_id>/forget/", chat_settings.forget, name="forget"),
    path("chats/<str:chat_id>/agent/", chats.agent, name="agent"),
    path("chats/<str:chat_id>/model/", chat_settings.of_chat, name="model"),
    path("workspaces/<str:ws_id>/models/", chat_settings.of_new_chat, name="models"),
    path("chats/<str:chat_id>/short-term/", chat_settings.short_term, name="short_term"),
    path("chats/<str:chat_id>/private/", chats.private, name="private"),
    path("chats/<str:chat_id>/memory/", chats.memory, name="memory"),
    path("chats/<str:chat_id>/personal/", chat_settings.personal, name="personal"),
    path("chats/<str:chat_id>/transcript/", chats.transcript, name="transcript"),
    path("chats/<str:chat_id>/messages/", chats.send, name="send"),
    path("chats/<str:chat_id>/messages/<str:message_id>/", messages.message, name="message"),
    path("chats/<str:chat_id>/messages/<str:message_id>/edit/", messages.edit, name="edit"),
    path("chats/<str:chat_id>/messages/<str:message_id>/versions/", messages.versions, name="versions"),
    path("chats/<str:chat_id>/messages/<str:message_id>/step/", messages.step, name="step"),
    path("chats/<str:chat_id>/messages/<str:message_id>/rating/", messages.rating, name="rating"),
    path("chats/<str:chat_id>/messages/<str:message_id>/back/", messages.restore, name="back"),
    path("chats/<str:chat_id>/messages/<str:message_id>/stream/", messages.stream, name="stream"),
    path("chats/<str:chat_id>/messages/<str:message_id>/stop/", messages.stop, name="stop"),
    path("chats/<str:chat_id>/messages/<str:message_id>/retry/", messages.retry, name="retry"),
    path("chats/<str:chat_id>/messages/<str:message_id>/continue/", messages.continue_cut, name="continue"),
    path("chats/<str:chat_id>/messages/<str:message_id>/start/", messages.start_research, name="research"),
    path("chats/<str:chat_id>/messages/<str:message_id>/keep/", messages.save_artifact, name="keep"),
    path("chats/<str:chat_id>/messages/<str:message_id>/remember/", messages.remember, name="remember"),
    path("chats/<str:chat_id>/messages/<str:message_id>/save/", messages.save_again, name="save_again"),
]
exchange_patterns = [
    path("workspaces/<str:ws_id>/export/", import_export.export_workspace, name="export_workspace"),
    path("export/", import_export.export_all, name="export_all"),
    path("chats/<str:chat_id>/export/", import_export.export_chat, name="export_chat"),
    path("profile/copy/", import_export.personal_copy, name="personal_copy"),
    path("imports/", import_export.imports, name="imports"),
    path("imports/<str:import_id>/", import_export.import_page, name="import"),
    path("imports/<str:import_id>/progress/", import_export.progress, name="progress"),
    path("imports/<str:import_id>/start/", import_export.start, name="start"),
    path("imports/<str:import_id>/stop/", import_export.stop, name="stop"),
    path("imports/<str:import_id>/resume/", import_export.resume, name="resume"),
    path("imports/<str:import_id>/delete/", import_export.delete, name="delete"),
]
openai_patterns = [
    path("models", openai_api.ModelList.as_view(), name="models"),
    path("models/<path:model>", openai_api.ModelDetail.as_view(), name="model"),
    path("chat/completions", openai_api.ChatCompletions.as_view(), name="completions"),
    path("responses", openai_api.Responses.as_view(), name="responses"),
    path("messages", openai_api.Messages.as_view(), name="messages"),
    path("messages/count_tokens", openai_api.CountTokens.as_view(), name="count_tokens"),
    path("embeddings", openai_api.Embeddings.as_view(), name="embeddings"),
    re_path(r"", openai_api.NoSuchRoute.as_view(), name="no_such_route"),
]
urlpatterns = [
    path("", include((chat_patterns, "chat"))),
    path("", include((exchange_patterns, "exchange"))),
    path("v1/", include((openai_patterns, "openai_api"))),
    path("mcp", Mcp.as_view(), name="mcp"),
    path("mcp/", Mcp.as_view()),  # many servers use the slash, so users type it
    path("connect/", connect, name="connect"),
]
