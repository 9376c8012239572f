from memories.models.asset import Asset
from memories.models.clearing import Clearing, ClearingStatus
from memories.models.extraction import Extraction
from memories.models.kept_copy import CopyKind, KeptAsIs, KeptCopy
from memories.models.memory import Memory, MemorySource, Review, Revision, Scope, SourceType, Tombstone
from memories.models.node import MemoryNode, NodeMemory, NodeRelation
from memories.models.recall_question import ExpectedMemory, RecallQuestion
from memories.models.receipt import Receipt, ReceiptItem
from memories.models.refusal import Refusal

__all__ = [
    "Asset",
    "Clearing",
    "ClearingStatus",
    "CopyKind",
    "ExpectedMemory",
    "Extraction",
    "KeptAsIs",
    "KeptCopy",
    "Memory",
    "MemoryNode",
    "MemorySource",
    "NodeMemory",
    "NodeRelation",
    "RecallQuestion",
    "Receipt",
    "ReceiptItem",
    "Refusal",
    "Review",
    "Revision",
    "Scope",
    "SourceType",
    "Tombstone",
]
