"""Taking everything out of MemoryHub as one file, and bringing such a file, or another program's, in (docs/exchange.md)."""
