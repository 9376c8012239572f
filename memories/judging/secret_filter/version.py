"""Which rules these are. Whatever changes them changes this number, so that no row passes for checked by others."""

import zlib
from pathlib import Path

_SOURCES = (
    "alternatives", "assignments", "commands", "encoded", "folding", "identities", "issuers", "languages", "layouts",
    "names", "personal", "postal", "prefixed", "seed_words", "shaped_numbers", "shapes", "values",
)  # fmt: skip


def _checksum() -> int:
    """31 bits of the rules' source: a changed comment costs a check more, a forgotten number would cost a secret."""
    folder, checksum = Path(__file__).parent, 0
    for name in _SOURCES:
        checksum = zlib.crc32((folder / f"{name}.py").read_bytes(), checksum)
    return checksum & 0x7FFFFFFF or 1


RULES = _checksum()
