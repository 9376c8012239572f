"""The numbers by which an answer cites passages of documents, as links that open them.

Made when an answer is shown, not kept with its HTML: what is deleted meanwhile is no link any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from chat.models import AnswerSource

_TAG = re.compile(r'(<[^<>"]*(?:"[^"]*"[^<>"]*)*>)')
_NAME = re.compile(r"<(/?)(a|code|pre)\b")  # in which a number in brackets cites nothing
MOST = 100  # places of one answer: a link is a thousand times as long as what the answer writes for it
_CITED = re.compile(r"\[(\d{1,2}(?:, ?\d{1,2}){0,9})\]")


def with_links(html: SafeString, sources: Iterable[AnswerSource]) -> SafeString:
    """``html``, which is sanitised, with ``[1]`` and ``[1, 2]`` as links wherever that is the number of a source."""
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

    made, within, left = [], 0, MOST
    for part in _TAG.split(html):
        if part.startswith("<"):
            name = _NAME.match(part)
            within += (-1 if name[1] else 1) if name else 0
        elif not within and left:
            part, number = _CITED.subn(linked, part, count=left)
            left -= number
        made.append(part)
    return mark_safe("".join(made))  # noqa: S308  sanitised when it was made, and links are built escaped


def _link(source: AnswerSource) -> SafeString:
    said = f"[{source.number}] {source.label}"
    return format_html(
        '<a class="citation" href="{}" title="{}" aria-label="{}">[{}]</a>',
        source.get_absolute_url(),
        source.label,
        said,
        source.number,
    )
