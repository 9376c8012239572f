"""Settings of documents, assets and imported files: their sizes, and how they are read."""

from memoryhub.settings.process import env

ASSET_MAX_BYTES = env.integer("ASSET_MAX_BYTES", 10_000_000, low=1, high=1_000_000_000)
DOCUMENT_MAX_BYTES = env.integer("DOCUMENT_MAX_BYTES", 50 * 1024**2, low=1, high=1_000_000_000)
FILE_WAIT_SECONDS = env.integer("FILE_WAIT_SECONDS", 60, low=0, high=600)
DOCUMENT_SECONDS = env.integer("DOCUMENT_SECONDS", 120, low=1, high=3600)
DOCUMENT_MEMORY_MB = env.integer("DOCUMENT_MEMORY_MB", 2048, low=256, high=65_536)
OCR_LANGUAGES = env.text("OCR_LANGUAGES", "eng")  # tesseract's names, joined by +; "none" disables OCR
OCR_SECONDS = env.integer("OCR_SECONDS", 600, low=1, high=36_000)
IMPORT_MAX_BYTES = env.integer("IMPORT_MAX_MB", 512, low=1, high=100_000) * 2**20
