"""Moderation of what is remembered. Every write goes through the gate; nothing is deleted for good here."""

from memories.admin import activity, clearing, memory, nodes, records

__all__ = ["activity", "clearing", "memory", "nodes", "records"]
