from memories.models.extraction import Extraction, Refusal
from memories.models.forgetting import Clearing, ClearingStatus, CopyKind, KeptAsIs, KeptCopy
from memories.models.memory import Memory, MemorySource, Review, Revision, Scope, SourceType, Tombstone
from memories.models.recall import ExpectedMemory, RecallQuestion, Receipt, ReceiptItem
from memories.models.topics import Asset, MemoryNode, NodeMemory, NodeRelation
