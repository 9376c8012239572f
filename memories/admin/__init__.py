"""Moderation of what is remembered. Every write goes through the gate; nothing is deleted for good here."""

from memories.admin import embedding_models, memory, nodes, queue, records, refusals

__all__ = ["embedding_models", "memory", "nodes", "queue", "records", "refusals"]
