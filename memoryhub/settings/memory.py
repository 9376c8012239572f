"""What is remembered, read and found."""

from __future__ import annotations

from memoryhub.settings.process import env

MEMORY_ENABLED = env.boolean(
    "MEMORY_ENABLED", None
)  # None: off until switched on; False: vetoed for everyone
DEDUPE_THRESHOLD = env.number("DEDUPE_THRESHOLD", 0.92, low=0.0, high=1.0)
RECALL_THRESHOLD = env.number("RECALL_THRESHOLD", 0.57, low=0.0, high=2.0)
RECALL_LIMIT = env.integer("RECALL_LIMIT", 5, low=1, high=20)
MAX_MEMORIES = env.integer("MAX_MEMORIES", 500, low=0, high=10_000_000)
ASSET_MAX_BYTES = env.integer("ASSET_MAX_BYTES", 10_000_000, low=1, high=1_000_000_000)
DOCUMENT_MAX_BYTES = env.integer("DOCUMENT_MAX_BYTES", 50 * 1024**2, low=1, high=1_000_000_000)
FILE_WAIT_SECONDS = env.integer("FILE_WAIT_SECONDS", 60, low=0, high=600)
DOCUMENT_SECONDS = env.integer("DOCUMENT_SECONDS", 120, low=1, high=3600)
DOCUMENT_MEMORY_MB = env.integer("DOCUMENT_MEMORY_MB", 2048, low=256, high=65_536)
OCR_LANGUAGES = env.text("OCR_LANGUAGES", "eng")  # as tesseract names them, with + between; "none": no OCR
OCR_SECONDS = env.integer("OCR_SECONDS", 600, low=1, high=36_000)
IMPORT_MAX_BYTES = env.integer("IMPORT_MAX_MB", 512, low=1, high=100_000) * 2**20
PURGE_AFTER_DAYS = env.integer("PURGE_AFTER_DAYS", 30, low=0, high=36_500)
SHORT_TERM_MIN_MESSAGES = env.integer("SHORT_TERM_MIN_MESSAGES", 6, low=1, high=1000)
SHORT_TERM_OTHER_CHATS = env.integer("SHORT_TERM_OTHER_CHATS", 3, low=0, high=20)
