from memories.models.embedding import MemoryEmbedding
from memories.models.extraction import Extraction
from memories.models.memory import Memory, Revision, Scope, SourceType
from memories.models.receipt import Receipt, ReceiptItem
from memories.models.word import MemoryWord

__all__ = [
    "Extraction",
    "Memory",
    "MemoryEmbedding",
    "MemoryWord",
    "Receipt",
    "ReceiptItem",
    "Revision",
    "Scope",
    "SourceType",
]
