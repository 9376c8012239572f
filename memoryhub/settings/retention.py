"""Settings of how long deleted objects, the audit log and the contents of workspaces are kept."""

from memoryhub.settings.process import env

PURGE_AFTER_DAYS = env.integer("PURGE_AFTER_DAYS", 30, low=0, high=36_500)
AUDIT_DAYS = env.integer("AUDIT_DAYS", 365, low=0, high=36_500)  # 0 keeps the audit log forever
MIN_ACTIVITY_DAYS = env.integer("MIN_ACTIVITY_DAYS", 30, low=1, high=36_500)
# Upper limits in days of the retention that owners of workspaces may choose; 0 means forever.
RETENTION_MOST = {
    "chats": env.integer("MAX_CHAT_DAYS", 0, low=0, high=36_500),
    "memories": env.integer("MAX_UNUSED_MEMORY_DAYS", 0, low=0, high=36_500),
    "documents": env.integer("MAX_DOCUMENT_DAYS", 0, low=0, high=36_500),
    "artifacts": env.integer("MAX_ARTIFACT_DAYS", 0, low=0, high=36_500),
    "activity": AUDIT_DAYS,
}
