"""What the secret filter reports."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A credential of `kind` at text[start:end]. Deliberately holds no part of the text."""

    kind: str
    start: int
    end: int
