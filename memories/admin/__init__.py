"""The admin of memories. All writes go through the gate (``memories.writing.gate``)."""

from memories.admin import memory, records

__all__ = ["memory", "records"]
