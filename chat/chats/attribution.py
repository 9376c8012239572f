"""The sentence that marks words which somebody imported under another person's name."""

from __future__ import annotations

from django.utils.translation import gettext as _

from chat.prompting.labels import Attributed
from memoryhub.languages import isolated


def imported(row: Attributed) -> str:
    """Return who imported a message, a memory or a search result and under whose name, in the reader's language."""
    importer, author = row.imported_by, row.written_by
    names = {
        "importer": isolated(importer.shown_name) if importer else "",
        "author": isolated(author.shown_name) if author else _("someone unknown here"),
    }
    if importer is None:
        return _("Imported by someone who left, said to be from %(author)s") % names
    return _("Imported by %(importer)s, said to be from %(author)s") % names
