"""Taking everything out of MemoryHub as one file, and bringing one in, of another program too (docs/exchange.md)."""
