"""The admin of memories, whose writes all go through the gate."""

from memories.admin import memory, records

__all__ = ["memory", "records"]
