from memories.models.embedding import MemoryEmbedding
from memories.models.embedding_model import EmbeddingModel, ModelState
from memories.models.extraction import Extraction
from memories.models.growth import CommonWord, PlaceStatistics, VectorIndex
from memories.models.memory import Memory, Revision, Scope, SourceType
from memories.models.receipt import Receipt, ReceiptItem
from memories.models.word import MemoryWord

__all__ = [
    "CommonWord",
    "EmbeddingModel",
    "Extraction",
    "Memory",
    "MemoryEmbedding",
    "MemoryWord",
    "ModelState",
    "PlaceStatistics",
    "Receipt",
    "ReceiptItem",
    "Revision",
    "Scope",
    "SourceType",
    "VectorIndex",
]
