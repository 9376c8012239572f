"""Moderation of what is remembered. Every write goes through the gate; nothing is deleted for good here."""

from memories.admin import clearing, memory, nodes, queue, records, refusals

__all__ = ["clearing", "memory", "nodes", "queue", "records", "refusals"]
