"""HTML of answers, rendered once when an answer is stored and saved in ``Message.html``.

Answers from imports and from earlier versions of the renderer have none. A GET request stores nothing, so a page
renders a few of them, shows the others as plain source, and queues a job that renders and stores them all.

Links of citations are added on display, because their documents may have been deleted since. In share links, links and
images of this server are removed, because their URLs contain workspace ids.
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import unescape
from urllib.parse import urlsplit

from django.db import DatabaseError, transaction
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django_q.tasks import async_task

from chat.models import AnswerSource, Message, MessageRole, MessageStatus
from chat.rendering.markdown import RENDERER, Budget, TooHeavy, render_markdown
from workspaces.index.scores import FLOOR

logger = logging.getLogger(__name__)
# Limits in steps, measured by tests/bench/bench_markdown.py: hostile text takes up to seven microseconds a step, which
# is 0.2 s of CPU for a message. This project's docs need 7,000 steps for 32,000 characters.
MESSAGE_STEPS = 30_000
PAGE_STEPS = 20_000  # sixty answers of a thousand characters need 12,000


@dataclass(frozen=True)
class Shown:
    """The HTML of an answer, empty if its plain source is shown: until a job renders it (``is_late``), or for good."""

    html: SafeString
    is_late: bool = False


def set_html(answer: Message) -> None:
    """Render the answer's content and set its ``html`` and ``html_of``. The caller saves them."""
    answer.html = _rendered(answer.content, Budget(MESSAGE_STEPS)) or ""
    answer.html_of = _mark(answer.content)


def store_html(message_ids: Iterable[int]) -> int:
    """Render and save stale HTML of these answers, up to 0.2 s of CPU time each. Return the number rendered."""
    count = 0
    for key in message_ids:
        answer = Message.objects.filter(pk=key, role=MessageRole.ASSISTANT).first()
        if answer is not None and not _is_kept(answer) and answer.status != MessageStatus.STREAMING:
            set_html(answer)
            # If the content changes in the meantime, the mark no longer matches.
            count += Message.objects.filter(pk=key).update(html=answer.html, html_of=answer.html_of)
    return count


def show(answers: Sequence[Message]) -> dict[int, Shown]:
    """Return the HTML of a page's answers by primary key.

    Missing HTML is rendered within one budget, the latest first, and a job that stores it is queued.
    """
    budget, shown, late = Budget(PAGE_STEPS), {}, []
    for answer in reversed(answers):
        if _is_kept(answer) or not answer.content:
            shown[answer.pk] = Shown(mark_safe(answer.html))  # noqa: S308  sanitised when it was made
        elif answer.status == MessageStatus.STREAMING:  # still growing, or abandoned and soon marked so
            shown[answer.pk] = Shown(SafeString(), is_late=True)
        else:
            html = _rendered(answer.content, budget) or SafeString()
            shown[answer.pk] = Shown(html, is_late=not html)
            late.append(answer.pk)
    if late:
        _queue(late)
    return shown


def _queue(late: list[int]) -> None:
    """Queue a job that renders these answers. A full or read-only database is logged: the next view tries again."""
    try:
        with transaction.atomic():  # so that a failure does not break the outer transaction
            async_task("chat.tasks.render_answers", message_ids=late, task_name="render answers")
    except DatabaseError as error:
        logger.warning("Rendering answers was not queued: %s", type(error.__cause__).__name__)


def _rendered(text: str, budget: Budget) -> SafeString | None:
    """Return the HTML, or None if the text is too expensive or the renderer fails."""
    try:
        return render_markdown(text, budget)
    except TooHeavy:
        return None
    except Exception:
        logger.exception("A text could not be rendered; it is shown as it was written")
        return None


def html_or_source(text: str) -> SafeString:
    """Return the text as HTML, or as plain source if rendering is too expensive or fails."""
    html = _rendered(text, Budget(MESSAGE_STEPS))
    return format_html('<pre class="prose__plain">{}</pre>', text) if html is None else html


def _is_kept(answer: Message) -> bool:
    return answer.html_of == _mark(answer.content)


def _mark(text: str) -> str:
    """Return a hash of the text and the renderer's version, which shows whether stored HTML is current."""
    return hashlib.blake2b(f"{RENDERER}:{text}".encode(), digest_size=16).hexdigest()


# These patterns rely on sanitised HTML, where attributes are quoted and links are not nested.
_ATTRIBUTES = r'([^<>"]*(?:"[^"]*"[^<>"]*)*)'
_LINK = re.compile(rf"<a\b{_ATTRIBUTES}>(.*?)</a>", re.DOTALL)
_IMAGE = re.compile(rf"<img\b{_ATTRIBUTES}>")
_HREF = re.compile(r'\bhref="([^"]*)"')
_ALT = re.compile(r'\balt="([^"]*)"')


def without_own_links(html: SafeString, host: str) -> SafeString:
    """Return sanitised ``html`` without links to this server. ``host``: this server's host, from the request."""
    own = _host_of(f"//{host}")
    outside = _LINK.sub(lambda match: match[0] if _leads_out(match[1], own) else match[2], html)
    return mark_safe(_IMAGE.sub(_name, outside))  # noqa: S308  sanitised when it was made; names are escaped


def _leads_out(attributes: str, own: str) -> bool:
    href = _HREF.search(attributes)
    address = unescape(href[1]) if href else ""
    return address.startswith("mailto:") or _host_of(address) not in ("", own)


def _host_of(address: str) -> str:
    """Return the host of a URL, or "" for a path or an invalid URL."""
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _name(image: re.Match[str]) -> str:
    """Return the image's alternative text, which replaces the image. All images in answers are on this server."""
    alt = _ALT.search(image[1])
    return escape(unescape(alt[1])) if alt else ""


_TAG = re.compile(r'(<[^<>"]*(?:"[^"]*"[^<>"]*)*>)')
_NAME = re.compile(r"<(/?)(a|code|pre)\b")  # inside these elements a number in brackets is not a citation
MOST = 100  # limit of linked citations in an answer, since a link's HTML is a thousand times as long as its number
_CITED = re.compile(r"\[(\d{1,2}(?:, ?\d{1,2}){0,9})\]")


def cited_in(text: str, sources: Sequence[AnswerSource]) -> Sequence[AnswerSource]:
    """Return the sources that an answer cites or, if it cites none, those with the score FLOOR or else the first."""
    numbers = {int(number) for group in _CITED.findall(text) for number in group.split(",")}
    cited = [source for source in sources if source.number in numbers]
    return cited or [source for source in sources if source.score >= FLOOR] or sources[:1]


def with_links(html: SafeString, sources: Iterable[AnswerSource]) -> SafeString:
    """Replace citations such as ``[1]`` and ``[1, 2]`` in sanitised ``html`` with links to these sources."""
    links = {source.number: _link(source) for source in sources}
    if not links:
        return html

    def linked(match: re.Match[str]) -> str:
        numbers = [int(number) for number in match[1].split(",")]
        if not any(number in links for number in numbers):
            return match[0]
        return format_html_join(
            " ", "{}", ((links.get(number, f"[{number}]"),) for number in dict.fromkeys(numbers))
        )

    parts, within, left = [], 0, MOST
    for part in _TAG.split(html):
        if part.startswith("<"):
            name = _NAME.match(part)
            within += (-1 if name[1] else 1) if name else 0
        elif not within and left:
            part, number = _CITED.subn(linked, part, count=left)
            left -= number
        parts.append(part)
    return mark_safe("".join(parts))  # noqa: S308  sanitised when it was made, and links are built escaped


def _link(source: AnswerSource) -> SafeString:
    label = f"[{source.number}] {source.label}"
    return format_html(
        '<a class="citation" href="{}" title="{}" aria-label="{}">[{}]</a>',
        source.get_absolute_url(),
        source.label,
        label,
        source.number,
    )
