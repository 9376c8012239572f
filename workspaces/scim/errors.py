"""SCIM errors of a request that cannot be done (RFC 7644, 3.12)."""

from __future__ import annotations


class ScimError(Exception):
    """``kind`` is its ``scimType``."""

    def __init__(self, status: int, detail: str, kind: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.kind = status, detail, kind
