"""Dates as they are written where Django does not say it: a module for each language (FORMAT_MODULE_PATH)."""
