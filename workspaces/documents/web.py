"""The web, where the operator has set a search endpoint: what SearXNG finds, and pages, read by a process with limits.

Every page is on the internet by the address that is really connected to; nothing in this server's network is reached,
also not after a redirect, and no cloud's metadata service.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx2
from django.conf import settings

from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.clients import Endpoint, async_client, blocking_client
from workspaces.documents.reading.kinds import WEB_PAGE
from workspaces.documents.reading.process import CouldNotRead, read_file

SECONDS = 15.0  # of a search's request, and of all that a page takes to come, with names and redirects
READING_SECONDS = 10  # of what came; with SECONDS less than a step may give no sign of life for
MOST_BYTES = 4_000_000  # of a page
MOST_HOPS = 4
LONGEST_URL = 2_000
LONGEST_FOUND = 500  # of what a model is shown as found: more than any address needs may be text
PAGES = AddressRange.PUBLIC
KINDS = {
    "text/html": WEB_PAGE,
    "application/xhtml+xml": WEB_PAGE,
    "text/plain": "text/plain",
    "text/markdown": "text/markdown",
    "application/pdf": "application/pdf",
}


class WebTrouble(Exception):
    """Why a page could not be read, in words for the person; never a server's own words."""


@dataclass(frozen=True)
class WebFound:
    url: str
    title: str
    text: str


def is_on() -> bool:
    return bool(settings.SEARCH_URL)


def search_web(query: str, *, limit: int) -> list[WebFound]:
    """Search the web through SearXNG. Raises WebTrouble."""
    assert settings.SEARCH_URL is not None, "asked for only where there is one"
    endpoint = Endpoint(settings.SEARCH_URL, "", "", AddressRange.ANYWHERE)
    try:
        with blocking_client(endpoint) as client:
            asked = {"q": query, "format": "json"}
            answer = client.get(f"{settings.SEARCH_URL}/search", params=asked, timeout=SECONDS)
            answer.raise_for_status()
            results = answer.json()["results"]
            found = [_found(each) for each in results]
    except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        raise WebTrouble("the search engine does not answer as it should") from None
    return [each for each in found if len(each.url) <= LONGEST_FOUND and is_address(each.url)][:limit]


def _found(result: dict[str, object]) -> WebFound:
    url, title, text = (str(result.get(name) or "") for name in ("url", "title", "content"))
    return WebFound(url, title[:300], text[:1000])


def is_address(url: str) -> bool:
    """Return whether a page may be requested: over HTTP, without a name and password in the address."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return (
        len(url) <= LONGEST_URL
        and url.isprintable()
        and not set(url) & set(' <>"')
        and parts.scheme in {"http", "https"}
        and bool(parts.hostname)
        and parts.username is None
    )


def read_web_page(url: str) -> str:
    """Return the main text of a web page. Raises WebTrouble."""
    return _text(*asyncio.run(_fetch(url)))


async def _fetch(url: str) -> tuple[bytes, str]:
    """Return a page's content and type after redirects. Each hop is checked like the first."""
    try:
        async with asyncio.timeout(SECONDS):
            for _ in range(MOST_HOPS):
                body, kind, url = await _hop(url)
                if not url:
                    return body, kind
    except TimeoutError:
        raise WebTrouble("the page takes too long to come") from None
    raise WebTrouble("the page leads on and on")


async def _hop(url: str) -> tuple[bytes, str, str]:
    """Return the content, its type and the address of a redirect, if it is one."""
    if not is_address(url):
        raise WebTrouble("this is no address of a page")
    body = bytearray()
    try:
        async with (
            async_client(Endpoint(url, "", "", PAGES)) as client,
            client.stream("GET", url, timeout=SECONDS, headers={"user-agent": "MemoryHub"}) as answer,
        ):
            if answer.is_redirect:
                return b"", "", urljoin(url, answer.headers["location"])
            answer.raise_for_status()
            kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in KINDS:
                raise WebTrouble("pages of this kind are not read")
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > MOST_BYTES:
                    raise WebTrouble("the page is too long")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        raise WebTrouble("the page cannot be reached from here") from None
    return bytes(body), KINDS[kind], ""


def _text(body: bytes, kind: str) -> str:
    with tempfile.NamedTemporaryFile(prefix="page-") as file:
        file.write(body)
        file.flush()
        try:
            blocks = read_file(Path(file.name), kind, most=READING_SECONDS).blocks
        except CouldNotRead:
            raise WebTrouble("the page cannot be read") from None
    return "\n\n".join(block.text for block in blocks)
