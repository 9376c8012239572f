"""URLs below ``/chat/api/``."""

from django.urls import path, re_path

import workspaces.api.fields  # noqa: F401  registers the path converters
from chat.api import import_export, memories, runs, saved_prompts, share_links, views
from workspaces.api.base import NoSuchRoute

CHAT = "<chat_id:chat_id>"
MESSAGE = f"{CHAT}/messages/<msg_id:message_id>"
MEMORY = f"{CHAT}/memories/<mem_id:memory_id>"
WORKSPACE = "workspaces/<ws_id:workspace_id>"
RUNS = f"{WORKSPACE}/runs"
RUN = f"{RUNS}/<run_id:run_id>"
TEMPLATES = f"{RUNS}/templates"
TEMPLATE = f"{TEMPLATES}/<rtp_id:template_id>"
LINKS = f"chats/{CHAT}/links"
LINK = f"{LINKS}/<link_id:link_id>"
PROMPTS = f"{WORKSPACE}/prompts"
IMPORT = "imports/<imp_id:import_id>"

app_name = "chat_api"
urlpatterns = [
    path("chats", views.ChatList.as_view(), name="chats"),
    path(f"chats/{CHAT}", views.ChatDetail.as_view(), name="chat"),
    path(f"chats/{CHAT}/mark", views.ChatMarkView.as_view(), name="chat_mark"),
    path(f"chats/{CHAT}/tags", views.ChatTags.as_view(), name="chat_tags"),
    path(f"{WORKSPACE}/tags", views.WorkspaceTags.as_view(), name="ws_tags"),
    path(f"{MESSAGE}/rating", views.MessageRating.as_view(), name="rating"),
    path(LINKS, share_links.ChatLinks.as_view(), name="chat_links"),
    path(LINK, share_links.ChatLink.as_view(), name="chat_link"),
    path(f"{LINK}/update", share_links.ChatLinkUpdate.as_view(), name="chat_link_update"),
    path(f"{WORKSPACE}/links", share_links.WorkspaceLinks.as_view(), name="ws_links"),
    path(f"chats/{CHAT}/export", import_export.ChatExport.as_view(), name="chat_export"),
    path(f"chats/{CHAT}/restore", views.ChatRestore.as_view(), name="chat_restore"),
    path(f"chats/{CHAT}/forget", views.ChatForget.as_view(), name="chat_forget"),
    path(f"{CHAT}/messages", views.MessageList.as_view(), name="messages"),
    path(f"{MESSAGE}/stop", views.MessageStop.as_view(), name="stop"),
    path(f"{MESSAGE}/retry", views.MessageRetry.as_view(), name="retry"),
    path(f"{MESSAGE}/continue", views.MessageContinue.as_view(), name="continue"),
    path(f"{MESSAGE}/proposal", memories.MessageProposal.as_view(), name="proposal"),
    path(f"{MESSAGE}/edit", views.MessageEdit.as_view(), name="edit"),
    path(f"{MESSAGE}/versions", views.MessageVersions.as_view(), name="versions"),
    path(f"{MESSAGE}/restore", views.MessageRestore.as_view(), name="restore"),
    path(f"{MESSAGE}/receipt", views.MessageReceipt.as_view(), name="receipt"),
    path(f"{CHAT}/short-term", memories.ShortTermView.as_view(), name="short_term"),
    path(f"{CHAT}/memory", memories.ChatMemoryCreate.as_view(), name="memory_create"),
    path(f"{CHAT}/memories", memories.ChatMemoryList.as_view(), name="memories"),
    path(MEMORY, memories.ChatMemoryDetail.as_view(), name="memory"),
    path(f"{MEMORY}/rerun-extraction", memories.RerunExtraction.as_view(), name="rerun_extraction"),
    path(f"{WORKSPACE}/export", import_export.WorkspaceExport.as_view(), name="workspace_export"),
    path(PROMPTS, saved_prompts.PromptList.as_view(), name="prompts"),
    path(f"{PROMPTS}/<prm_id:prompt_id>", saved_prompts.PromptDetail.as_view(), name="prompt"),
    path(RUNS, runs.RunList.as_view(), name="runs"),
    path(RUN, runs.RunDetail.as_view(), name="run"),
    path(f"{RUN}/memory", runs.RunMemory.as_view(), name="run_memory"),
    path(f"{RUN}/events", runs.RunEvents.as_view(), name="run_events"),
    path(f"{RUN}/stop", runs.RunStop.as_view(), name="run_stop"),
    path(f"{RUN}/resume", runs.RunResume.as_view(), name="run_resume"),
    path(f"{RUN}/again", runs.RunRerun.as_view(), name="rerun"),
    path(f"{RUN}/template", runs.RunTemplateSave.as_view(), name="run_template_save"),
    path(TEMPLATES, runs.RunTemplateList.as_view(), name="run_templates"),
    path(TEMPLATE, runs.RunTemplateDetail.as_view(), name="run_template"),
    path(f"{TEMPLATE}/start", runs.RunTemplateStart.as_view(), name="run_template_start"),
    path("account/copy", import_export.PersonalCopy.as_view(), name="personal_copy"),
    path("export", import_export.Export.as_view(), name="export"),
    path("imports", import_export.ImportList.as_view(), name="imports"),
    path(IMPORT, import_export.ImportDetail.as_view(), name="import"),
    path(f"{IMPORT}/rows", import_export.ImportRows.as_view(), name="import_rows"),
    path(f"{IMPORT}/start", import_export.ImportStart.as_view(), name="import_start"),
    path(f"{IMPORT}/stop", import_export.ImportStop.as_view(), name="import_stop"),
    path(f"{IMPORT}/resume", import_export.ImportResume.as_view(), name="import_resume"),
    # The last one mounted below /chat/api/: matches what none of the routes above matched.
    re_path(r"", NoSuchRoute.as_view(), name="no_such_route"),
]
