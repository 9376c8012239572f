"""Answers for those outside, who can open nothing here: links to this MemoryHub, and its pictures, are their text.

Their addresses name workspaces and documents, which are none of a reader's business who came by a link to a chat.
"""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlsplit

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

# Of HTML that was sanitised: attributes are quoted, and no link lies within another.
_ATTRIBUTES = r'([^<>"]*(?:"[^"]*"[^<>"]*)*)'
_LINK = re.compile(rf"<a\b{_ATTRIBUTES}>(.*?)</a>", re.DOTALL)
_IMAGE = re.compile(rf"<img\b{_ATTRIBUTES}>")
_HREF = re.compile(r'\bhref="([^"]*)"')
_ALT = re.compile(r'\balt="([^"]*)"')


def without_own_links(html: SafeString, host: str) -> SafeString:
    """``html``, which is sanitised, with links to elsewhere alone. ``host``: this MemoryHub's, as it was asked for."""
    own = _host_of(f"//{host}")
    outside = _LINK.sub(lambda found: found[0] if _leads_out(found[1], own) else found[2], html)
    return mark_safe(_IMAGE.sub(_name, outside))  # noqa: S308  sanitised when it was made; names are escaped


def _leads_out(attributes: str, own: str) -> bool:
    href = _HREF.search(attributes)
    address = unescape(href[1]) if href else ""
    return address.startswith("mailto:") or _host_of(address) not in ("", own)


def _host_of(address: str) -> str:
    """Empty for one without, such as a path, and for what is no address."""
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _name(image: re.Match[str]) -> str:
    """Every image of an answer is this MemoryHub's own (``chat.rendering.markdown``)."""
    alt = _ALT.search(image[1])
    return escape(unescape(alt[1])) if alt else ""
