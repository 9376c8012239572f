"""Moderation of what is remembered. Every write goes through the gate; nothing is deleted for good here."""

from memories.admin import memory, records

__all__ = ["memory", "records"]
