"""Date formats that differ from Django's: one module per language (FORMAT_MODULE_PATH)."""
