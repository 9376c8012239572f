"""Path converters for public ids. A malformed id is not found, without a query."""

from __future__ import annotations

from django.urls import register_converter

from memoryhub.ids import LENGTH


class PublicIdConverter:
    prefix = ""

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


_PREFIXES = (
    "ws", "usr", "chat", "msg", "mem", "agent", "node", "asset", "imp", "conn", "key", "ask", "run", "doc", "art",
    "hook", "evt", "rtp", "prm", "link", "clr",
)  # fmt: skip
for _prefix in _PREFIXES:
    register_converter(
        type(
            f"{_prefix.title()}IdConverter",
            (PublicIdConverter,),
            {"prefix": _prefix, "regex": f"{_prefix}_[A-Za-z0-9]{{{LENGTH}}}"},
        ),
        f"{_prefix}_id",
    )
