from memories.models.asset import Asset
from memories.models.embedding import MemoryEmbedding
from memories.models.embedding_model import EmbeddingModel, ModelState
from memories.models.extraction import Extraction
from memories.models.growth import CommonWord, PlaceStatistics, VectorIndex
from memories.models.kept_copy import CopyKind, KeptCopy
from memories.models.memory import Memory, Review, Revision, Scope, SourceType
from memories.models.node import MemoryNode, NodeMemory, NodeRelation
from memories.models.receipt import Receipt, ReceiptItem
from memories.models.refusal import Refusal
from memories.models.source import MemorySource
from memories.models.tombstone import Tombstone
from memories.models.word import MemoryWord

__all__ = [
    "Asset",
    "CommonWord",
    "CopyKind",
    "EmbeddingModel",
    "Extraction",
    "KeptCopy",
    "Memory",
    "MemoryEmbedding",
    "MemoryNode",
    "MemorySource",
    "MemoryWord",
    "ModelState",
    "NodeMemory",
    "NodeRelation",
    "PlaceStatistics",
    "Receipt",
    "ReceiptItem",
    "Refusal",
    "Review",
    "Revision",
    "Scope",
    "SourceType",
    "Tombstone",
    "VectorIndex",
]
