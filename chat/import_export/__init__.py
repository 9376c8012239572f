"""Export of all data as one file, and import of MemoryHub's files and those of other programs (docs/exchange.md)."""
