"""The texts of a memory, each alone and any two together: a boundary between fields hides nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any

from memories.judging.secret_filter.values import is_technical

TEXTS = ("content", "summary", "key", "category", "tags")
PIECE_LENGTH = 120  # characters of a field that are looked at together with another's
_DIGIT = re.compile("[0-9]")


def texts_of(values: Mapping[str, Any], beside: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is looked through, with the field it is of."""
    texts = [(name, values[name]) for name in ("content", "summary", "key", "category") if values.get(name)]
    if values.get("tags"):
        texts.append(("tags", "\n".join(values["tags"])))
    every = {**beside, **values}
    if every.get("key") and every.get("content") and values.keys() & {"key", "content"}:
        texts.append(("content", f"{every['key']}={every['content']}"))
    pieces = [(name, text) for name in TEXTS for text in _pieces(name, every.get(name))]
    for name in TEXTS:
        pairs = [
            (label, value)
            for (other, label), (own, value) in permutations(pieces, 2)
            if own == name and (own in values or other in values)
            if own != other or _DIGIT.search(label + value)  # words of a list make no statement
        ]
        if pairs:
            joined = (each for label, value in pairs for each in _joined(label, value, name))
            texts.append((name, "\n.\n".join(joined)))
    return texts


def _pieces(name: str, given: Any) -> list[str]:
    return list(given or ()) if name == "tags" else [given] if given else []


def _joined(label: str, value: str, name: str) -> Iterator[str]:
    """Two fields as one statement, for what is cut in two by their boundary: "hunter2" beside "is the wifi password",
    "password" beside "hunter2". Where the second is a sentence, or a label itself, a plain word is no value.
    """
    label, value = label[-PIECE_LENGTH:], value[:PIECE_LENGTH]
    yield f"{label} {value}"
    first, *more = value.split(maxsplit=1)
    plain = first.rstrip(".,;:!?").replace("'", "").replace("-", "").isalpha()
    if name in ("content", "summary"):
        is_value = not (more and plain)
    else:
        is_value = any(char.isdigit() for char in value) and not is_technical(value)
    if is_value:
        yield f"{label}: {value}"
