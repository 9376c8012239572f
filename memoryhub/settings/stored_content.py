"""Settings of what people store: memories, documents and imported files, and how long all is kept."""

from memoryhub.settings.process import env

# None: off until enabled in the application; False: off for everyone.
MEMORY_ENABLED = env.boolean("MEMORY_ENABLED", None)
DEDUPE_THRESHOLD = env.number("DEDUPE_THRESHOLD", 0.92, low=0.0, high=1.0)
RECALL_THRESHOLD = env.number("RECALL_THRESHOLD", 0.57, low=0.0, high=2.0)
RECALL_LIMIT = env.integer("RECALL_LIMIT", 5, low=1, high=20)
MAX_MEMORIES = env.integer("MAX_MEMORIES", 500, low=0, high=10_000_000)
SHORT_TERM_MIN_MESSAGES = env.integer("SHORT_TERM_MIN_MESSAGES", 6, low=1, high=1000)
SHORT_TERM_OTHER_CHATS = env.integer("SHORT_TERM_OTHER_CHATS", 3, low=0, high=20)

# Documents, assets and imported files
ASSET_MAX_BYTES = env.integer("ASSET_MAX_BYTES", 10_000_000, low=1, high=1_000_000_000)
DOCUMENT_MAX_BYTES = env.integer("DOCUMENT_MAX_BYTES", 50 * 1024**2, low=1, high=1_000_000_000)
FILE_WAIT_SECONDS = env.integer("FILE_WAIT_SECONDS", 60, low=0, high=600)
DOCUMENT_SECONDS = env.integer("DOCUMENT_SECONDS", 120, low=1, high=3600)
DOCUMENT_MEMORY_MB = env.integer("DOCUMENT_MEMORY_MB", 2048, low=256, high=65_536)
OCR_LANGUAGES = env.text("OCR_LANGUAGES", "eng")  # tesseract's names, joined by +; "none" disables OCR
OCR_SECONDS = env.integer("OCR_SECONDS", 600, low=1, high=36_000)
IMPORT_MAX_BYTES = env.integer("IMPORT_MAX_MB", 512, low=1, high=100_000) * 2**20

# Days until deleted objects, the audit log and the contents of workspaces are removed
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
