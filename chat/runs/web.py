"""Web search through SearXNG, if the operator has set its URL, and reading of web pages in a limited process.

It connects to public addresses only, also after redirects, so that this server's network and cloud metadata services
cannot be reached.
"""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx2
from django.conf import settings

from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.http_clients import Endpoint, async_client, get
from workspaces.documents.reading.kinds import WEB_PAGE
from workspaces.documents.reading.parent_process import CouldNotRead, read_file

SECONDS = 15.0  # for a search, and for fetching a page including DNS and redirects
READING_SECONDS = 10  # for reading a page; with SECONDS less than the heartbeat limit of a step
MOST_BYTES = 4_000_000  # of a page
MOST_HOPS = 4
LONGEST_URL = 2_000
LONGEST_FOUND = 500  # of a search result; a longer URL could smuggle text into the prompt
PAGES = AddressRange.PUBLIC
KINDS = {
    "text/html": WEB_PAGE,
    "application/xhtml+xml": WEB_PAGE,
    "text/plain": "text/plain",
    "text/markdown": "text/markdown",
    "application/pdf": "application/pdf",
}


class WebTrouble(Exception):
    """Raised when the web cannot be searched or read. Its message is shown, and never contains text from a server."""


@dataclass(frozen=True)
class WebFound:
    url: str
    title: str
    text: str


def search_web(query: str, *, limit: int) -> list[WebFound]:
    """Search the web through SearXNG. Raises WebTrouble if it does not answer as expected."""
    assert settings.SEARCH_URL is not None, "asked for only where there is one"
    endpoint = Endpoint(settings.SEARCH_URL, "", "", AddressRange.ANYWHERE)
    try:
        parameters = {"q": query, "format": "json"}
        answer = get(endpoint, "/search", seconds=SECONDS, params=parameters).raise_for_status()
        results = [_found(each) for each in answer.json()["results"]]
    except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        raise WebTrouble("the search engine does not answer as it should") from None
    return [each for each in results if len(each.url) <= LONGEST_FOUND and is_address(each.url)][:limit]


def _found(result: dict[str, object]) -> WebFound:
    url, title, text = (str(result.get(name) or "") for name in ("url", "title", "content"))
    return WebFound(url, title[:300], text[:1000])


def is_address(url: str) -> bool:
    """Return whether a URL may be requested: HTTP or HTTPS, without user name and password."""
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
    """Return the main text of a web page. Raises WebTrouble if it cannot be fetched or read."""
    body, kind = asyncio.run(_fetch(url))
    with tempfile.NamedTemporaryFile(prefix="page-") as file:
        file.write(body)
        file.flush()
        try:
            blocks = read_file(Path(file.name), kind, most=READING_SECONDS).blocks
        except CouldNotRead:
            raise WebTrouble("the page cannot be read") from None
    return "\n\n".join(block.text for block in blocks)


async def _fetch(url: str) -> tuple[bytes, str]:
    """Return a page's content and media type, following redirects. Each URL is checked before it is requested."""
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
    """Request one URL. Return the content, its media type, and for a redirect only the target URL."""
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
