"""Earlier versions of a conversation in a file: each line names only messages that stand before it.

What an edit took the place of mostly stands before it, so the edited question's line names all that it ``supersedes``;
after an older version was brought back it is the other way round, and the later line says what it is
``superseded_by``.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch

from chat.exchange.lines import Record
from chat.exchange.local_ids import FindTaken, resolve
from chat.models import Message, MessageQuerySet


def with_versions(messages: MessageQuerySet) -> MessageQuerySet:
    """As ``version_fields`` wants them."""
    set_aside = Message.objects.only("public_id", "superseded_by_id").order_by("pk")
    loaded = messages.select_related("superseded_by")
    return loaded.prefetch_related(Prefetch("supersedes", set_aside))


def version_fields(message: Message) -> dict[str, Any]:
    """What the line of a message says of versions."""
    by = message.superseded_by
    return {
        "supersedes": [other.public_id for other in message.supersedes.all() if other.pk < message.pk],
        "superseded_by": by.public_id if by is not None and by.pk < message.pk else None,
    }


def link_versions(
    wanted: dict[Record, tuple[str, str]], made: dict[Record, Message], find_taken: FindTaken
) -> None:
    """Set aside again what was. ``wanted`` is each line's (id in the file, chat); only what was just brought in, or
    waits for it since an earlier piece of the file, is touched."""
    named: dict[Record, list[tuple[str, str]]] = {}
    for record, (_, chat) in wanted.items():
        others = record.line.get("supersedes")
        ids = [each for each in others if isinstance(each, str)] if isinstance(others, list) else []
        by = record.line.get("superseded_by")
        named[record] = [(each, chat) for each in [*ids, by] if isinstance(each, str)]
    found = resolve("msg", {pair for pairs in named.values() for pair in pairs}, find_taken)
    for record, pairs in named.items():
        message, by = made.get(record), record.line.get("superseded_by")
        if message is None or not pairs:
            continue
        here = {pair[0]: found[pair].local for pair in pairs if found[pair].is_here}
        before = Message.objects.current().filter(chat_id=message.chat_id, pk__lt=message.pk)
        later = before.filter(public_id=here.pop(by, "")).first() if isinstance(by, str) else None
        if later is not None and message.superseded_at is not None:
            Message.objects.filter(pk=message.pk).update(superseded_by=later)
        waiting = before.filter(public_id__in=here.values(), superseded_at__isnull=False)
        waiting.update(superseded_by=message)
