"""A conversation to be read and nothing else: by its link, or on paper. What was said, without names or notes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from chat.models import Message, MessageRole
from chat.pages.transcript import fitting
from chat.rendering.outside import without_own_links
from chat.rendering.rendered import Shown, show

PAGE = 60  # messages of a shared page


@dataclass(frozen=True)
class Said:
    """``person``: the how-manieth of several people who ask in this chat; 0 where it is one alone."""

    message: Message
    shown: Shown | None
    person: int
    unanswered: bool = False  # its answer is not among what is shown
    is_withheld: bool = False  # since it is personal

    @property
    def is_question(self) -> bool:
        return self.message.role == MessageRole.USER


@dataclass(frozen=True)
class Reading:
    """``next``: how many messages stand before those that follow; 0 at the end."""

    said: list[Said]
    before: int = 0
    next: int = 0


def read(keys: Sequence[int], *, start: int = 0, most: int = PAGE, host: str = "") -> Reading:
    """What these messages say, from the ``start``-th of them on. Up to four queries, and a job where HTML is
    missing.

    ``host``: this MemoryHub's, for readers to whom links to it are nothing.
    """
    rows = {row.pk: row for row in Message.objects.filter(pk__in=keys[start : start + most])}
    messages = fitting([rows[pk] for pk in keys[start : start + most] if pk in rows])
    shown = show([each for each in messages if each.role == MessageRole.ASSISTANT])
    if host:
        shown = {key: replace(each, html=without_own_links(each.html, host)) for key, each in shown.items()}
    people = _people(keys)
    following = [*messages[1:], None] if start + len(messages) >= len(keys) else messages[1:]
    unanswered = {
        each.pk
        for each, then in zip(messages, following, strict=False)
        if each.role == MessageRole.USER and (then is None or then.role == MessageRole.USER)
    }
    withheld = _withheld(unanswered)
    said = [
        Said(
            each,
            shown.get(each.pk),
            people.get(each.author_id, 0),
            each.pk in unanswered,
            each.pk in withheld,
        )
        for each in messages
    ]
    end = start + len(messages)
    return Reading(said, before=start, next=end if messages and end < len(keys) else 0)


def _withheld(unanswered: Collection[int]) -> set[int | None]:
    """Those of these questions that have a personal answer. No query where there are none."""
    if not unanswered:
        return set()
    answers = Message.objects.current().marked().filter(reply_to__in=unanswered)
    return set(answers.values_list("reply_to", flat=True))


def _people(keys: Sequence[int]) -> dict[int | None, int]:
    """Who asks, by the order in which they first do. Names are nobody's to read here."""
    asked = Message.objects.filter(pk__in=keys, role=MessageRole.USER).order_by("pk")
    people = dict.fromkeys(asked.values_list("author_id", flat=True))
    return {person: number for number, person in enumerate(people, 1)} if len(people) > 1 else {}
