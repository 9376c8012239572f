"""Sentences on whose words or thoughts a page shows, or does not show."""

from __future__ import annotations

from django.utils.translation import gettext as _

from chat.models import Message
from chat.prompting.labels import Attributed
from memoryhub.languages import isolated


def imported(row: Attributed) -> str:
    """Return who imported a message, a memory or a search result and under whose name, in the reader's language."""
    importer, author = row.imported_by, row.written_by
    names = {
        "importer": isolated(importer.attributed_name) if importer else "",
        "author": isolated(author.attributed_name) if author else "",
    }
    if author is None:
        return _("Imported by %(importer)s") % names if importer else _("Imported by someone who left")
    if importer is None:
        return _("Imported by someone who left, said to be from %(author)s") % names
    return _("Imported by %(importer)s, said to be from %(author)s") % names


def withheld(question: Message) -> str:
    """Return why a reader finds no answer to this question, in their language."""
    if question.author is None:
        return _(
            "The answer draws on something personal, such as a private chat or a personal memory. "
            "Only people who could read this chat when it was written can see it."
        )
    return _(
        "The answer draws on something of %(name)s alone, such as a private chat or a personal memory. "
        "Only people who could read this chat when it was written can see it."
    ) % {"name": isolated(question.author.shown_name)}
