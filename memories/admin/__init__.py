"""The admin of memories, whose writes all go through the gate."""

from memories.admin import activity, memory, records

__all__ = ["activity", "clearing", "memory", "nodes", "records"]
