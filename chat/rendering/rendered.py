"""Answers as HTML: made once, when an answer is stored, and kept with it (``Message.html``). A page view makes none.

Answers that are stored by other ways (imports, those from before, one cut off with its process) have none yet, and
neither has any after a change of the renderer. A page renders a little of that itself, shows the rest as it was
written, and has a job make and keep them all: a read writes nothing. Work is counted, not timed (``markdown``),
so that a text looks the same on every machine.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import DatabaseError, transaction
from django.utils.safestring import SafeString, mark_safe
from django_q.tasks import async_task

from chat.models import Message, MessageRole, MessageStatus
from chat.rendering.markdown import RENDERER, Budget, TooHeavy, render_markdown

logger = logging.getLogger(__name__)
# In steps, measured by tests/bench/bench_markdown.py: hostile text takes up to seven microseconds a step, so 0.2 s of
# CPU for a message once, and less for a page. This project's docs need 7,000 for 32,000 characters.
MESSAGE_STEPS = 30_000
PAGE_STEPS = 20_000  # sixty answers of a thousand characters need 12,000


@dataclass(frozen=True)
class Shown:
    """``html`` is empty for an answer that is shown as it was written: too heavy, or (``is_late``) not made yet."""

    html: SafeString
    is_late: bool = False


def set_html(answer: Message) -> None:
    """Render the content into the fields that keep it; who calls saves them."""
    answer.html, answer.html_of = _rendered(answer.content, Budget(MESSAGE_STEPS)), _mark(answer.content)


def keep_html(message_ids: Iterable[int]) -> int:
    """Render and keep those of these messages that have no HTML of today; how many. 0.2 s of CPU each at most."""
    made = 0
    for key in message_ids:
        answer = Message.objects.filter(pk=key, role=MessageRole.ASSISTANT).first()
        if answer is not None and not _is_kept(answer) and answer.status != MessageStatus.STREAMING:
            set_html(answer)
            # Should the content change meanwhile, the mark of what this was made of gives it away.
            made += Message.objects.filter(pk=key).update(html=answer.html, html_of=answer.html_of)
    return made


def show(answers: Sequence[Message]) -> dict[int, Shown]:
    """How these look on one page, by key. Queues a job if any of them has no HTML yet; those at the end come first."""
    budget, shown, late = Budget(PAGE_STEPS), {}, []
    for answer in reversed(answers):
        if _is_kept(answer) or not answer.content:
            shown[answer.pk] = Shown(mark_safe(answer.html))  # noqa: S308  sanitised when it was made
        elif answer.status == MessageStatus.STREAMING:  # it grows, or is soon found abandoned
            shown[answer.pk] = Shown(SafeString(), is_late=True)
        else:
            html = _rendered(answer.content, budget)
            shown[answer.pk] = Shown(html, is_late=not html)
            late.append(answer.pk)
    if late:
        _queue(late)
    return shown


def _queue(late: list[int]) -> None:
    """A page is shown all the same on a database that is full, or only read; the next view queues it again."""
    try:
        with transaction.atomic():  # what fails spoils no transaction around it
            async_task("chat.tasks.render_answers", message_ids=late, task_name="render answers")
    except DatabaseError as error:
        logger.warning("Rendering answers was not queued: %s", type(error.__cause__).__name__)


def _rendered(text: str, budget: Budget) -> SafeString:
    """Empty for a text that is too heavy, or that the renderer fails at: an answer is stored and shown all the same."""
    try:
        return render_markdown(text, budget)
    except TooHeavy:
        return SafeString()
    except Exception:
        logger.exception("A text could not be rendered; it is shown as it was written")
        return SafeString()


def _is_kept(answer: Message) -> bool:
    return answer.html_of == _mark(answer.content)


def _mark(text: str) -> str:
    """Of what HTML was made, and by which renderer."""
    return hashlib.blake2b(f"{RENDERER}:{text}".encode(), digest_size=16).hexdigest()
