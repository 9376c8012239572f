"""Download of one chat as Markdown or JSON, for reading. The format that can be imported is written by ``export``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from django.http import StreamingHttpResponse
from django.utils.text import slugify
from django.utils.translation import gettext as _

from chat.chats.personal_memories import withheld_answers
from chat.chats.services import audit_place
from chat.exchange.export import in_pieces
from chat.models import Chat, Message, MessageRole, MessageStatus
from chat.prompting.labels import imported, withheld
from workspaces.api.fields import iso
from workspaces.audit import Verb, record
from workspaces.models import User

AT_ONCE = 100  # messages read at a time


MEDIA_TYPES = {"md": "text/markdown; charset=utf-8", "json": "application/json"}


def chat_response(chat: Chat, *, kind: str, by: User, now: datetime) -> StreamingHttpResponse:
    """Return the current version of the conversation as a download; ``kind`` is a key of MEDIA_TYPES.

    An answer that is still being written is left out, as are messages that ``by`` may not read.
    """
    record(Verb.EXPORTED, by=by, workspace=audit_place(chat), target=chat.public_id)
    made = (_markdown if kind == "md" else _json)(chat, by)
    response = StreamingHttpResponse(in_pieces(made), content_type=MEDIA_TYPES[kind])
    filename = f"{slugify(str(chat))[:60] or 'chat'}-{now:%Y-%m-%d}.{kind}"
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    response["Cache-Control"] = "no-store"
    return response


def _messages(chat: Chat, reader: User) -> Iterator[list[Message]]:
    last = 0
    while True:
        rows = (
            chat.messages.readable_by(reader)
            .current()
            .exclude(status=MessageStatus.STREAMING)
            .select_related("author", "imported_by")
        )
        found = list(rows.filter(pk__gt=last).defer("html").order_by("pk")[:AT_ONCE])
        if not found:
            return
        yield found
        last = found[-1].pk


def _said_by(message: Message) -> str:
    if message.role == MessageRole.ASSISTANT:
        return f"{_('Answer')} ({imported(message)})" if message.is_imported else _("Answer")
    if message.is_imported:
        return imported(message)
    return message.author.shown_name if message.author else _("Somebody who has left")


def _markdown(chat: Chat, reader: User) -> Iterator[bytes]:
    yield f"# {chat}\n".encode()
    for messages in _messages(chat, reader):
        hidden = withheld_answers(messages, reader)
        for message in messages:
            head = f"\n## {_said_by(message)}, {message.created_at:%Y-%m-%d %H:%M} UTC\n\n"
            yield (head + message.content + "\n").encode()
            if message.pk in hidden:
                yield f"\n_{withheld(message)}_\n".encode()


def _json(chat: Chat, reader: User) -> Iterator[bytes]:
    head = {"id": chat.public_id, "title": str(chat), "created_at": iso(chat.created_at)}
    yield (json.dumps(head, ensure_ascii=False)[:-1] + ', "messages": [').encode()
    between = "\n"
    for messages in _messages(chat, reader):
        hidden = withheld_answers(messages, reader)
        for message in messages:
            line = {
                "id": message.public_id,
                "role": message.role,
                "author": message.author.get_username() if message.author else None,
                "imported": message.is_imported,
                "imported_by": message.imported_by.get_username() if message.imported_by else None,
                "content": message.content,
                "answer_withheld": message.pk in hidden,
                "created_at": iso(message.created_at),
            }
            yield (between + json.dumps(line, ensure_ascii=False)).encode()
            between = ",\n"
    yield b"\n]}\n"
