"""Pictures that were brought with the messages of a conversation: the documents that a question names, as shown."""

from __future__ import annotations

from collections.abc import Sequence

from chat.models import Message
from chat.prompting.text import escape
from memoryhub.llm.base import Picture
from workspaces.models import DocumentPicture, DocumentQuerySet

MOST = 6  # of a conversation that are sent with one prompt: the newest

ByMessage = dict[int, tuple[Picture, ...]]


def pictures_of(messages: Sequence[Message], there: DocumentQuerySet, *, shows: bool) -> ByMessage:
    """Of each of these, newest first, by its key. Those beyond ``MOST``, and all without ``shows``, are only named.

    Whatever a message names, only what is ``there`` is looked at. No query where none names a document,
    else two.
    """
    wanted = {each for message in messages for each in message.only_documents or ()}
    if not wanted:
        return {}
    drawable = DocumentPicture.objects.filter(document__in=there.filter(public_id__in=wanted))
    known = {each.document.public_id: each for each in drawable.select_related("document").defer("jpeg")}
    named = [known[each] for message in messages for each in message.only_documents or () if each in known]
    newest = {each.pk for each in list(dict.fromkeys(named))[: MOST if shows else 0]}
    drawn = dict(DocumentPicture.objects.filter(pk__in=newest).values_list("pk", "jpeg")) if newest else {}
    return {
        message.pk: tuple(
            _picture(row, bytes(drawn.get(row.pk, b"")))
            for each in message.only_documents or ()
            if (row := known.get(each))
        )
        for message in messages
    }


def _picture(row: DocumentPicture, jpeg: bytes) -> Picture:
    return Picture(f"Picture: {escape(row.document.title)}", jpeg, row.width, row.height)
