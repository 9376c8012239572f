"""Moderation of what is remembered. Every write goes through the gate; nothing is deleted for good here."""

from memories.admin import memory, nodes, queue, records, refusals

__all__ = ["memory", "nodes", "queue", "records", "refusals"]
